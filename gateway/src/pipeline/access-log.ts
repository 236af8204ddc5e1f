import type { Delivery } from '../net/http/incoming-request.ts'
import { describeError } from '../telemetry/log.ts'
import type { Exchange, ExtAuthzOutcome } from './exchange.ts'
import type { GuardDecision } from './recording/recording.ts'

/** Texts from clients are truncated, so that no request writes long lines. */
const maxLoggedCharacters = 200

/**
 * The access log line of a request: JSON with a newline. Fields without a value are omitted. Bodies, header
 * values and query strings are never logged, because they contain secrets and content.
 */
export function accessLine(exchange: Exchange, delivery: Delivery, time: string, endedAt: number): string {
  return `${JSON.stringify(accessFields(exchange, delivery, time, endedAt))}\n`
}

/** Fields of an access log line; those without a value are undefined. */
export function accessFields(
  exchange: Exchange,
  delivery: Delivery,
  time: string,
  endedAt: number,
): Record<string, unknown> {
  const { facts, route, startedAt, mcp, guards, log, trace } = exchange
  const { request, source, llm, usage, apiKey } = facts
  const { firstByteAt } = delivery
  const keyId = apiKey?.['id']
  return {
    level: 'info',
    time,
    msg: 'request',
    requestId: exchange.requestId,
    traceId: trace?.context.traceId,
    spanId: trace?.isSampled === true ? trace.context.spanId : undefined,
    method: truncate(request.method),
    path: truncate(request.path),
    route: route ? truncate(route.target.name) : '',
    status: delivery.status ?? 499,
    durationMs: round(endedAt - startedAt),
    bytesSent: delivery.bytesSent,
    firstByteMs: firstByteAt === undefined ? undefined : round(firstByteAt - startedAt),
    client: truncate(source.address),
    keyId: typeof keyId === 'string' ? truncate(keyId) : undefined,
    model: truncate(llm?.requestModel),
    stream: llm?.streaming,
    servedBy: truncate(llm?.configuredModel),
    provider: truncate(llm?.provider),
    attempts: log.attempts,
    cache: llm?.cache,
    settles: llm?.settles,
    inputTokens: usage?.inputTokens,
    outputTokens: usage?.outputTokens,
    totalTokens: usage?.totalTokens,
    cachedInputTokens: usage?.cachedInputTokens || undefined,
    reasoningTokens: usage?.reasoningTokens || undefined,
    tokensEstimated: usage?.estimated || undefined,
    costUsd: llm?.cost === undefined ? undefined : decimal(llm.cost),
    costStatus: llm?.costStatus,
    mcpMethod: truncate(mcp?.call?.method),
    mcpTarget: truncate(mcp?.call?.target),
    mcpItem: truncate(mcp?.call?.item),
    guards: guards?.map(guardFields),
    a2aMethod: truncate(facts.a2a?.method),
    extAuthz: exchange.extAuthz?.map(extAuthzFields),
    refusedBy: truncate(log.refusedBy),
    incomplete: delivery.complete ? undefined : true,
    error: log.failure === undefined ? undefined : describeError(log.failure),
  }
}

function extAuthzFields({ policy, outcome, from }: ExtAuthzOutcome): object {
  return { policy: truncate(policy), outcome, from }
}

function guardFields({ guard, phase, outcome, reason }: GuardDecision): object {
  return { guard: truncate(guard), phase, outcome, reason: truncate(reason) }
}

function truncate(text: string): string
function truncate(text: string | undefined): string | undefined
function truncate(text: string | undefined): string | undefined {
  if (text === undefined || text.length <= maxLoggedCharacters) return text
  return `${text.slice(0, maxLoggedCharacters)}…`
}

/** A number without an exponent, which some log readers do not parse. */
function decimal(dollars: number): unknown {
  if (!String(dollars).includes('e')) return dollars
  return JSON.rawJSON(dollars.toFixed(12).replace(/\.?0+$/, ''))
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100
}

/** Creates the timestamp of log lines: ISO 8601, formatted once per millisecond. */
export function createTimestamp(now: () => number): () => string {
  let formattedAt = -1
  let formatted = ''
  return () => {
    const milliseconds = now()
    if (milliseconds !== formattedAt) {
      formattedAt = milliseconds
      formatted = new Date(milliseconds).toISOString()
    }
    return formatted
  }
}
