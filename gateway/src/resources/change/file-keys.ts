import type { ConfigTree } from '../../config/load/validate.ts'
import { idOf } from '../../policies/api-key/entry.ts'
import { type ApiKeyRecord, recordDigest } from '../../policies/api-key/record.ts'
import { valueAt } from '../../schema/path.ts'
import { isTree } from '../hybrid/overlay.ts'
import { keysPath } from '../kinds.ts'
import { readUuid } from './identity.ts'

/** The virtual keys of a file, valid or not. */
export function fileKeys(file: ConfigTree): readonly unknown[] {
  const keys = valueAt(file, keysPath)
  return Array.isArray(keys) ? keys : []
}

/**
 * Indexes of the keys of a file with an id: that of their metadata, else the derived one, as in the log. An
 * id in metadata need not be unique.
 */
export function findFileKeys(address: string, file: ConfigTree): number[] {
  const wanted = readUuid(address) ?? address
  const keys = fileKeys(file)
  const stated = indexesOf(keys, (key) => isSameId(valueAt(key, ['metadata', 'id']), wanted))
  if (stated.length > 0 || !derivedForm.test(wanted)) return stated
  return indexesOf(keys, (key) => fileKeyId(key) === wanted)
}

/** Version 8 of UUIDs: other ids are not derived. */
const derivedForm = /^.{14}8/

/** Id of a key of a file, as in the log; undefined if it is not a key. */
export function fileKeyId(key: unknown): string | undefined {
  const digest = isKeyRecord(key) ? recordDigest(key) : undefined
  return isKeyRecord(key) && digest !== undefined ? idOf(key, digest) : undefined
}

function indexesOf(keys: readonly unknown[], matches: (key: unknown) => boolean): number[] {
  return keys.flatMap((key, index) => (matches(key) ? [index] : []))
}

function isSameId(id: unknown, wanted: string): boolean {
  return typeof id === 'string' && (readUuid(id) ?? id) === wanted
}

/** A short test, because the file is valid and may have 100,000 keys. */
function isKeyRecord(value: unknown): value is ApiKeyRecord {
  return isTree(value) && (typeof value['key'] === 'string' || typeof value['keyHash'] === 'string')
}
