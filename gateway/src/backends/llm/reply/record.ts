import type { JsonObject } from '../../../lib/json/json.ts'
import type { Headers } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Latency } from '../models/routing/latency.ts'
import type { Attempt } from '../request/call.ts'
import type { Endpoint } from '../request/endpoints.ts'
import { isFinalUsage } from '../request/output-limit.ts'
import type { TranslationContext } from '../translate/translate.ts'
import { usageInHeaders } from './invoke-usage.ts'
import { unitsIn } from './units.ts'
import { modelIn, usageIn } from './usage.ts'

/**
 * Records the model in the provider's response; undefined leaves it unchanged, as in the last event of
 * messages.
 */
export function recordModel(attempt: Attempt, model: string | undefined): void {
  if (model === undefined) return
  attempt.responseModel = model
  const { llm } = attempt.exchange.facts
  if (llm) llm.responseModel = model
}

/** Records usage and model in an object of the provider, also of a response that fails later. */
export function recordObject(attempt: Attempt, endpoint: Endpoint, message: JsonObject): void {
  const usage = usageIn(endpoint, message)
  if (usage) attempt.usage = usage
  attempt.units = unitsIn(endpoint, message)
  recordModel(attempt, modelIn(endpoint, message))
  attempt.usageFinal = usage !== undefined && isFinalUsage(endpoint, message)
}

/** Counts a response for the eviction of its target. Returns whether it is a failure. */
export function recordOutcome({ exchange, candidate: { target } }: Attempt, reply: Reply): boolean {
  const hasFailed = target.eviction.responded(reply, exchange.facts)
  if (hasFailed) target.meter.upstreamError(`status_${reply.status}`)
  return hasFailed
}

/** Records the counts of `InvokeModel`, whose body is of the API of its model. */
export function recordHeaders(attempt: Attempt, endpoint: Endpoint, headers: Headers): void {
  if (endpoint !== 'invoke') return
  const usage = usageInHeaders(headers) ?? attempt.usage
  attempt.usage = usage
  attempt.usageFinal = usage !== undefined
}

/** The provider's endpoint of a call. */
export function endpointOf({ call, translation }: Attempt): Endpoint | 'passthrough' {
  return translation?.upstream ?? call.endpoint
}

export function translationContext(
  { exchange, call, settings }: Attempt,
  { clock }: CompileContext,
): TranslationContext {
  return {
    requestModel: exchange.facts.llm?.requestModel ?? '',
    now: () => clock.now(),
    includeUsage: !call.hideUsage,
    settings,
  }
}

/** Records the time to the first byte for the choice among targets, if it is observed. */
export function recordLatency(
  { candidate, sentAt }: Attempt,
  kind: Parameters<Latency['record']>[0],
  now: number,
): void {
  if (sentAt !== undefined) candidate.target.latency?.record(kind, now - sentAt)
}
