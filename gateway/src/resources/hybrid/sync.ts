import type { Config } from '../../config/schema.ts'
import { runYielding } from '../../lib/scheduling/yielding.ts'
import { asError } from '../../lib/thrown.ts'
import type { StoreDelta } from '../stores/store.ts'
import { logProblems } from './audit.ts'
import type { DatabaseConnection, Retry } from './connection.ts'
import { emptyIndex, indexUpdateSteps } from './record-index.ts'
import type { Activation, HybridContext, HybridState } from './state.ts'

/** Applies changes of other replicas. */
export type Sync = {
  /** Requests a synchronization. Requests during one are merged into the next. */
  request(): void
  /** Reads the store; undefined during an outage, which schedules a retry. */
  read(since: number | undefined): Promise<StoreDelta | undefined>
  /** Updates the index and activates the result over a file. */
  apply(delta: StoreDelta, file: Config): Promise<void>
  /** Calls `request` after changes of other replicas. */
  watch(): void
  close(): Promise<void>
}

export type SyncParts = {
  readonly state: HybridState
  readonly activation: Activation
  readonly connection: DatabaseConnection
  readonly retry: Retry
}

type SyncStatus =
  | { readonly kind: 'idle' }
  | { readonly kind: 'syncing'; readonly done: Promise<void> }
  | { readonly kind: 'closed' }

export function createSync(context: HybridContext, parts: SyncParts): Sync {
  const { store, host, log } = context
  const { state, connection, retry } = parts
  let status: SyncStatus = { kind: 'idle' }
  let needsSync = false
  let needsFullRead = false
  let isWatching = false
  const isClosed = () => status.kind === 'closed'

  async function read(since: number | undefined): Promise<StoreDelta | undefined> {
    try {
      const delta = await store.read(since)
      connection.succeeded()
      retry.reset()
      return delta
    } catch (error) {
      connection.failed(asError(error))
      retry.schedule()
      return undefined
    }
  }

  /** Reads outside the lock of reloads: an unresponsive database must not delay changes of the file. */
  async function syncOnce(): Promise<void> {
    if (isClosed() || state.file === undefined) return
    const from = state.index
    const delta = await read(needsFullRead ? undefined : from?.generation)
    if (delta === undefined) return
    await host.exclusive(async () => {
      if (isClosed() || state.file === undefined) return
      if (state.index !== from) {
        // A write was faster, so the delta may be older than the index. A complete one replaces an untrusted
        // index, so the next read has to be complete too.
        needsFullRead = delta.complete
        needsSync = true
        return
      }
      needsFullRead = false
      await applyDelta(delta, state.file, context, parts)
    })
  }

  async function syncUntilCurrent(): Promise<void> {
    try {
      while (needsSync && !isClosed()) {
        needsSync = false
        await syncOnce()
      }
    } catch (error) {
      log.error({ err: asError(error) }, 'changes of config resources cannot be applied')
      retry.schedule()
    } finally {
      if (!isClosed()) status = { kind: 'idle' }
    }
  }

  const sync: Sync = {
    request() {
      needsSync = true
      if (status.kind === 'idle') status = { kind: 'syncing', done: syncUntilCurrent() }
    },
    read,
    apply: (delta, file) => applyDelta(delta, file, context, parts),
    watch() {
      if (isWatching) return
      isWatching = true
      store.watch({ onChange: sync.request, onLost: connection.failed })
    },
    async close() {
      const closing = status
      status = { kind: 'closed' }
      retry.close()
      if (closing.kind === 'syncing') await closing.done
    },
  }
  return sync
}

async function applyDelta(
  delta: StoreDelta,
  file: Config,
  { expand, log, yieldPoint }: HybridContext,
  { state, activation }: SyncParts,
): Promise<void> {
  const before = state.index
  const isChanged = before === undefined || !isEmpty(delta)
  const index = await runYielding(indexUpdateSteps(before ?? emptyIndex, delta, expand), yieldPoint)
  state.index = index
  logProblems(index, before, log)
  if (!isChanged && state.active !== undefined) return
  try {
    await activation.activate(await activation.prepare(file, index))
    if (before !== undefined)
      log.info({ generation: index.generation }, 'changes of config resources applied')
  } catch (error) {
    activation.reject(error)
  }
}

function isEmpty({ changed, unreadable, removed, complete }: StoreDelta): boolean {
  return !complete && changed.length === 0 && unreadable.length === 0 && removed.length === 0
}
