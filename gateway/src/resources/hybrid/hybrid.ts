import type { Config } from '../../config/schema.ts'
import { DatabaseUnavailable } from '../../database/database-unavailable.ts'
import type { Clock } from '../../lib/clock.ts'
import { createYieldPoint } from '../../lib/scheduling/yielding.ts'
import type { Log } from '../../telemetry/log.ts'
import { type ChangeOutcome, notFound, refusal } from '../change/change.ts'
import type { ConfigFile } from '../file/config-file.ts'
import { createFileText } from '../file/file-text.ts'
import type { ResourceHost, Resources, StorageStatus } from '../resources.ts'
import type { ResourceStore } from '../stores/store.ts'
import {
  createDatabaseConnection,
  createRetry,
  type DatabaseConnection,
  defaultRetryDelayMs,
} from './connection.ts'
import { envelopesOf, findEnvelope } from './envelope.ts'
import type { Expand } from './record.ts'
import { emptyIndex } from './record-index.ts'
import { createActivation, createHybridState, type HybridContext, type HybridState } from './state.ts'
import { createSync, type Sync, type SyncParts } from './sync.ts'
import { createWriter, notReadYet } from './write.ts'

export type HybridOptions = {
  readonly store: ResourceStore
  readonly host: ResourceHost
  readonly expand: Expand
  /** The configuration file; changes through the API never write to it. */
  readonly file?: ConfigFile
  readonly randomUuid: () => string
  readonly clock: Clock
  readonly log: Log
  /** Delay before the next attempt to read the database, by the number of failures. */
  readonly retryDelayMs?: (failures: number) => number
}

/**
 * Resources in a database, over the configuration of the file. A write is validated together with all records
 * under the lock of all writers, and is active here before its outcome is returned. During an outage the last
 * state remains active.
 */
export function createHybridResources(options: HybridOptions): Resources {
  const { store, host, log, clock } = options
  const context: HybridContext = { ...options, yieldPoint: createYieldPoint(clock) }
  const state = createHybridState()
  const connection = createDatabaseConnection(host, log)
  const retry = createRetry(() => sync.request(), options.retryDelayMs ?? defaultRetryDelayMs)
  const activation = createActivation(state, context, retry.schedule)
  const parts: SyncParts = { state, activation, connection, retry }
  const sync = createSync(context, parts)
  const write = createWriter(context, parts, sync)
  const writes = new Set<Promise<ChangeOutcome>>()
  const shadowed = () => state.active?.shadowed ?? noRecords

  return {
    useFile: (next) => useFile(next, parts, sync, host),
    async reapply() {
      const { file, index } = state
      if (file === undefined) return
      // Without the records, activating the file would end the pending state.
      if (index === undefined) await activation.prepareFileOnly(file)
      else await activation.activate(await activation.prepare(file, index))
    },
    pending() {
      if (state.active !== undefined) return undefined
      return state.index === undefined ? 'database' : 'config resources'
    },
    list(kind) {
      const { index } = state
      if (index === undefined) return refusal(503, notReadYet)
      return { kind: 'listed', envelopes: envelopesOf(index, shadowed(), kind) }
    },
    find(kind, id) {
      const { index } = state
      if (index === undefined) return refusal(503, notReadYet)
      const envelope = findEnvelope(kind, id, index, shadowed())
      return envelope === undefined ? notFound(kind, id) : { kind: 'found', envelope }
    },
    change(request, requester) {
      const writing = write(request, requester)
      writes.add(writing)
      return writing.finally(() => writes.delete(writing))
    },
    async history(query) {
      try {
        return { kind: 'history', ...(await store.history(query)) }
      } catch (error) {
        if (!(error instanceof DatabaseUnavailable)) throw error
        return refusal(503, `the history cannot be read: ${error.message}`)
      }
    },
    text:
      options.file &&
      createFileText({
        file: options.file,
        host,
        log,
        readOnly: fileOwned,
        prepare: undefined,
        activated() {},
      }),
    async idle() {
      await Promise.allSettled(writes)
    },
    effective: () => ({
      config: state.active?.config ?? state.file ?? {},
      file: state.file ?? {},
      fileIndex: options.file?.index(),
    }),
    status: () => statusOf(state, connection),
    async close() {
      await sync.close()
      await store.close()
    },
  }
}

async function useFile(
  next: Config,
  { state, activation }: SyncParts,
  sync: Sync,
  host: ResourceHost,
): Promise<void> {
  if (state.index !== undefined) {
    await activation.activate(await activation.prepare(next, state.index))
    return
  }
  const isFirst = state.file === undefined
  state.file = next
  const delta = isFirst ? await sync.read(undefined) : undefined
  if (delta !== undefined) await sync.apply(delta, next)
  if (state.active === undefined) {
    await activation.prepareFileOnly(next)
    if (state.rejection !== undefined) host.report(state.rejection)
  }
  sync.watch()
}

const noRecords: ReadonlySet<string> = new Set()
const fileOwned = refusal(
  409,
  'the configuration file cannot be changed through the API in hybrid mode: change it on its machine',
)

const maxListedRecords = 100

function statusOf(
  { index = emptyIndex, active }: HybridState,
  connection: DatabaseConnection,
): StorageStatus {
  return {
    mode: 'hybrid',
    database: {
      state: connection.state,
      lastError: connection.lastError,
      generation: index.generation,
      records: index.named.size + index.keyItems.length,
      problems: [...index.problems.values()]
        .slice(0, maxListedRecords)
        .map(({ kind, id, reason }) => ({ kind, id, reason })),
      shadowed: [...(active?.shadowed ?? noRecords)].slice(0, maxListedRecords),
    },
  }
}
