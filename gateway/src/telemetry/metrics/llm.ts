import { dollarsOf } from '../../lib/picodollars.ts'
import type { LiveMeter } from '../live/live-counts.ts'
import { durationBuckets, tokenBuckets } from './buckets.ts'
import {
  type HistogramSlot,
  type MetricRegistry,
  type ObservedTrace,
  observe,
  type ValueSlot,
} from './families.ts'

/** Token counts of one LLM call; `estimated` if the response reported no usage. */
export type MeteredTokens = {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedInputTokens: number
  readonly estimated: boolean
}

/** Meter of one kind of calls, such as `chat`, of one configured model at one provider. */
export type LlmOperationMeter = {
  /**
   * `labels` are values of the labels of the configuration, here and below; undefined without any. `trace` is
   * that of the request, for exemplars; undefined if tracing is off.
   */
  done(
    durationMs: number,
    firstByteMs: number | undefined,
    labels?: readonly string[],
    trace?: ObservedTrace,
  ): void
  /** Counts tokens by type; `keyGroup` is configuration, never client input. */
  tokens(usage: MeteredTokens, keyGroup: string, labels?: readonly string[]): void
}

/** Meter of one configured model at one provider. */
export type LlmMeter = {
  /** `name` is one of the operations of the gateway, never client input. */
  operation(name: string): LlmOperationMeter
  upstreamError(code: string): void
  /** Counts a call that waited for a slot of the model, or was refused for lack of one. */
  queued(outcome: 'served' | 'refused'): void
  /** Counts a second request of a streamed call: whether it was the first with content. */
  hedged(outcome: 'won' | 'lost'): void
  /** Adds the cost of a call, in picodollars (10^-12 US dollars). */
  cost(amount: bigint, keyGroup: string, labels?: readonly string[]): void
  /** Counts a call without a price in the catalog. */
  unknownCost(reason: 'unpriced' | 'missing'): void
}

/** `picodollars` is the exact sum, `value` its rendered form. */
type CostSlot = ValueSlot & { picodollars: bigint }

export function createLlmMeters(
  registry: MetricRegistry,
  live: LiveMeter,
): (model: string, provider: string) => LlmMeter {
  const families = createFamilies(registry)
  return (model, provider) => {
    const byOperation = new Map<string, LlmOperationMeter>()
    return {
      operation(name) {
        const known = byOperation.get(name)
        if (known) return known
        const created = createOperationMeter(families, [name, model, provider], live)
        byOperation.set(name, created)
        return created
      },
      upstreamError(code) {
        families.upstreamErrors.slot(model, provider, code).value += 1
      },
      queued(outcome) {
        families.queued.slot(model, provider, outcome).value += 1
      },
      hedged(outcome) {
        families.hedges.slot(model, provider, outcome).value += 1
      },
      cost(amount, keyGroup, labels = []) {
        const slot = families.costs.slot(model, provider, keyGroup, ...labels)
        slot.picodollars += amount
        slot.value = dollarsOf(slot.picodollars)
        live.cost(dollarsOf(amount))
      },
      unknownCost(reason) {
        families.unknownCosts.slot(model, provider, reason).value += 1
      },
    }
  }
}

type Families = ReturnType<typeof createFamilies>

function createOperationMeter(
  families: Families,
  [operation, model, provider]: readonly [operation: string, model: string, provider: string],
  live: LiveMeter,
): LlmOperationMeter {
  const timesOf = (labels: readonly string[]) => ({
    duration: families.operations.slot(operation, model, provider, ...labels),
    firstToken: families.firstTokens.slot(operation, model, provider, ...labels),
  })
  const plain = timesOf([])
  const estimated = families.estimates.slot(model, provider)
  const tokensOf = createTokenSlots((type, ...labels) =>
    families.tokens.slot(type, operation, model, provider, ...labels),
  )
  return {
    done(durationMs, firstByteMs, labels, trace) {
      const { duration, firstToken } = labels === undefined ? plain : timesOf(labels)
      observe(duration, durationBuckets, durationMs / 1000, trace)
      if (firstByteMs !== undefined) observe(firstToken, durationBuckets, firstByteMs / 1000, trace)
    },
    tokens(usage, keyGroup, labels) {
      const slots = labels === undefined ? tokensOf(keyGroup) : tokensOf(keyGroup, ...labels)
      observe(slots.input, tokenBuckets, usage.inputTokens)
      observe(slots.output, tokenBuckets, usage.outputTokens)
      if (usage.cachedInputTokens > 0) observe(slots.cached, tokenBuckets, usage.cachedInputTokens)
      if (usage.estimated) estimated.value += 1
      live.tokens(usage.inputTokens, usage.outputTokens)
    },
  }
}

type TokenSlots = Record<'input' | 'output' | 'cached', HistogramSlot>

/** Slots of token counts by key group and labels of the configuration. */
function createTokenSlots(
  slot: (type: string, ...labels: string[]) => HistogramSlot,
): (...labels: string[]) => TokenSlots {
  const byLabels = new Map<string, TokenSlots>()
  return (...labels) => {
    const key = labels.length === 1 ? (labels[0] ?? '') : labels.join('\u0000')
    const known = byLabels.get(key)
    if (known) return known
    const created = {
      input: slot('input', ...labels),
      output: slot('output', ...labels),
      cached: slot('input_cache_read', ...labels),
    }
    byLabels.set(key, created)
    return created
  }
}

function createFamilies(registry: MetricRegistry) {
  return {
    tokens: registry.histogram(
      {
        name: 'gen_ai_client_token_usage',
        help: 'Tokens per LLM call by type.',
        labels: [
          ...['gen_ai_token_type', 'gen_ai_operation_name', 'gen_ai_request_model'],
          ...['gen_ai_provider_name', 'key_group'],
        ],
        extensible: true,
      },
      tokenBuckets,
    ),
    operations: registry.histogram(
      {
        name: 'gen_ai_client_operation_duration_seconds',
        help: 'Duration of LLM calls, including the last byte.',
        labels: ['gen_ai_operation_name', 'gen_ai_request_model', 'gen_ai_provider_name'],
        extensible: true,
      },
      durationBuckets,
    ),
    firstTokens: registry.histogram(
      {
        name: 'gen_ai_server_time_to_first_token_seconds',
        help: 'Time to the first byte of the response of LLM calls.',
        labels: ['gen_ai_operation_name', 'gen_ai_request_model', 'gen_ai_provider_name'],
        extensible: true,
      },
      durationBuckets,
    ),
    estimates: registry.counter({
      name: 'tollgate_usage_estimated_total',
      help: 'LLM calls with estimated usage, because the response reported none.',
      labels: ['model', 'provider'],
    }),
    costs: registry.counterOf<CostSlot>(
      {
        name: 'tollgate_llm_cost_usd_total',
        help: 'Cost of LLM calls in US dollars by the model catalog.',
        labels: ['model', 'provider', 'group'],
        extensible: true,
      },
      () => ({ value: 0, picodollars: 0n }),
    ),
    unknownCosts: registry.counter({
      name: 'tollgate_llm_cost_unknown_total',
      help: 'LLM calls without a cost: the catalog has no such model, or no price for its usage.',
      labels: ['model', 'provider', 'reason'],
    }),
    queued: registry.counter({
      name: 'tollgate_llm_queued_total',
      help: 'LLM calls that found all concurrent requests of a model in use: served after a wait, or refused.',
      labels: ['model', 'provider', 'outcome'],
    }),
    hedges: registry.counter({
      name: 'tollgate_llm_hedges_total',
      help: 'Second requests of streamed LLM calls without content after a delay: won, or lost against the first.',
      labels: ['model', 'provider', 'outcome'],
    }),
    upstreamErrors: registry.counter({
      name: 'tollgate_upstream_errors_total',
      help: 'Calls to an upstream that failed or returned an error.',
      labels: ['model', 'provider', 'code'],
    }),
  }
}

/** Meter of the response cache of one configured model. */
export type CacheMeter = {
  counted(result: 'hit' | 'miss'): void
  /** Meter of one store of the data plane, which counts until it is collected together with the store. */
  store(): StoreMeter
}

export type StoreMeter = {
  /** Memory and number of stored responses. */
  stored(bytes: number, entries: number): void
}

/** Meter of a data plane for the response cache in the database. */
export type DatabaseCacheMeter = {
  read(result: 'hit' | 'miss' | 'failed' | 'skipped'): void
  wrote(result: 'stored' | 'failed' | 'dropped'): void
}

/** Meter of the process for the database of the response cache. */
export type CacheDatabaseMeter = {
  connected(isConnected: boolean): void
  /** Rows of all processes. */
  stored(totals: { readonly entries: number; readonly bytes: number }): void
}

export function createDatabaseCacheMeters(registry: MetricRegistry): {
  databaseCache(): DatabaseCacheMeter
  cacheDatabase(): CacheDatabaseMeter
} {
  const reads = registry.counter({
    name: 'tollgate_llm_cache_database_reads_total',
    help: 'Lookups of LLM calls in the database of the response cache by result.',
    labels: ['result'],
  })
  const writes = registry.counter({
    name: 'tollgate_llm_cache_database_writes_total',
    help: 'Responses for the database of the response cache by result.',
    labels: ['result'],
  })
  const gauge = (name: string, help: string) => registry.gauge({ name, help, labels: [] })
  const connected = gauge(
    'tollgate_llm_cache_database_connected',
    '1 if the database of the response cache is available, 0 if not. Absent before its first use.',
  )
  const bytes = gauge('tollgate_llm_cache_database_bytes', 'Responses in the database of the response cache.')
  const entries = gauge(
    'tollgate_llm_cache_database_entries',
    'Number of responses in the database of the response cache.',
  )
  return {
    databaseCache: () => ({
      read(result) {
        reads.slot(result).value += 1
      },
      wrote(result) {
        writes.slot(result).value += 1
      },
    }),
    cacheDatabase: () => ({
      connected(isConnected) {
        connected.slot().value = isConnected ? 1 : 0
      },
      stored(totals) {
        bytes.slot().value = totals.bytes
        entries.slot().value = totals.entries
      },
    }),
  }
}

type StoreContent = { readonly model: string; bytes: number; entries: number }

export function createCacheMeters(registry: MetricRegistry): (model: string) => CacheMeter {
  const requests = registry.counter({
    name: 'tollgate_llm_cache_requests_total',
    help: 'LLM calls with a response cache by result.',
    labels: ['model', 'result'],
  })
  const size = registry.gauge({
    name: 'tollgate_llm_cache_bytes',
    help: 'Memory of stored responses.',
    labels: ['model'],
  })
  const count = registry.gauge({
    name: 'tollgate_llm_cache_entries',
    help: 'Stored responses.',
    labels: ['model'],
  })
  const stores = new Map<string, number>()
  const add = ({ model, bytes, entries }: StoreContent, sign: 1 | -1) => {
    size.slot(model).value += sign * bytes
    count.slot(model).value += sign * entries
  }
  const collected = new FinalizationRegistry<StoreContent>((content) => {
    add(content, -1)
    const others = (stores.get(content.model) ?? 0) - 1
    stores.set(content.model, others)
    if (others > 0) return
    stores.delete(content.model)
    size.drop(content.model)
    count.drop(content.model)
  })
  return (model) => ({
    counted(result) {
      requests.slot(model, result).value += 1
    },
    store() {
      const content: StoreContent = { model, bytes: 0, entries: 0 }
      const meter: StoreMeter = {
        stored(bytes, entries) {
          add(content, -1)
          content.bytes = bytes
          content.entries = entries
          add(content, 1)
        },
      }
      stores.set(model, (stores.get(model) ?? 0) + 1)
      collected.register(meter, content)
      return meter
    },
  })
}
