import type { BudgetCharge, EntryDetails, LedgerEntry, TokenCounts } from '../../ledger/entry.ts'
import { firstHeader } from '../../net/http/headers.ts'
import type { Delivery } from '../../net/http/incoming-request.ts'
import type { Exchange, LogState } from '../exchange.ts'
import type { Usage } from '../facts/llm-facts.ts'
import type { AttemptRecord, GuardDecision, LimitDecision } from './recording.ts'
import type { StandardAttributes } from './standard-attributes.ts'

/** Inputs of an entry besides the exchange. */
export type EntryInputs = {
  /** `Clock.monotonic()` at the end of the exchange. */
  readonly endedAt: number
  /** Milliseconds since the epoch at the end of the exchange. */
  readonly completedAt: number
  readonly attributes: StandardAttributes
}

/**
 * Whether a finished request belongs in the ledger: LLM requests, and MCP messages of clients, also refused
 * ones. Lists of models, preflights, metadata documents and streams without a call do not.
 */
export function isRecorded({ route, llm, mcp, log, facts: { request } }: Exchange): boolean {
  if (route?.target.traffic === 'llm') {
    if (llm !== undefined) return llm.operation.operation !== 'list_models'
  } else if (mcp?.call !== undefined) return true
  return request.method === 'POST' && log.refusedBy !== undefined
}

/** Creates the entry of a finished request. It contains neither credentials nor header values. */
export function ledgerEntry(
  exchange: Exchange,
  delivery: Delivery,
  { endedAt, completedAt, attributes }: EntryInputs,
): LedgerEntry {
  const { facts, route, log, mcp, recording } = exchange
  const { request, llm, usage, apiKey } = facts
  const target = route?.target
  const kind = target?.traffic ?? 'llm'
  const durationMs = round(endedAt - exchange.startedAt)
  const { firstByteAt, status = 499 } = delivery
  const attempts = recording?.attempts
  const last = attempts?.findLast(({ sent }) => sent)
  return {
    id: exchange.requestId ?? '',
    kind,
    startedAt: request.arrivedAt ?? completedAt - Math.round(durationMs),
    completedAt,
    durationMs,
    firstByteMs: firstByteAt === undefined ? undefined : round(firstByteAt - exchange.startedAt),
    status,
    errorCode: truncated(errorCodeOf(log, delivery)),
    refusedBy: truncated(log.refusedBy),
    method: truncated(request.method),
    path: truncated(request.path),
    route: truncated(target?.name ?? ''),
    listener: truncated(target?.listener ?? ''),
    keyId: apiKey && textOf(apiKey['id']),
    keyName: apiKey && textOf(apiKey['name']),
    user: truncated(attributes.user(facts)),
    group: truncated(attributes.group(facts)),
    client: truncated(facts.source.address),
    userAgent: truncated(firstHeader(request.headers, 'user-agent')),
    operation: llm?.operation ?? exchange.llm?.operation.operation,
    provider: truncated(llm?.provider),
    requestModel: truncated(llm?.requestModel),
    servedModel: truncated(llm?.responseModel ?? last?.model),
    streaming: llm?.streaming ?? false,
    cache: llm?.cache,
    settles: llm?.settles,
    attempts: attempts === undefined ? callsOfTargets(exchange) : sentAttempts(attempts),
    tokens: usage && tokenCounts(usage),
    tokensEstimated: usage?.estimated ?? false,
    costPicodollars: llm?.costPicodollars,
    costStatus: llm?.costStatus,
    mcpMethod: truncated(mcp?.call?.method),
    mcpTarget: truncated(mcp?.call?.target),
    mcpItem: truncated(mcp?.call?.item),
    guards: recording?.guards && jsonOf(recording.guards),
    limits: recording?.limits && jsonOf(recording.limits),
    traceId: traceIdOf(firstHeader(request.headers, 'traceparent')),
    upstreamRequestId: truncated(last?.upstreamRequestId),
    incomplete: !delivery.complete,
    charges: exchange.charges ?? noCharges,
    details: exchange.payload ?? noDetails,
  }
}

const noCharges: readonly BudgetCharge[] = []
const noDetails: EntryDetails = {}

function tokenCounts(usage: Usage): TokenCounts {
  return {
    input: usage.inputTokens,
    output: usage.outputTokens,
    total: usage.totalTokens,
    cachedInput: usage.cachedInputTokens,
    cacheCreationInput: usage.cacheCreationInputTokens,
    reasoning: usage.reasoningTokens,
  }
}

function sentAttempts(attempts: readonly AttemptRecord[]): number {
  let sent = 0
  for (const attempt of attempts) if (attempt.sent) sent += 1
  return sent
}

/** A call reaches its target unless the gateway refuses it. `mcp:` marks failures of the target, too. */
function callsOfTargets({ mcp, log: { refusedBy } }: Exchange): number {
  if (mcp?.call === undefined) return 0
  return refusedBy === undefined || refusedBy.startsWith('mcp: ') ? 1 : 0
}

/** Codes of refusals whose replies have no code. */
const codeByPolicy: ReadonlyMap<string, string> = new Map([
  ['rate-limit', 'rate_limit_exceeded'],
  ['guardrail', 'guardrail_intervention'],
  ['mcp-authentication', 'invalid_token'],
  ['mcp-authorization', 'authorization_failed'],
])

function errorCodeOf({ errorCode, refusedBy }: LogState, delivery: Delivery): string | undefined {
  if (errorCode !== undefined) return errorCode
  if (refusedBy !== undefined) {
    const end = refusedBy.indexOf(':')
    const policy = end === -1 ? refusedBy : refusedBy.slice(0, end)
    return codeByPolicy.get(policy) ?? refusedBy.replace(/[^a-z0-9]+/gi, '_')
  }
  return delivery.status === undefined ? 'request_aborted' : undefined
}

const traceParent = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/
const invalidTraceId = '0'.repeat(32)

/** Trace id of `traceparent` (W3C Trace Context section 3.2.2); undefined if it is absent or invalid. */
function traceIdOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const id = traceParent.exec(header)?.[1]
  return id === invalidTraceId || header.startsWith('ff') ? undefined : id
}

/** Texts from clients are truncated, so that no request writes large rows. */
const maxCharacters = 200

function truncated(text: string): string
function truncated(text: string | undefined): string | undefined
function truncated(text: string | undefined): string | undefined {
  if (text === undefined || text.length <= maxCharacters) return text
  return `${text.slice(0, maxCharacters)}…`
}

/** JSON text of decisions, with truncated texts. A replacer triples its time: only long texts need one. */
function jsonOf(decisions: readonly (GuardDecision | LimitDecision)[]): string {
  return decisions.some(isLong) ? JSON.stringify(decisions, truncateTexts) : JSON.stringify(decisions)
}

function isLong(decision: GuardDecision | LimitDecision): boolean {
  if ('limit' in decision) return decision.limit.length > maxCharacters
  return decision.guard.length > maxCharacters || (decision.reason?.length ?? 0) > maxCharacters
}

function truncateTexts(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? truncated(value) : value
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? truncated(value) : undefined
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100
}
