import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Exchange, Usage } from '../../pipeline/exchange.ts'
import { dollarsOf } from './catalog/money.ts'
import type { Prices } from './catalog/prices.ts'
import { estimateTokens, estimateUsage, withOutputTokens } from './reply/usage.ts'
import { type Attempt, type Call, callOf } from './request/call.ts'
import { isBackground, outputLimit } from './request/output-limit.ts'

/**
 * Completes the usage at the end of the exchange, with an estimate for missing reports, and counts it in the
 * metrics.
 */
export function settleUsage(exchange: Exchange, { clock }: CompileContext): void {
  const attempt = callOf(exchange)?.attempt
  if (!attempt) return
  const { meter } = attempt.candidate.target
  if (hasUsage(attempt.call) && !attempt.usageFinal && isCharged(attempt)) {
    exchange.facts.usage = estimateAttempt(attempt)
  }
  const { firstByteAt } = attempt
  const firstByteMs = firstByteAt === undefined ? undefined : firstByteAt - exchange.startedAt
  meter.done(clock.monotonic() - exchange.startedAt, firstByteMs)
  if (exchange.facts.usage) meter.tokens(exchange.facts.usage, exchange.auth.keyGroup)
}

/**
 * Records the cost of the call after `settleUsage`. The price lookup tries the model in the response, then
 * the requested one, then the configured one.
 */
export function recordCost(exchange: Exchange, prices: Prices): void {
  const { llm, usage } = exchange.facts
  const candidate = callOf(exchange)?.attempt?.candidate
  if (!llm || !usage || !candidate) return
  const { target, model } = candidate
  const cost = prices(target.provider.name, [llm.responseModel, model, target.configuredModel], usage)
  if (cost.kind !== 'cost') {
    llm.costStatus = cost.kind
    target.meter.unknownCost(cost.kind)
    return
  }
  llm.costStatus = usage.estimated ? 'estimated' : 'exact'
  llm.cost = dollarsOf(cost.amount)
  target.meter.cost(cost.amount, exchange.auth.keyGroup)
}

function hasUsage({ endpoint }: Call): boolean {
  return endpoint !== 'count_tokens' && endpoint !== 'passthrough'
}

/** A client that disconnects early is charged for its request; a failure of the upstream is not charged. */
function isCharged({ succeeded, exchange }: Attempt): boolean {
  return succeeded || exchange.cancellation.cancelled
}

/**
 * Estimates usage that the provider did not report completely: from the observed output, or from the output
 * limit if there is none to observe. The latter are background responses, and unstreamed responses after a
 * disconnect.
 */
function estimateAttempt({ exchange, call, candidate, succeeded, usage, generatedBytes }: Attempt): Usage {
  const { llmRequest = {}, llm } = exchange.facts
  const { endpoint } = call
  const observed = estimateUsage(usage, estimateTokens(llmRequest), generatedBytes)
  const isUnobserved = !succeeded && llm?.streaming !== true
  if (endpoint === 'passthrough') return observed
  if (!isUnobserved && !isBackground(endpoint, llmRequest)) return observed
  return withOutputTokens(observed, outputLimit(endpoint, llmRequest, candidate.target))
}
