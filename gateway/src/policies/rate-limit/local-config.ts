import { checkCel } from '../../cel/checked.ts'
import { parseDuration } from '../../lib/duration.ts'
import { allowanceSchema, unitMs } from '../../pipeline/keys/allowance.ts'
import {
  anyOfShapes,
  cel,
  duration,
  enumeration,
  type Infer,
  integer,
  list,
  name,
  object,
  optional,
} from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import type { Rate } from './bucket.ts'

/** CEL variables of limit keys. Some require the body: `needsBody` of `pipeline/rules`. */
export const keyVariables: ReadonlySet<string> = new Set([
  'now',
  'request',
  'request.body',
  'source',
  'jwt',
  'basicAuth',
  'apiKey',
  'llmRequest',
  'llm',
  'mcp',
])

/**
 * Whether a key is exactly the client address. A client owns a whole IPv6 /64, so such keys count by network
 * (`lib/address/client-network.ts`). Any other expression, such as `string(source.address)`, counts by its
 * value.
 */
export function isAddressKey(source: string): boolean {
  return /^\s*source\s*\.\s*address\s*$/.test(source)
}

/** `appliesTo` of limits and of `policies.ai`. */
export const appliesToSchema = enumeration(['llm'], {
  doc: '`llm`: only for requests to LLM providers, without effect on other routes. For policies that are attached to routes of several kinds.',
  default: 'all requests',
  advanced: true,
})

/** Fields of a limit that are independent of its form. */
export const limitFields = {
  key: optional(
    cel(
      {
        doc: 'Expression with a separate count per value. Requests without a value share one count. With `mcp` in it, the limit counts messages to MCP targets, by `mcp.tool.name` for example only calls of tools. `source.address` counts IPv6 clients by /64; `string(source.address)` counts single addresses.',
        example: 'apiKey.id',
      },
      [...keyVariables],
    ),
  ),
  name: optional(
    name({
      doc: 'Name in metrics and logs. A named limit retains its count if its unit changes.',
      example: 'per-key tokens',
      advanced: true,
    }),
  ),
}

const commonFields = {
  scope: optional(
    enumeration(['process', 'shared'], {
      doc: 'Processes with a common count. `shared`: all that use the same database, `config.logging.database` or `config.database`.',
      default: 'process',
    }),
  ),
  appliesTo: optional(appliesToSchema),
  id: optional(
    name({
      doc: 'Identity of the count. Limits with the same `id` share one count over gateways, listeners and routes, and must be equal.',
      default: 'the place and content of the limit',
      example: 'team-search',
      advanced: true,
    }),
  ),
  ...limitFields,
}

const perUnit = allowanceSchema(commonFields)

const perInterval = object(
  {
    type: optional(enumeration(['requests', 'tokens'], { doc: 'Counted unit.', default: 'requests' })),
    maxTokens: integer({ doc: 'Capacity of the bucket; at least `tokensPerFill`.' }, { min: 1 }),
    tokensPerFill: integer({ doc: 'Units added after each interval.' }, { min: 1 }),
    fillInterval: duration({ doc: 'Time between two refills.', example: '60s' }),
    ...commonFields,
  },
  { doc: 'Token bucket by capacity, refill and interval.' },
)

/** A limit of `localRateLimit`. */
export const limitSchema = anyOfShapes([perUnit, perInterval], {
  doc: 'Limit as an allowance per unit of time or as a token bucket.',
})

export const localRateLimitSchema = list(limitSchema, {
  doc: 'Limits counted by this process. A request must pass all of them.',
})

export type LocalRateLimitConfig = Infer<typeof localRateLimitSchema>
type Entry = LocalRateLimitConfig[number]

/** Limit rule, normalised from both configuration forms. */
export type LimitRule = {
  readonly counts: 'requests' | 'tokens'
  readonly rate: Rate
  readonly key: string | undefined
  readonly name: string | undefined
  readonly id: string | undefined
  readonly appliesTo: 'llm' | undefined
  /** Whether the processes of a database have a common count. */
  readonly isShared: boolean
}

export function limitRule(entry: Entry): LimitRule {
  const { key, name, id, appliesTo } = entry
  const isShared = entry.scope === 'shared'
  if ('fillInterval' in entry) {
    // The schema validates the form; `checkLocalRateLimit` rejects an interval of 0.
    const intervalMs = Math.max(1, parseDuration(entry.fillInterval) ?? 1)
    const rate = { capacity: entry.maxTokens, refill: entry.tokensPerFill, intervalMs }
    return { counts: entry.type ?? 'requests', rate, key, name, id, appliesTo, isShared }
  }
  const counts = entry.requests !== undefined ? 'requests' : 'tokens'
  const refill = entry.requests !== undefined ? entry.requests : entry.tokens
  const rate = { capacity: refill + (entry.burst ?? 0), refill, intervalMs: unitMs[entry.unit] }
  return { counts, rate, key, name, id, appliesTo, isShared }
}

/** Whether a limit counts tokens. */
export function countsTokens(entry: Entry): boolean {
  return limitRule(entry).counts === 'tokens'
}

/** Whether a limit has no effect on requests without an LLM provider. */
export function isLlmOnly(entry: Entry): boolean {
  return entry.appliesTo === 'llm' || countsTokens(entry)
}

/** `requests per minute`, `tokens per 10s by apiKey.id`, `llm requests per second`. */
export function describeRule({ counts, rate, key, appliesTo, isShared }: LimitRule): string {
  const by = key === undefined ? '' : ` by ${key}`
  const of = appliesTo === undefined ? '' : `${appliesTo} `
  const shared = isShared ? 'shared ' : ''
  return `${shared}${of}${counts} per ${intervalWords(rate.intervalMs)}${by}`
}

function intervalWords(intervalMs: number): string {
  switch (intervalMs) {
    case unitMs.Seconds:
      return 'second'
    case unitMs.Minutes:
      return 'minute'
    case unitMs.Hours:
      return 'hour'
    default:
      return intervalMs % 1000 === 0 ? `${intervalMs / 1000}s` : `${intervalMs}ms`
  }
}

/**
 * Reports errors beyond the schema: bucket sizes, duplicate names, keys with variables outside those of
 * `variablesOf`.
 */
export function checkLocalRateLimit(
  config: LocalRateLimitConfig,
  variablesOf: (entry: Entry) => ReadonlySet<string>,
  report: ReportIssue,
) {
  const names = new Map<string, number>()
  const ids = new Map<string, number>()
  config.forEach((entry, index) => {
    const same = entry.id === undefined ? undefined : ids.get(entry.id)
    if (same !== undefined) report([index, 'id'], `limit ${same + 1} of this list has the same id`)
    if (entry.id !== undefined) ids.set(entry.id, same ?? index)
    checkSize(entry, (field, message) => report([index, field], message))
    if (entry.key !== undefined) {
      checkCel(entry.key, variablesOf(entry), (message) => report([index, 'key'], message))
    }
    if (entry.name === undefined) return
    const first = names.get(entry.name)
    if (first !== undefined) report([index, 'name'], `limit ${first + 1} of this list has the same name`)
    names.set(entry.name, first ?? index)
  })
}

function checkSize(entry: Entry, report: (field: string, message: string) => void) {
  if ('fillInterval' in entry) {
    if (parseDuration(entry.fillInterval) === 0) report('fillInterval', 'must be greater than 0')
    if (entry.maxTokens < entry.tokensPerFill) {
      report('maxTokens', `must be at least tokensPerFill, which is ${entry.tokensPerFill}`)
    }
    return
  }
  if (!Number.isSafeInteger(limitRule(entry).rate.capacity)) {
    report('burst', 'sum of base and burst is too large')
  }
}
