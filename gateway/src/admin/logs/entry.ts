import type { LedgerEntry } from '../../ledger/entry.ts'
import type { RequestDetails } from '../../ledger/query/search/search.ts'
import type { StoredRequest } from '../../ledger/store/columns.ts'
import { decimalDollars, dollarsOf } from '../../lib/picodollars.ts'

/** A request as the log API returns it: members of the reference product, and further ones. */
export function logEntry({ entry, hasPayload, hasExplanation }: StoredRequest, withAttributes: boolean) {
  const { tokens, costPicodollars } = entry
  return {
    id: entry.id,
    kind: entry.kind,
    startedAt: new Date(entry.startedAt).toISOString(),
    completedAt: new Date(entry.completedAt).toISOString(),
    durationMs: entry.durationMs,
    firstByteMs: entry.firstByteMs ?? null,
    traceId: entry.traceId ?? null,
    spanId: null,
    httpStatus: entry.status,
    error: entry.errorCode ?? null,
    refusedBy: entry.refusedBy ?? null,
    method: entry.method,
    path: entry.path,
    route: entry.route,
    listener: entry.listener,
    keyId: entry.keyId ?? null,
    keyName: entry.keyName ?? null,
    user: entry.user ?? null,
    group: entry.group ?? null,
    client: entry.client,
    userAgent: entry.userAgent ?? null,
    genAi: {
      operationName: entry.operation ?? null,
      providerName: entry.provider ?? null,
      requestModel: entry.requestModel ?? null,
      responseModel: entry.servedModel ?? null,
    },
    mcp: mcpOf(entry),
    streaming: entry.streaming,
    attempts: entry.attempts,
    cache: entry.cache ?? null,
    settles: entry.settles ?? null,
    usage: {
      inputTokens: tokens?.input ?? null,
      outputTokens: tokens?.output ?? null,
      totalTokens: tokens?.total ?? null,
      cachedInputTokens: tokens?.cachedInput ?? null,
      cacheCreationInputTokens: tokens?.cacheCreationInput ?? null,
      reasoningTokens: tokens?.reasoning ?? null,
      estimated: entry.tokensEstimated,
    },
    cost: costPicodollars === undefined ? null : dollarsOf(costPicodollars),
    costUsd: costPicodollars === undefined ? null : decimalDollars(BigInt(costPicodollars)),
    costStatus: entry.costStatus ?? null,
    guards: jsonOf(entry.guards),
    limits: jsonOf(entry.limits),
    charges: entry.charges,
    upstreamRequestId: entry.upstreamRequestId ?? null,
    incomplete: entry.incomplete,
    hasPayload,
    hasExplanation,
    ...(withAttributes ? { attributes: attributesOf(entry) } : {}),
  }
}

/** A request with its prompt and response, if these are stored. */
export function detailedEntry(request: RequestDetails, withPayload: boolean) {
  const entry = logEntry(request, true)
  if (!withPayload || request.payload === undefined) return entry
  const { request: requestPrompt = null, response: responseCompletion = null } = request.payload
  return { ...entry, payload: { requestPrompt, responseCompletion } }
}

function mcpOf({ mcpMethod, mcpTarget, mcpItem }: LedgerEntry) {
  if (mcpMethod === undefined) return null
  return { method: mcpMethod, target: mcpTarget ?? null, item: mcpItem ?? null }
}

function attributesOf({ user, group, userAgent }: LedgerEntry): Record<string, string> {
  const attributes = { 'agentgateway.user': user, 'agentgateway.group': group, 'user_agent.name': userAgent }
  return Object.fromEntries(
    Object.entries(attributes).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

/** JSON text of the ledger; null if it was truncated. */
function jsonOf(text: string | undefined): unknown {
  if (text === undefined) return null
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
