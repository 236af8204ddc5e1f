import type { IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { isJsonObject, type JsonObject, parseJsonObject } from '../../../lib/json/json.ts'
import type { ApiKind } from '../../objects/kinds.ts'
import { type BackOffLimits, createBackOff } from '../back-off.ts'
import { type ApiClient, isApiObject, type ListOptions } from '../client.ts'
import { ApiError, hasStatus } from '../requests/api-error.ts'
import { tooLargeReason } from '../requests/send-request.ts'
import { readLines } from './event-lines.ts'
import { apiKeyOf, type ObjectStore } from './object-store.ts'

/** Events of a watch for logs and metrics. */
export type WatchObserver = {
  listed(result: { readonly objects: number; readonly durationMs: number }): void
  /** `retryMs` is the delay before the next attempt. */
  failed(error: ApiError, retryMs: number): void
  /** The API server no longer has the history after the last version: a complete list follows. */
  expired(): void
}

export type ListWatchOptions = {
  readonly client: Pick<ApiClient, 'list' | 'watch'>
  readonly kind: ApiKind
  readonly store: ObjectStore
  readonly observer: WatchObserver
  readonly clock: { monotonic(): number }
  readonly random: () => number
  readonly backOff?: BackOffLimits
  /** Time after which the objects of a kind that the API server no longer has are removed. */
  readonly unknownMs?: number
} & ListOptions

/** Follows the objects of one kind until it is closed; no error ends it. */
export type ListWatch = {
  /** Resolves after the first complete list, or once the API server repeatedly reports an unknown kind. */
  readonly synced: Promise<void>
  close(): void
}

const pageLimit = 500
/** An object of 1.5 MiB with escapes and bookkeeping stays below. */
const maxEventLength = 16 * 1024 * 1024
const defaultBackOff = { minMs: 200, maxMs: 5_000 }
/** Life time of a watch: 5 to 10 minutes, so that not all watches restart at the same time. */
const shortestWatchSeconds = 300
/** A watch that ends earlier counts as a failure. */
const shortestSuccessMs = 1_000
/** A starting API server reports unknown kinds for a moment. */
const unknownAfterAttempts = 3
/** One that restarts may do so for longer. The deletion of a kind deletes its objects first. */
const defaultUnknownMs = 60_000
/** Unusable events may be specific to the version of the watch: a list follows. */
const maxBrokenWatches = 3

/** Last version, and whether the API server has accepted the watch. */
type Position = { version: string; isOpen: boolean }

/** End of one watch; after `expired` a list follows, the others continue at the last version. */
type WatchEnd =
  | { readonly kind: 'ended' }
  /** HTTP status 410, or an ERROR event. */
  | { readonly kind: 'expired'; readonly error: ApiError }
  | { readonly kind: 'failed'; readonly error: ApiError }

export function createListWatch(options: ListWatchOptions): ListWatch {
  const { observer, clock, random, backOff = defaultBackOff, unknownMs = defaultUnknownMs } = options
  const closing = new AbortController()
  const { signal } = closing
  const synced = Promise.withResolvers<void>()
  const delays = createBackOff(backOff, random)

  async function pause(error: ApiError): Promise<void> {
    const retryMs = delays.next(error)
    observer.failed(error, retryMs)
    // Rejects on close, which ends the loop.
    await delay(retryMs, undefined, { signal })
  }

  /** Lists until a list is complete. */
  async function listAll(): Promise<string> {
    let limit = pageLimit
    let knownAt = clock.monotonic()
    for (let unknown = 0; ; ) {
      const startedAt = clock.monotonic()
      try {
        const version = await listOnce(options, limit, signal)
        const durationMs = clock.monotonic() - startedAt
        observer.listed({ objects: options.store.objects.size, durationMs })
        return version
      } catch (error) {
        signal.throwIfAborted()
        const failure = asApiError(error)
        if (failure.reason === tooLargeReason) limit = Math.max(1, limit >> 1)
        unknown = hasStatus(failure, 404) ? unknown + 1 : 0
        if (unknown === 0) knownAt = clock.monotonic()
        if (unknown === unknownAfterAttempts) synced.resolve()
        if (clock.monotonic() - knownAt > unknownMs) options.store.retain(new Set(), options.namespace)
        await pause(failure)
      }
    }
  }

  /** Watches until a list is necessary. */
  async function watchFrom(start: string): Promise<void> {
    const position = { version: start, isOpen: false }
    for (let broken = 0; broken < maxBrokenWatches; ) {
      const startedAt = clock.monotonic()
      const before = position.version
      const end = await watchOnce(options, position, signal)
      signal.throwIfAborted()
      const isLong = position.isOpen && clock.monotonic() - startedAt > shortestSuccessMs
      const isProductive = position.version !== before || isLong
      if (isProductive) {
        delays.reset()
        broken = 0
      }
      if (end.kind === 'ended' && isProductive) continue
      if (end.kind === 'expired') {
        observer.expired()
        if (!isProductive || end.error.status !== 410) await pause(end.error)
        return
      }
      const isBroken = end.kind === 'failed' && end.error.reason === brokenReason
      broken = isBroken ? broken + 1 : 0
      await pause(end.kind === 'failed' ? end.error : endedEarly)
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const version = await listAll()
      synced.resolve()
      await watchFrom(version)
    }
  }

  run().catch((error: unknown) => {
    // Only `close` ends the loop; anything else is a defect and must be visible.
    if (!signal.aborted) throw error
  })
  return {
    synced: synced.promise,
    close: () => closing.abort(),
  }
}

const brokenReason = 'BrokenEvent'
const endedEarly = new ApiError({ status: 0 }, 'watch ended without an event')

/** Reads all pages into the store; objects that are not in the list are removed at its end. */
async function listOnce(options: ListWatchOptions, limit: number, signal: AbortSignal): Promise<string> {
  const { client, kind, store } = options
  const listed = new Set<string>()
  let continuation: string | undefined
  for (;;) {
    const page = await client.list(kind, { ...selectionOf(options), limit, continuation, signal })
    for (const item of page.items) {
      store.put(item)
      listed.add(apiKeyOf(item))
    }
    continuation = page.continuation
    if (continuation !== undefined) continue
    store.retain(listed, options.namespace)
    return page.resourceVersion
  }
}

async function watchOnce(
  options: ListWatchOptions,
  position: Position,
  signal: AbortSignal,
): Promise<WatchEnd> {
  const { client, kind, store } = options
  position.isOpen = false
  const timeoutSeconds = Math.round(shortestWatchSeconds * (1 + options.random()))
  // A server that neither sends events nor ends the watch in time is lost.
  const limit = AbortSignal.any([signal, AbortSignal.timeout((timeoutSeconds + 30) * 1_000)])
  let response: IncomingMessage | undefined
  try {
    response = await client.watch(kind, {
      ...selectionOf(options),
      resourceVersion: position.version,
      timeoutSeconds,
      signal: limit,
    })
    position.isOpen = true
    for await (const line of readLines(response, maxEventLength)) {
      const end = applyEvent(line, store, position)
      if (end !== undefined) return end
    }
    return { kind: 'ended' }
  } catch (error) {
    const failure = asApiError(error)
    return { kind: failure.status === 410 ? 'expired' : 'failed', error: failure }
  } finally {
    response?.destroy()
  }
}

/** Applies one event; the result is the end of the watch, if the event ends it. */
function applyEvent(line: string, store: ObjectStore, position: Position): WatchEnd | undefined {
  const { type, object } = parseJsonObject(line) ?? {}
  const fields = isJsonObject(object) ? object : {}
  if (type === 'ERROR') return { kind: 'expired', error: statusError(fields) }
  const version = isJsonObject(fields['metadata']) ? fields['metadata']['resourceVersion'] : undefined
  if (typeof version !== 'string') return broken('watch event is not a valid object')
  if (type !== 'BOOKMARK') {
    if (!isApiObject(fields)) return broken('object of a watch event has no name')
    if (type === 'DELETED') store.remove(fields)
    else store.put(fields)
  }
  position.version = version
  return undefined
}

function broken(message: string): WatchEnd {
  return { kind: 'failed', error: new ApiError({ status: 0, reason: brokenReason }, message) }
}

/** The error of a Status object in an ERROR event. */
function statusError({ code, message }: JsonObject): ApiError {
  return new ApiError(
    { status: typeof code === 'number' ? code : 0, reason: 'WatchError' },
    `watch: ${typeof message === 'string' ? message.slice(0, 500) : 'unknown error'}`,
  )
}

function selectionOf({ namespace, labelSelector, fieldSelector }: ListOptions): ListOptions {
  return { namespace, labelSelector, fieldSelector }
}

function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError({ status: 0 }, String(error), { cause: error })
}
