import { reasonsOf } from '../../config/config-rejected.ts'
import type { Config } from '../../config/schema.ts'
import type { Log } from '../../telemetry/log.ts'
import { changedFields } from '../change/audit.ts'
import {
  type ChangeOutcome,
  type ChangeRequest,
  type KindChange,
  notFound,
  type Refusal,
  refusal,
} from '../change/change.ts'
import type { Requester, ResourceHost, Resources } from '../resources.ts'
import type { ConfigFile } from './config-file.ts'
import { createFileText } from './file-text.ts'

export type FileResourcesOptions = {
  readonly mode: 'file' | 'readOnly'
  readonly file: ConfigFile
  readonly host: ResourceHost
  readonly randomUuid: () => string
  readonly log: Log
}

/** Maximum number of attempts if the file is edited concurrently. */
const maxAttempts = 3

/**
 * Resources in the configuration file, which is edited in place. A change is written and active before its
 * outcome is returned.
 */
export function createFileResources({ mode, file, host, randomUuid, log }: FileResourcesOptions): Resources {
  let current: Config | undefined

  async function useFile(config: Config): Promise<void> {
    const prepared = await host.prepare(config)
    await prepared.commit()
    current = config
  }

  async function change(request: ChangeRequest, requester: Requester): Promise<ChangeOutcome> {
    if (mode === 'readOnly') return readOnlyRefusal
    const { change } = request
    if (change.op === 'import') return refusal(409, 'an import needs config.storage.mode: hybrid')
    if (change.op === 'revert') return fileHistory
    const wanted: FileChangeRequest = { ...request, change }
    return host.exclusive(async () => {
      for (let attempt = 0; attempt < maxAttempts; attempt++) {
        const outcome = await attemptChange(wanted)
        if (outcome === 'changed') continue
        if (outcome.kind !== 'refused' && !request.dryRun) audit(wanted, outcome, requester, log)
        return outcome
      }
      return refusal(503, 'the configuration file is being edited concurrently; try again')
    })
  }

  async function idle(): Promise<void> {
    await host.exclusive(() => Promise.resolve())
  }

  async function attemptChange(request: FileChangeRequest): Promise<ChangeOutcome | 'changed'> {
    const text = await readText()
    if (typeof text !== 'string') return text
    const { change, dryRun, ifMatch } = request
    const plain = { ...change, kind: change.kind.name }
    const ids = change.op === 'upsert' ? change.values.map(randomUuid) : []
    const edit = await file.edit({ text, request: { change: plain, dryRun, ifMatch }, ids })
    if (edit.kind === 'refused') return edit
    if (edit.text === text) return edit.outcome
    try {
      const config = await file.load(edit.text)
      const prepared = await host.prepare(config)
      if (dryRun) {
        prepared.abort()
        return edit.outcome
      }
      const writing = await file.write(edit.text, text).catch((error: unknown) => {
        prepared.abort()
        throw error
      })
      if (writing.kind !== 'written') {
        prepared.abort()
        return writing.kind === 'changed' ? 'changed' : refusal(500, writing.message)
      }
      await prepared.commit()
      current = config
      file.activated(edit.text, config)
      return edit.outcome
    } catch (error) {
      return refusal(500, reasonsOf(error).join('\n'))
    }
  }

  async function readText(): Promise<string | Refusal> {
    try {
      return await file.read()
    } catch (error) {
      return refusal(500, reasonsOf(error).join('\n'))
    }
  }

  return {
    useFile,
    async reapply() {
      if (current !== undefined) await useFile(current)
    },
    pending: () => undefined,
    // Specification, "Storage configuration": records of the file are not listed.
    list: () => ({ kind: 'listed', envelopes: [] }),
    find: (kind, id) => notFound(kind, id),
    change,
    history: () => Promise.resolve(fileHistory),
    text: createFileText({
      file,
      host,
      log,
      readOnly: mode === 'readOnly' ? readOnlyRefusal : undefined,
      prepare: host.prepare,
      activated(config) {
        current = config
      },
    }),
    idle,
    effective: () => ({ config: current ?? {}, file: current ?? {}, fileIndex: file.index() }),
    status: () => ({ mode }),
    close: () => Promise.resolve(),
  }
}

const readOnlyRefusal = refusal(403, 'UI is configured as read-only')

const fileHistory = refusal(
  404,
  'the configuration is a file without a recorded history: use version control for the file, or config.storage.mode: hybrid',
)

type FileChangeRequest = ChangeRequest & { readonly change: KindChange }

function audit(
  { change }: FileChangeRequest,
  outcome: Exclude<ChangeOutcome, Refusal>,
  requester: Requester,
  log: Log,
): void {
  const { op } = change
  const kind = change.kind.name
  const records =
    outcome.kind === 'removed'
      ? [{ id: outcome.id, changed: [] }]
      : outcome.resources.map(({ id, name, value }) => ({
          id,
          changed: changedFields({ kind: change.kind, name }, undefined, value),
        }))
  for (const { id, changed } of records) {
    const fields = changed.map(({ field }) => field)
    log.audit(
      { op: op === 'remove' ? 'remove' : 'put', kind, id, fields, changed, ...requester },
      'config resource changed',
    )
  }
}
