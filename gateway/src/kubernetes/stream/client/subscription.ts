import type { StreamStatus } from '../../../config/live/stream-status.ts'
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../telemetry/log.ts'
import { type ApplyOutcome, type StreamClientOptions, startStreamClient } from './client.ts'
import type { PersistedCopy } from './persisted-copy.ts'
import type { ReceivedConfig } from './received.ts'

export type SubscriptionEvents = {
  /** Called with each change of the status. */
  onStatus(connected: boolean, confirmedAtMs: number | undefined): void
}

export type SubscriptionOptions = Omit<StreamClientOptions, 'start' | 'apply' | 'onState' | 'onConfirmed'> &
  SubscriptionEvents & {
    /** Undefined without a folder or key for it. */
    readonly copy: PersistedCopy | undefined
    readonly clock: Clock
    readonly log: Log
    /** Time for the controller before the persisted copy is used. */
    readonly patienceMs?: number
  }

/** The configuration of a proxy, from the controller or the persisted copy. */
export type Subscription = {
  /** Resolves with the latest configuration, once there is one. */
  latest(): Promise<ReceivedConfig>
  /** Resolves once `latest` returns a configuration other than this one. */
  after(received: ReceivedConfig | undefined): Promise<void>
  /** Sets the listener of changes; called at once if `latest` has changed since its last call. */
  watch(onChange: () => void): void
  /** Reports the outcome of the configuration that `latest` returned last, and returns it. */
  settle(outcome: ApplyOutcome): ReceivedConfig | undefined
  status(): StreamStatus
  /** Ends the stream and writes a pending copy. */
  close(): Promise<void>
}

const defaultPatienceMs = 5_000

type Offer = {
  readonly received: ReceivedConfig
  readonly source: 'controller' | 'copy'
  readonly settled: (outcome: ApplyOutcome) => void
}

/** Subscribes to the configuration of a Gateway. */
export async function subscribe(options: SubscriptionOptions): Promise<Subscription> {
  const { copy, clock, log, onStatus, patienceMs = defaultPatienceMs } = options
  const copied = await copy?.read()
  const offers = createOffers()
  let serving: Offer | undefined
  let lastError: string | undefined
  let isConnected = false
  let confirmedAt = copied?.savedAt

  async function apply(received: ReceivedConfig): Promise<ApplyOutcome> {
    if (received.version === serving?.received.version) {
      serving = { ...serving, source: 'controller' }
      copy?.save(serving.received)
      return { kind: 'accepted' }
    }
    const outcome = await offers.offer(received, 'controller')
    if (outcome.kind === 'accepted') copy?.save(received)
    return outcome
  }

  const client = startStreamClient({
    ...options,
    start: copied?.received,
    apply,
    onState(state) {
      isConnected = state.kind === 'connected'
      lastError = state.kind === 'connected' ? undefined : state.reason
      onStatus(isConnected, confirmedAt)
    },
    onConfirmed() {
      confirmedAt = clock.now()
      onStatus(isConnected, confirmedAt)
      if (serving?.source === 'controller') copy?.confirm(serving.received)
    },
  })
  const patience = setTimeout(() => {
    if (copied === undefined || offers.current() !== undefined) return
    const ageSeconds = ageOf(copied.savedAt, clock.now())
    log.warn(
      { version: copied.received.version, ageSeconds, reason: lastError },
      'configuration copy used: no configuration from the controller',
    )
    void offers.offer(copied.received, 'copy')
  }, patienceMs)

  return {
    latest: offers.latest,
    after: offers.after,
    watch: offers.watch,
    settle(outcome) {
      const offer = offers.taken()
      if (outcome.kind === 'accepted') serving = offer
      offer?.settled(outcome)
      return offer?.received
    },
    status: () => ({
      connected: isConnected,
      version: serving?.received.version,
      source: serving?.source,
      confirmedAt: confirmedAt === undefined ? undefined : new Date(confirmedAt).toISOString(),
      ageSeconds: confirmedAt === undefined ? undefined : ageOf(confirmedAt, clock.now()),
      lastError,
    }),
    async close() {
      clearTimeout(patience)
      offers.close()
      await client.close()
      await copy?.close()
    },
  }
}

/** Configurations on their way to the gateway: the latest one, and the one that the gateway has taken. */
function createOffers() {
  let current: Offer | undefined
  let taken: Offer | undefined
  let listener: (() => void) | undefined
  let next = Promise.withResolvers<void>()

  return {
    current: () => current,
    taken: () => taken,
    async latest(): Promise<ReceivedConfig> {
      while (current === undefined) await next.promise
      taken = current
      return current.received
    },
    async after(received: ReceivedConfig | undefined): Promise<void> {
      while (current === undefined || current.received === received) await next.promise
    },
    watch(onChange: () => void) {
      listener = onChange
      if (taken !== current) onChange()
    },
    offer(received: ReceivedConfig, source: Offer['source']): Promise<ApplyOutcome> {
      const outcome = Promise.withResolvers<ApplyOutcome>()
      current = { received, source, settled: outcome.resolve }
      next.resolve()
      next = Promise.withResolvers()
      listener?.()
      return outcome.promise
    },
    /** Ends the wait for outcomes: the gateway shuts down. */
    close() {
      current?.settled({ kind: 'refused', errors: ['the proxy shuts down'] })
    },
  }
}

function ageOf(since: number, now: number): number {
  return Math.max(0, Math.round((now - since) / 1_000))
}
