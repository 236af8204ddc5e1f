import { type LedgerQueries, QueryRefused } from '../../ledger/query/query.ts'
import type { LedgerFilter, Position } from '../../ledger/query/search/filter.ts'
import type { StoredRequest } from '../../ledger/store/columns.ts'
import type { BodySink, BodySource } from '../../net/http/body.ts'
import { writeCursor } from './cursor.ts'
import { logEntry } from './entry.ts'
import type { SearchRequest } from './search-request.ts'

export type TailOptions = {
  readonly queries: Pick<LedgerQueries, 'findPositions' | 'readRequests'>
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly pollMs?: number
  readonly heartbeatMs?: number
}

/** Streams of new requests. */
export type Tails = {
  /** Opens an event stream; undefined if there are too many. */
  open(request: SearchRequest): BodySource | undefined
  /** Ends all streams. */
  close(): void
}

const maxTails = 20
const defaultPollMs = 500
const defaultHeartbeatMs = 15_000
/** Clients connect again after it, and are authorized again. */
const maxLifetimeMs = 3_600_000
/** Entries of other replicas may be stored this long after they completed. */
const overlapMs = 10_000
/** Most requests that are found in a poll, and sent after it. */
const maxFound = 2_000
const maxSent = 500
/** Most ids that are retained to recognize requests. */
const maxSeen = 20_000

/**
 * Creates the streams of new requests. They poll the database, because other replicas write to it too: each
 * poll reads the requests of the last seconds again, and sends those that were not sent.
 */
export function createTails(options: TailOptions): Tails {
  const open = new Set<{ end(): void }>()
  return {
    open(request) {
      if (open.size >= maxTails) return undefined
      const tail = createTail(request, options, () => open.delete(tail))
      open.add(tail)
      return tail.source
    },
    close() {
      for (const tail of [...open]) tail.end()
    },
  }
}

type State =
  | { kind: 'new' }
  /** `isPaused`: the client does not read. */
  | { kind: 'open'; sink: BodySink; isPaused: boolean; isFailing: boolean; timers: NodeJS.Timeout[] }
  | { kind: 'ended' }

function createTail(request: SearchRequest, options: TailOptions, onEnd: () => void) {
  const { pollMs = defaultPollMs, heartbeatMs = defaultHeartbeatMs } = options
  const window = createWindow(request, options)
  let state: State = { kind: 'new' }

  function cancel(): void {
    if (state.kind === 'open') for (const timer of state.timers) clearTimeout(timer)
    if (state.kind !== 'ended') onEnd()
    state = { kind: 'ended' }
  }

  function end(): void {
    const sink = state.kind === 'open' ? state.sink : undefined
    cancel()
    sink?.end()
  }

  function send(event: string, data: unknown): void {
    if (state.kind !== 'open') return
    const isAccepted = state.sink.write(Buffer.from(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`))
    if (!isAccepted) state.isPaused = true
  }

  async function poll(): Promise<void> {
    try {
      if (state.kind === 'open' && !state.isPaused) {
        const { requests, hasMore } = await window.next()
        for (const stored of requests) send('log', eventOf(stored, request))
        if (hasMore) send('skipped', {})
        if (state.kind === 'open') state.isFailing = false
      }
    } catch (error) {
      if (state.kind === 'open' && !state.isFailing) send('error', { message: messageFor(error) })
      if (state.kind === 'open') state.isFailing = true
    }
    if (state.kind === 'open') state.timers[0] = setTimeout(() => void poll(), pollMs)
  }

  const source: BodySource = {
    start(sink) {
      if (state.kind === 'ended') {
        sink.end()
        return
      }
      const heartbeat = setInterval(() => send('heartbeat', {}), heartbeatMs)
      const lifetime = setTimeout(end, maxLifetimeMs)
      const first = setTimeout(() => void poll(), 0)
      state = { kind: 'open', sink, isPaused: false, isFailing: false, timers: [first, heartbeat, lifetime] }
      // Clients see at once that the stream is open.
      send('heartbeat', {})
    },
    resume() {
      if (state.kind === 'open') state.isPaused = false
    },
    cancel,
  }
  return { source, end }
}

function eventOf(stored: StoredRequest, { includeAttributes }: SearchRequest) {
  const { completedAt, id } = stored.entry
  return { entry: logEntry(stored, includeAttributes), cursor: writeCursor({ completedAt, id }) }
}

function messageFor(error: unknown): string {
  return error instanceof QueryRefused ? error.message : 'internal error'
}

type Window = {
  /** Requests that are new since the last call, oldest first. `hasMore`: there are others, not returned. */
  next(): Promise<{ requests: readonly StoredRequest[]; hasMore: boolean }>
}

/** The requests of the last seconds, of which each is returned once. */
function createWindow({ query }: SearchRequest, { queries, now }: TailOptions): Window {
  const { after, filter } = query
  const openedAt = now()
  /** Ids that were returned, with their time. */
  const seen = new Map<string, number>(after === undefined ? [] : [[after.id, after.completedAt]])
  let isFirst = true
  let newest = after?.completedAt ?? filter.from ?? openedAt

  function remember({ id, completedAt }: Position): void {
    seen.set(id, completedAt)
    // Clocks of replicas differ: a time in the future would hide the requests of all others.
    newest = Math.max(newest, Math.min(completedAt, now()))
  }

  function forget(): void {
    for (const [id, completedAt] of seen) {
      if (completedAt >= newest - overlapMs && seen.size <= maxSeen) continue
      seen.delete(id)
    }
  }

  return {
    async next() {
      const start = after?.completedAt ?? filter.from ?? openedAt
      const recent: LedgerFilter = { ...filter, from: Math.max(start, newest - overlapMs), to: undefined }
      const found = await queries.findPositions({ filter: recent, after: undefined, limit: maxFound })
      const fresh = found.positions.filter(({ id }) => !seen.has(id))
      const most = isFirst ? query.limit : maxSent
      const sent = fresh.slice(0, most).reverse()
      isFirst = false
      for (const position of fresh) remember(position)
      forget()
      const isCut = found.positions.length === maxFound && fresh.length === maxFound
      const requests = sent.length === 0 ? [] : await queries.readRequests(sent)
      return { requests, hasMore: fresh.length > most || isCut }
    },
  }
}
