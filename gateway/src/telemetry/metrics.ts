import { collectDefaultMetrics, Registry } from 'prom-client'
import type { AdmissionMeter } from '../net/listener/admission.ts'

/** Token counts of one LLM call; `estimated` where the response reported no usage. */
export type MeteredTokens = {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedInputTokens: number
  readonly estimated: boolean
}

/** Outcome of a content check; label values of the guard metrics. */
export type GuardOutcome =
  | 'allow'
  | 'mask'
  | 'reject'
  | 'audit_mask'
  | 'audit_reject'
  | 'fail_open'
  | 'fail_closed'
  | 'cancelled'
  | 'skipped'

/** Instruments of one route, looked up once when it is compiled. */
export type RouteMeter = {
  /** Milliseconds count from the request's head; `firstByteMs` is undefined when no byte was sent. */
  done(status: number, durationMs: number, firstByteMs: number | undefined): void
}

/** Instruments of one configured model at one provider. */
export type LlmMeter = {
  done(durationMs: number, firstByteMs: number | undefined): void
  /** Counts tokens by type; `keyGroup` is configuration, never client input. */
  tokens(usage: MeteredTokens, keyGroup: string): void
  upstreamError(code: string): void
  /** Adds to what calls have cost, in picodollars (10^-12 US dollars). */
  cost(amount: bigint, keyGroup: string): void
  /** A call whose cost the catalog does not tell. */
  unknownCost(reason: 'unpriced' | 'missing'): void
}

/** Instruments of one limit. */
export type LimitMeter = { allowed(): void; refused(): void }

/** Instruments of limits that a service counts. */
/**
 * Result of a report of tokens to a rate limit service: accepted, accepted as over the limit, without an answer before
 * its deadline (it may have been counted), refused or unreachable, or discarded because too many wait.
 */
export type ReportOutcome = 'sent' | 'over_limit' | 'unknown' | 'failed' | 'dropped'

export type GlobalLimitMeter = {
  checked(outcome: 'allowed' | 'refused' | 'failed_open' | 'failed_closed'): void
  reported(outcome: ReportOutcome): void
  /** A report more, or less, that is not yet told. */
  pending(change: 1 | -1): void
}

/** Instrument of one authorization rule. */
export type RuleMeter = { refused(): void }

/** Instruments of one guard. */
export type GuardMeter = {
  checked(phase: 'request' | 'response', outcome: GuardOutcome, durationMs: number): void
}

/** How a TCP connection ended: by both sides, broken, refused here, or without a backend that could be reached. */
export type TcpOutcome = 'complete' | 'broken' | 'refused' | 'unavailable'

/** Instruments of one TCP route. */
export type TcpMeter = {
  opened(): void
  closed(outcome: TcpOutcome): void
  /** Bytes that came from the client and were passed on. */
  received(bytes: number): void
  /** Bytes passed on to the client. */
  sent(bytes: number): void
}

export type Metrics = {
  /** Instruments of one bound on what clients can occupy. */
  admission(resource: string): AdmissionMeter
  route(name: string): RouteMeter
  tcp(route: string): TcpMeter
  llm(model: string, provider: string): LlmMeter
  limit(name: string): LimitMeter
  globalLimit(name: string): GlobalLimitMeter
  rule(name: string): RuleMeter
  guard(name: string): GuardMeter
  /** Whether what runs is what the configuration source says. */
  configSynchronized(synchronized: boolean): void
  /** Whether the database of config resources answers. Not called in a process without one. */
  configDatabase(connected: boolean): void
  /** Prometheus text format, and its content type. */
  render(): Promise<{ contentType: string; text: string }>
}

/** Label values of one series, in the order of its family's label names. */
type Labels = readonly string[]

type CounterSlot = { value: number }
/** The sum is kept exactly; `value` is what is shown of it. */
type CostSlot = CounterSlot & { picodollars: bigint }
type HistogramSlot = { counts: number[]; sum: number }
type Family<Slot> = { slot(...labels: Labels): Slot; drop(...labels: Labels): void }

const durationBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
/** Bucket boundaries recommended for `gen_ai.client.token.usage` by the OpenTelemetry GenAI conventions. */
const tokenBuckets = [
  1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
]

/**
 * Owner of prom-client, which renders and measures the process itself. The counting is ours, because its `inc` builds
 * a label key per call: series are slots found once per config, and a request only adds numbers.
 */
export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, prefix: 'tollgate_' })

  const requests = counterFamily(registry, 'tollgate_requests_total', 'Requests answered.', [
    'route',
    'status',
  ])
  const durations = histogramFamily(
    registry,
    'tollgate_request_duration_seconds',
    'Time from the head of a request to the last byte of its answer.',
    ['route'],
    durationBuckets,
  )
  const firstBytes = histogramFamily(
    registry,
    'tollgate_time_to_first_byte_seconds',
    "Time from the head of a request to the first byte of its answer's body.",
    ['route'],
    durationBuckets,
  )
  const tokenUsage = histogramFamily(
    registry,
    'gen_ai_client_token_usage',
    'Tokens per LLM call by type.',
    ['gen_ai_token_type', 'gen_ai_request_model', 'gen_ai_provider_name', 'key_group'],
    tokenBuckets,
  )
  const operations = histogramFamily(
    registry,
    'gen_ai_client_operation_duration_seconds',
    'Duration of LLM calls, the last byte included.',
    ['gen_ai_request_model', 'gen_ai_provider_name'],
    durationBuckets,
  )
  const firstTokens = histogramFamily(
    registry,
    'gen_ai_server_time_to_first_token_seconds',
    'Time to the first byte of the answer of LLM calls.',
    ['gen_ai_request_model', 'gen_ai_provider_name'],
    durationBuckets,
  )
  const estimates = counterFamily(
    registry,
    'tollgate_usage_estimated_total',
    'LLM calls whose answer ended without usage, so that it was estimated.',
    ['model', 'provider'],
  )
  const costs = costFamily(
    registry,
    'tollgate_llm_cost_usd_total',
    'US dollars that LLM calls have cost by the catalog of models.',
    ['model', 'provider', 'group'],
  )
  const unknownCosts = counterFamily(
    registry,
    'tollgate_llm_cost_unknown_total',
    'LLM calls whose cost the catalog does not tell: no such model, or no price for what was used of it.',
    ['model', 'provider', 'reason'],
  )
  const upstreamErrors = counterFamily(
    registry,
    'tollgate_upstream_errors_total',
    'Calls to an upstream that failed or were answered with an error.',
    ['model', 'provider', 'code'],
  )
  const limits = counterFamily(registry, 'tollgate_limit_decisions_total', 'Decisions of rate limits.', [
    'limit',
    'decision',
  ])
  const globalChecks = counterFamily(
    registry,
    'tollgate_global_limit_checks_total',
    'Questions to rate limit services, by what they came to.',
    ['limit', 'outcome'],
  )
  const globalReports = counterFamily(
    registry,
    'tollgate_global_limit_reports_total',
    'Reports of tokens to rate limit services, by what became of them.',
    ['limit', 'outcome'],
  )
  const globalReportsPending = counterFamily(
    registry,
    'tollgate_global_limit_reports_pending',
    'Reports of tokens on their way to rate limit services.',
    ['limit'],
    'gauge',
  )
  const rules = counterFamily(
    registry,
    'tollgate_authorization_refusals_total',
    'Requests that an authorization rule refused.',
    ['rule'],
  )
  const guardChecks = counterFamily(
    registry,
    'tollgate_guardrail_checks_total',
    'Checks of content by guardrails, by what they came to.',
    ['guard', 'phase', 'outcome'],
  )
  const guardDurations = histogramFamily(
    registry,
    'tollgate_guardrail_duration_seconds',
    'Duration of checks by guardrails.',
    ['guard'],
    durationBuckets,
  )
  const tcpOpen = counterFamily(
    registry,
    'tollgate_tcp_connections_open',
    'TCP connections that are open.',
    ['route'],
    'gauge',
  )
  const tcpClosed = counterFamily(
    registry,
    'tollgate_tcp_connections_total',
    'TCP connections that have ended, by how.',
    ['route', 'outcome'],
  )
  const tcpBytes = counterFamily(
    registry,
    'tollgate_tcp_bytes_total',
    'Bytes passed on between TCP clients and backends.',
    ['route', 'direction'],
  )
  const admissionInUse = counterFamily(
    registry,
    'tollgate_admission_in_use',
    'What clients occupy of each bound of config.limits.',
    ['resource'],
    'gauge',
  )
  const admissionRefusals = counterFamily(
    registry,
    'tollgate_admission_refusals_total',
    'Connections, requests and calls refused by a bound of config.limits.',
    ['resource'],
  )
  const synchronized = counterFamily(
    registry,
    'tollgate_config_synchronized',
    '1 when the running configuration is that of its sources, 0 after a rejected change or while the database is away.',
    [],
    'gauge',
  ).slot()
  const database = counterFamily(
    registry,
    'tollgate_config_database_connected',
    '1 while the database of config resources answers, 0 during an outage. Absent without a database.',
    [],
    'gauge',
  )

  const routes = createMeters<RouteMeter>((name) => {
    const byStatus = new Map<number, CounterSlot>()
    let duration: HistogramSlot | undefined
    let firstByte: HistogramSlot | undefined
    return {
      meter: {
        done(status, durationMs, firstByteMs) {
          let counter = byStatus.get(status)
          if (!counter) {
            counter = requests.slot(name, statusLabel(status))
            byStatus.set(status, counter)
          }
          counter.value += 1
          // Not before the first request: of 10,000 routes few may be asked for, and all would be told with every scrape.
          duration ??= durations.slot(name)
          observe(duration, durationBuckets, durationMs / 1000)
          if (firstByteMs === undefined) return
          firstByte ??= firstBytes.slot(name)
          observe(firstByte, durationBuckets, firstByteMs / 1000)
        },
      },
      drop() {
        for (const status of byStatus.keys()) requests.drop(name, statusLabel(status))
        durations.drop(name)
        firstBytes.drop(name)
      },
    }
  })
  const tcpRoutes = createMeters<TcpMeter>((route) => {
    const open = tcpOpen.slot(route)
    const received = tcpBytes.slot(route, 'received')
    const sent = tcpBytes.slot(route, 'sent')
    const outcomes = new Set<TcpOutcome>()
    return {
      meter: {
        opened() {
          open.value += 1
        },
        closed(outcome) {
          open.value -= 1
          outcomes.add(outcome)
          tcpClosed.slot(route, outcome).value += 1
        },
        received(bytes) {
          received.value += bytes
        },
        sent(bytes) {
          sent.value += bytes
        },
      },
      drop() {
        tcpOpen.drop(route)
        tcpBytes.drop(route, 'received')
        tcpBytes.drop(route, 'sent')
        for (const outcome of outcomes) tcpClosed.drop(route, outcome)
      },
    }
  })

  return {
    route: routes,
    tcp: tcpRoutes,
    llm(model, provider) {
      const duration = operations.slot(model, provider)
      const firstToken = firstTokens.slot(model, provider)
      const estimated = estimates.slot(model, provider)
      const byGroup = new Map<string, Record<'input' | 'output' | 'cached', HistogramSlot>>()
      function slotsOf(group: string) {
        const known = byGroup.get(group)
        if (known) return known
        const slot = (type: string) => tokenUsage.slot(type, model, provider, group)
        const created = { input: slot('input'), output: slot('output'), cached: slot('input_cache_read') }
        byGroup.set(group, created)
        return created
      }
      return {
        done(durationMs, firstByteMs) {
          observe(duration, durationBuckets, durationMs / 1000)
          if (firstByteMs !== undefined) observe(firstToken, durationBuckets, firstByteMs / 1000)
        },
        tokens(usage, keyGroup) {
          const slots = slotsOf(keyGroup)
          observe(slots.input, tokenBuckets, usage.inputTokens)
          observe(slots.output, tokenBuckets, usage.outputTokens)
          if (usage.cachedInputTokens > 0) observe(slots.cached, tokenBuckets, usage.cachedInputTokens)
          if (usage.estimated) estimated.value += 1
        },
        upstreamError(code) {
          upstreamErrors.slot(model, provider, code).value += 1
        },
        cost(amount, keyGroup) {
          const slot = costs.slot(model, provider, keyGroup)
          slot.picodollars += amount
          slot.value = Number(slot.picodollars) / 1e12
        },
        unknownCost(reason) {
          unknownCosts.slot(model, provider, reason).value += 1
        },
      }
    },
    admission(resource) {
      const inUse = admissionInUse.slot(resource)
      const refusals = admissionRefusals.slot(resource)
      return {
        changed(by) {
          inUse.value += by
        },
        refused() {
          refusals.value += 1
        },
      }
    },
    limit(name) {
      const allowed = limits.slot(name, 'allowed')
      const refused = limits.slot(name, 'refused')
      return {
        allowed() {
          allowed.value += 1
        },
        refused() {
          refused.value += 1
        },
      }
    },
    globalLimit(name) {
      const pending = globalReportsPending.slot(name)
      return {
        checked(outcome) {
          globalChecks.slot(name, outcome).value += 1
        },
        reported(outcome) {
          globalReports.slot(name, outcome).value += 1
        },
        pending(change) {
          pending.value += change
        },
      }
    },
    rule(name) {
      const refusals = rules.slot(name)
      return {
        refused() {
          refusals.value += 1
        },
      }
    },
    guard(name) {
      const duration = guardDurations.slot(name)
      const counters = new Map<string, CounterSlot>()
      return {
        checked(phase, outcome, durationMs) {
          const key = phase + outcome
          let counter = counters.get(key)
          if (counter === undefined) {
            counter = guardChecks.slot(name, phase, outcome)
            counters.set(key, counter)
          }
          counter.value += 1
          if (outcome !== 'skipped') observe(duration, durationBuckets, durationMs / 1000)
        },
      }
    },
    configSynchronized(value) {
      synchronized.value = value ? 1 : 0
    },
    configDatabase(connected) {
      database.slot().value = connected ? 1 : 0
    },
    async render() {
      return { contentType: registry.contentType, text: await registry.metrics() }
    },
  }
}

/** Webhooks and upstreams may send any number; series stay bounded by the numbers HTTP defines. */
function statusLabel(status: number): string {
  return status >= 100 && status <= 599 ? String(status) : 'other'
}

/** Finds the bucket by walking up: most values fall into the first few. */
function observe(slot: HistogramSlot, boundaries: readonly number[], value: number): void {
  let index = 0
  while (index < boundaries.length && value > (boundaries[index] ?? 0)) index += 1
  slot.counts[index] = (slot.counts[index] ?? 0) + 1
  slot.sum += value
}

/**
 * One meter for each name, for as long as a snapshot or a request holds it. Its series go with it: else a scrape would
 * tell of every route there ever was. `drop` must not hold the meter.
 */
function createMeters<Meter extends object>(
  create: (name: string) => { meter: Meter; drop(): void },
): (name: string) => Meter {
  const meters = new Map<string, WeakRef<Meter>>()
  const dropped = new FinalizationRegistry<{ name: string; drop(): void }>(({ name, drop }) => {
    // Unless the name has come back in the meantime.
    if (meters.get(name)?.deref() !== undefined) return
    meters.delete(name)
    drop()
  })
  return (name) => {
    const known = meters.get(name)?.deref()
    if (known !== undefined) return known
    const { meter, drop } = create(name)
    meters.set(name, new WeakRef(meter))
    dropped.register(meter, { name, drop })
    return meter
  }
}

function createSlots<Slot>(create: () => Slot) {
  const slots = new Map<string, { labels: Labels; slot: Slot }>()
  return {
    all: () => slots.values(),
    find(labels: Labels): Slot {
      const key = labels.join('\u0000')
      const known = slots.get(key)
      if (known) return known.slot
      const created = { labels, slot: create() }
      slots.set(key, created)
      return created.slot
    },
    drop(labels: Labels): void {
      slots.delete(labels.join('\u0000'))
    },
  }
}

type Sample = { metricName?: string; labels: Record<string, string>; value: number }

/** Adds a metric that prom-client renders from our slots each time it is asked. */
function register(
  registry: Registry,
  name: string,
  help: string,
  type: string,
  values: () => Sample[],
): void {
  const metric = {
    name,
    help,
    type,
    aggregator: 'sum',
    get: async () => ({ name, help, type, aggregator: 'sum', values: values() }),
  }
  registry.registerMetric(metric as unknown as Parameters<Registry['registerMetric']>[0])
}

function named(names: readonly string[], labels: Labels): Record<string, string> {
  return Object.fromEntries(names.map((name, index) => [name, labels[index] ?? '']))
}

function counterFamily(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly string[],
  type = 'counter',
): Family<CounterSlot> {
  return valueFamily(registry, { name, help, labelNames, type }, () => ({ value: 0 }))
}

function costFamily(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly string[],
): Family<CostSlot> {
  return valueFamily(registry, { name, help, labelNames, type: 'counter' }, () => ({
    value: 0,
    picodollars: 0n,
  }))
}

type Description = { name: string; help: string; labelNames: readonly string[]; type: string }

function valueFamily<Slot extends CounterSlot>(
  registry: Registry,
  { name, help, labelNames, type }: Description,
  create: () => Slot,
): Family<Slot> {
  const slots = createSlots<Slot>(create)
  register(registry, name, help, type, () =>
    [...slots.all()].map(({ labels, slot }) => ({ labels: named(labelNames, labels), value: slot.value })),
  )
  return { slot: (...labels) => slots.find(labels), drop: (...labels) => slots.drop(labels) }
}

function histogramFamily(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly string[],
  boundaries: readonly number[],
): Family<HistogramSlot> {
  const slots = createSlots<HistogramSlot>(() => ({
    counts: new Array(boundaries.length + 1).fill(0),
    sum: 0,
  }))
  register(registry, name, help, 'histogram', () =>
    [...slots.all()].flatMap(({ labels, slot }) =>
      histogramSamples(name, named(labelNames, labels), slot, boundaries),
    ),
  )
  return { slot: (...labels) => slots.find(labels), drop: (...labels) => slots.drop(labels) }
}

function histogramSamples(
  name: string,
  labels: Record<string, string>,
  { counts, sum }: HistogramSlot,
  boundaries: readonly number[],
): Sample[] {
  let total = 0
  const buckets = counts.map((count, index) => {
    total += count
    const le = index < boundaries.length ? String(boundaries[index]) : '+Inf'
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: total }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: total },
  ]
}
