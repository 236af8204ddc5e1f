import type { ConfigRecord } from '../api/resources.ts'
import type { Whoami } from '../api/whoami.ts'

/** Why a record cannot be changed here; undefined if it can. `record` undefined is a new one. */
export function readOnlyReason(
  record: ConfigRecord<unknown> | undefined,
  whoami: Whoami | undefined,
): string | undefined {
  if (whoami === undefined) return undefined
  const { storage, mayChange } = whoami
  if (storage.readOnly) return storage.reason ?? 'The configuration is read-only.'
  if (!mayChange) return 'Your role permits reading, not changing.'
  const origin = record?.origin
  if (origin?.kind === 'object')
    return `The object ${origin.object} of the cluster owns this record: change it there.`
  if (origin?.kind !== 'file' || storage.mode === 'file') return undefined
  const line = origin.line === undefined ? '' : `, line ${origin.line}`
  return `The configuration file owns this record${line}: change it there.`
}
