import { referencesField, referencesVariable } from '../../cel/references.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { McpCheck, McpRequest, McpVerdict } from '../../pipeline/mcp/mcp-check.ts'
import type { McpItemKind } from '../../pipeline/mcp/mcp-item.ts'
import type { Policy } from '../../pipeline/policy.ts'
import type { GlobalRateLimitConfig } from './global/config.ts'
import { compileGlobalRateLimit } from './global/global.ts'
import { compileLocalRateLimit } from './local.ts'
import type { LocalRateLimitConfig } from './local-config.ts'
import { requestLimitsOf } from './request-limits.ts'

/** JSON-RPC code of exhausted limits, as of other gateways: the specification has none. */
const limitExceeded = -32003
const internalError = -32603

/** Whether a local limit counts messages to MCP targets: its key reads `mcp`. */
export function countsMessages({ key }: LocalRateLimitConfig[number]): boolean {
  return key !== undefined && referencesVariable(key, 'mcp')
}

/** Whether a descriptor counts messages to MCP targets. */
export function describesMessages({
  entries,
  cost,
  limitOverride,
}: GlobalRateLimitConfig['descriptors'][number]): boolean {
  const sources = [...entries.map(({ value }) => value), cost, limitOverride]
  return sources.some((source) => source !== undefined && referencesVariable(source, 'mcp'))
}

export type MessageLimits = {
  readonly local: LocalRateLimitConfig
  /** With descriptors of messages only. */
  readonly remote: GlobalRateLimitConfig | undefined
  readonly scope: string
}

/** Compiles the limits of a scope that count messages to MCP targets; undefined without any. */
export function compileMessageLimits(
  { local, remote, scope }: MessageLimits,
  context: CompileContext,
): McpCheck | undefined {
  const groups = Map.groupBy(local, ({ key = '' }) => itemKindsOf(key).join(' '))
  const steps: Step[] = [...groups.values()].flatMap((limits) => {
    const kinds = itemKindsOf(limits[0]?.key ?? '')
    const { beforeBody: policy } = compileLocalRateLimit(limits, context, { scope })
    return policy === undefined ? [] : [{ kinds, policy }]
  })
  const service = remote && compileGlobalRateLimit(remote, context, { scope, hasTokens: false }).beforeBody
  // A descriptor without a value does not count, so it needs no kinds.
  if (service !== undefined) steps.push({ kinds: [], policy: service })
  if (steps.length === 0) return undefined
  return {
    name: 'limits of messages',
    onRequest(exchange, request) {
      // Earlier messages of the same HTTP request were sent, so a refusal does not return their units.
      requestLimitsOf(exchange).reservations.length = 0
      return admit(exchange, request, steps)
    },
  }
}

/** `kinds`: items whose use counts; each message without any. */
type Step = { readonly kinds: readonly McpItemKind[]; readonly policy: Policy }

const itemKinds = ['tool', 'prompt', 'resource'] as const

/** Kinds of items that a key reads. A limit by tool does not count other messages. */
function itemKindsOf(key: string): readonly McpItemKind[] {
  return itemKinds.filter((kind) => referencesField(key, 'mcp', kind))
}

/** Local limits come first, because they need no call. */
function admit(
  exchange: Exchange,
  { item }: McpRequest,
  steps: readonly Step[],
): McpVerdict | Promise<McpVerdict | undefined> | undefined {
  for (const { kinds, policy } of steps) {
    if (kinds.length > 0 && (item === undefined || !kinds.includes(item.kind))) continue
    const reply = policy.onRequest?.(exchange)
    // Only the last step waits.
    if (reply instanceof Promise) return reply.then(verdictOf)
    if (reply !== undefined) return verdictOf(reply)
  }
  return undefined
}

function verdictOf(reply: Reply | undefined): McpVerdict | undefined {
  if (reply === undefined) return undefined
  const { status, headers } = reply
  if (status >= 500) return { kind: 'refuse', status, code: internalError, message: 'rate limit failed' }
  const seconds = Number(headers['retry-after'])
  const data = Number.isFinite(seconds) && seconds > 0 ? { retryAfterSeconds: seconds } : undefined
  const hint = data === undefined ? '' : `: retry after ${seconds} s`
  return { kind: 'refuse', status: 429, code: limitExceeded, message: `rate limit exceeded${hint}`, data }
}
