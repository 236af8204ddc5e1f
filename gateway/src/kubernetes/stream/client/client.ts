import type { Clock } from '../../../lib/clock.ts'
import type { YieldPoint } from '../../../lib/scheduling/yielding.ts'
import { messageOf } from '../../../lib/thrown.ts'
import type { Log } from '../../../telemetry/log.ts'
import { createBackOff } from './back-off.ts'
import { type ConnectionTimes, type OpenConnection, readStream } from './connection.ts'
import type { ReceivedConfig } from './received.ts'

export type StreamClientOptions = {
  /** Origin of the controller, `https://host:port`. */
  readonly url: string
  /** `<namespace>/<name>`. */
  readonly gateway: string
  /** Name of the Pod. */
  readonly proxy: string
  /** Random identifier of the process, at least 16 characters of base64url. */
  readonly id: string
  /** Configuration to continue from, of the persisted copy. */
  readonly start: ReceivedConfig | undefined
  /** Reads the certificates of the authority and the token: both are replaced while the process runs. */
  readCa(): Promise<string>
  readToken(): Promise<string>
  /** Activates a configuration. Never rejects. */
  apply(received: ReceivedConfig): Promise<ApplyOutcome>
  onState(state: StreamState): void
  /** Called for each heartbeat of the controller after the first configuration of a stream. */
  onConfirmed(): void
  readonly clock: Pick<Clock, 'now'>
  random(): number
  readonly log: Log
  readonly yieldPoint: YieldPoint
  readonly times?: Partial<StreamClientTimes>
}

export type ApplyOutcome =
  | { readonly kind: 'accepted' }
  /** The previous configuration continues to serve. Errors are lines without secrets. */
  | { readonly kind: 'refused'; readonly errors: readonly string[] }

export type StreamState =
  | { readonly kind: 'connected' }
  | { readonly kind: 'disconnected'; readonly reason: string }

export type StreamClientTimes = ConnectionTimes & {
  readonly firstRetryMs: number
  readonly maxRetryMs: number
  /** Interval of reports while nothing changes. */
  readonly acknowledgeMs: number
}

export type StreamClient = {
  /** Ends the stream; resolves after an activation in progress. */
  close(): Promise<void>
}

const defaultTimes: StreamClientTimes = {
  connectMs: 10_000,
  stallMs: 30_000,
  firstRetryMs: 500,
  maxRetryMs: 15_000,
  acknowledgeMs: 30_000,
}

/** Receives configurations from the controller, until it is closed. Connects again after each end. */
export function startStreamClient(options: StreamClientOptions): StreamClient {
  const { gateway, proxy, id, log, random } = options
  const times = { ...defaultTimes, ...options.times }
  const query = new URLSearchParams({ gateway, proxy, id }).toString()
  const shutdown = new AbortController()
  const backOff = createBackOff({ firstMs: times.firstRetryMs, maxMs: times.maxRetryMs, random })
  const reports = createReports(options, times.acknowledgeMs)
  let latest = options.start

  async function apply(received: ReceivedConfig): Promise<void> {
    latest = received
    const outcome = await options.apply(received)
    reports.record(received.version, outcome)
  }

  async function connectOnce(): Promise<void> {
    /** Whether the stream has had a configuration: before it, a heartbeat confirms nothing. */
    let isCurrent = false
    const [ca, token] = await Promise.all([options.readCa(), options.readToken()])
    const end = await readStream({
      url: options.url,
      ca,
      token: token.trim(),
      query,
      start: latest,
      yieldPoint: options.yieldPoint,
      times,
      signal: shutdown.signal,
      onOpen(connection) {
        log.info({ gateway, version: latest?.version }, 'configuration stream opened')
        options.onState({ kind: 'connected' })
        reports.use(connection)
      },
      onHeartbeat() {
        backOff.reset()
        if (isCurrent) options.onConfirmed()
      },
      async onReceived(received) {
        // Not before: a controller whose configurations are broken would send them without delay.
        backOff.reset()
        isCurrent = true
        await apply(received)
        options.onConfirmed()
      },
    })
    reports.use(undefined)
    if (end.isBroken) latest = undefined
    if (shutdown.signal.aborted) return
    options.onState({ kind: 'disconnected', reason: end.reason })
    if (end.isAnnounced) log.info({ gateway, reason: end.reason }, 'configuration stream closed')
    else log.warn({ gateway, reason: end.reason }, 'configuration stream interrupted')
  }

  async function run(): Promise<void> {
    while (!shutdown.signal.aborted) {
      try {
        await connectOnce()
      } catch (error) {
        options.onState({ kind: 'disconnected', reason: messageOf(error) })
        log.warn({ gateway, reason: messageOf(error) }, 'configuration stream interrupted')
      }
      await pause(backOff.next(), shutdown.signal)
    }
  }

  const running = run()
  return {
    async close() {
      shutdown.abort()
      reports.close()
      await running
    },
  }
}

type Reports = {
  record(version: string, outcome: ApplyOutcome): void
  use(connection: OpenConnection | undefined): void
  close(): void
}

/**
 * Reports the version that serves, and a refused one, to the controller: after each change, on each new
 * stream, and at intervals as a sign of life. One report at a time, always the newest.
 */
function createReports({ start, log }: StreamClientOptions, everyMs: number): Reports {
  type Report = { serving: string | undefined; refused?: { version: string; errors: readonly string[] } }
  let report: Report = { serving: start?.version }
  let connection: OpenConnection | undefined
  let state: 'idle' | 'sending' | 'sendingOld' = 'idle'
  const timer = setInterval(send, everyMs)

  function send(): void {
    if (state !== 'idle') {
      state = 'sendingOld'
      return
    }
    if (connection === undefined) return
    state = 'sending'
    connection
      .acknowledge(report)
      .catch((error: unknown) => log.debug({ reason: messageOf(error) }, 'acknowledgement failed'))
      .then(() => {
        const isOld = state === 'sendingOld'
        state = 'idle'
        if (isOld) send()
      })
  }

  return {
    record(version, outcome) {
      report =
        outcome.kind === 'accepted'
          ? { serving: version }
          : { serving: report.serving, refused: { version, errors: outcome.errors } }
      send()
    },
    use(next) {
      connection = next
      if (next !== undefined) send()
    },
    close() {
      clearInterval(timer)
      // The outcome of an activation that the shutdown interrupts is not reported.
      connection = undefined
    },
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const over = Promise.withResolvers<void>()
  const timer = setTimeout(over.resolve, ms)
  signal.addEventListener('abort', () => over.resolve(), { once: true })
  await over.promise
  clearTimeout(timer)
}
