import { dollarsOf } from '../../lib/picodollars.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Usage } from '../../pipeline/facts/llm-facts.ts'
import type { ObjectCall } from './batches/object-call.ts'
import type { SettleBatch } from './batches/settlement/settle-batch.ts'
import { addCost, noCost, safeAmount } from './catalog/cost-sum.ts'
import type { Cost, Prices } from './catalog/prices.ts'
import { cancelReply } from './reply/reply-body.ts'
import { withUnits } from './reply/units.ts'
import { addUsage, estimateTokens, estimateUsage, withOutputTokens } from './reply/usage.ts'
import { type Attempt, type Call, callOf, isConnection } from './request/call.ts'
import { isBackground, outputLimit } from './request/output-limit.ts'

/**
 * Settles a call at its end: usage with an estimate for a missing report, and cost. Each attempt is counted
 * and priced with its own model and provider. The facts receive the sums, which limits and the ledger charge.
 */
export function settleCall(
  exchange: Exchange,
  { clock }: CompileContext,
  { prices, settleBatch }: SettleOptions,
): void {
  const { facts, trace } = exchange
  const last = callOf(exchange)?.attempt
  if (!last) return
  const charge = last.call.object?.charge
  if (charge && isCharged(last)) last.usage = chargedUsage(charge)
  if (hasUsage(last.call) && !last.usageFinal && isCharged(last)) last.usage = estimateAttempt(last)
  const charges: Charge[] = []
  const unitFacts = { endpoint: last.call.endpoint, request: facts.llmRequest ?? {} }
  for (let attempt: Attempt | undefined = last; attempt; attempt = attempt.previous) {
    if (attempt.unread) cancelReply(attempt.unread)
    attempt.slots?.release()
    attempt.slots = undefined
    if (attempt.isAbandoned) attempt.usage = estimateAbandoned(attempt)
    // The usage of a stored response was counted at its creation.
    if (!attempt.usage || last.call.stored !== undefined) continue
    const usage = withUnits(attempt.usage, { ...unitFacts, units: attempt.units })
    facts.usage = addUsage(facts.usage, usage)
    charges.push({ attempt, usage, cost: prices && priceOf(prices, attempt, usage) })
  }
  recordCost(exchange, charges)
  const batchUse = exchange.llm?.batchUse?.()
  const batchCharge = last.call.object?.stored?.charge
  if (batchUse && batchCharge) settleBatch(exchange, batchCharge, batchUse)
  // Labels are expressions over the facts, which are complete from here.
  const labels = exchange.metricLabels?.()
  const { firstByteAt } = last
  const firstByteMs = firstByteAt === undefined ? undefined : firstByteAt - exchange.startedAt
  const operation = facts.llm?.operation ?? last.call.endpoint
  const meter = last.candidate.target.meter.operation(operation)
  // A connection of realtime lasts for up to an hour; its responses are the operations.
  if (!isConnection(last.call)) meter.done(clock.monotonic() - exchange.startedAt, firstByteMs, labels, trace)
  for (const charge of charges) countCharge(charge, operation, labels)
}

type SettleOptions = { readonly prices: Prices | undefined; readonly settleBatch: SettleBatch }

/** Usage and cost of an attempt; the cost is undefined without a model catalog. */
type Charge = {
  readonly attempt: Attempt
  readonly usage: Usage
  readonly cost: Cost | undefined
}

/** The price lookup tries the model in the response, then the requested one, then the configured one. */
function priceOf(prices: Prices, { candidate, responseModel }: Attempt, usage: Usage): Cost {
  const { target, model } = candidate
  return prices(target.provider.name, [responseModel, model, target.configuredModel], usage)
}

/** Stores sum and status of the costs; nothing without usage. */
function recordCost({ facts: { llm } }: Exchange, charges: readonly Charge[]): void {
  let sum = noCost
  for (const { usage, cost } of charges) if (cost) sum = addCost(sum, cost, usage)
  const { amount, status } = sum
  if (!llm || status === undefined) return
  llm.costStatus = status
  if (amount === undefined) return
  llm.cost = dollarsOf(amount)
  llm.costPicodollars = safeAmount(amount)
}

function countCharge(
  { attempt, usage, cost }: Charge,
  operation: string,
  labels: readonly string[] | undefined,
): void {
  const { meter } = attempt.candidate.target
  const { keyGroup } = attempt.exchange.auth
  meter.operation(operation).tokens(usage, keyGroup, labels)
  if (cost === undefined) return
  if (cost.kind === 'cost') meter.cost(cost.amount, keyGroup, labels)
  else meter.unknownCost(cost.kind)
}

/** Calls that providers do not charge by tokens, and calls that are not read. */
const withoutUsage: ReadonlySet<Call['endpoint']> = new Set([
  'count_tokens',
  'gemini_count_tokens',
  'moderations',
  'passthrough',
])

/** The expected tokens of a batch, whose requests are served later. */
function chargedUsage(charge: NonNullable<ObjectCall['charge']>): Usage {
  const usage = withOutputTokens(estimateUsage(undefined, charge.inputTokens, 0), charge.outputTokens)
  return { ...usage, batch: 'sum' }
}

/** The provider has read the prompt, and sent no content before the request was cancelled. */
function estimateAbandoned({ usage, exchange, generatedBytes }: Attempt): Usage {
  return estimateUsage(usage, estimateTokens(exchange.facts.llmRequest ?? {}), generatedBytes)
}

function hasUsage(call: Call): boolean {
  const { stored, object, endpoint } = call
  return stored === undefined && object === undefined && !withoutUsage.has(endpoint) && !isConnection(call)
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
