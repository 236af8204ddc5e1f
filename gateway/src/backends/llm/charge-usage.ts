import { dollarsOf } from '../../lib/picodollars.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Usage } from '../../pipeline/facts/llm-facts.ts'
import type { Picodollars } from './catalog/money.ts'
import type { Prices } from './catalog/prices.ts'
import { cancelReply } from './reply/reply-body.ts'
import { addUsage, estimateTokens, estimateUsage, withOutputTokens } from './reply/usage.ts'
import { type Attempt, type Call, callOf } from './request/call.ts'
import { isBackground, outputLimit } from './request/output-limit.ts'

/**
 * Settles a call at its end: usage with an estimate for a missing report, and cost. Each attempt is counted
 * and priced with its own model and provider. The facts receive the sums, which limits and the ledger charge.
 */
export function settleCall(exchange: Exchange, { clock }: CompileContext, prices: Prices | undefined): void {
  const { facts, auth } = exchange
  const last = callOf(exchange)?.attempt
  if (!last) return
  const { firstByteAt } = last
  const firstByteMs = firstByteAt === undefined ? undefined : firstByteAt - exchange.startedAt
  const labels = exchange.metricLabels?.()
  last.candidate.target.meter.done(
    clock.monotonic() - exchange.startedAt,
    firstByteMs,
    labels,
    exchange.trace,
  )
  if (hasUsage(last.call) && !last.usageFinal && isCharged(last)) last.usage = estimateAttempt(last)
  const cost = prices && createCost(prices)
  for (let attempt: Attempt | undefined = last; attempt; attempt = attempt.previous) {
    if (attempt.unread) cancelReply(attempt.unread)
    if (!attempt.usage) continue
    facts.usage = addUsage(facts.usage, attempt.usage)
    attempt.candidate.target.meter.tokens(attempt.usage, auth.keyGroup, labels)
    cost?.add(attempt, attempt.usage)
  }
  cost?.record(exchange)
}

type Cost = {
  add(attempt: Attempt, usage: Usage): void
  /** Stores sum and status; nothing without usage. */
  record(exchange: Exchange): void
}

/** From good to bad: the status of a sum is that of its worst part. */
const statuses = ['exact', 'estimated', 'unpriced', 'missing'] as const

/**
 * Sums the cost of attempts. The price lookup tries the model in the response, then the requested one, then
 * the configured one.
 */
function createCost(prices: Prices): Cost {
  let sum: Picodollars | undefined
  let worst = -1

  return {
    add({ exchange, candidate, responseModel }, usage) {
      const { target, model } = candidate
      const cost = prices(target.provider.name, [responseModel, model, target.configuredModel], usage)
      if (cost.kind === 'cost') {
        sum = (sum ?? 0n) + cost.amount
        target.meter.cost(cost.amount, exchange.auth.keyGroup, exchange.metricLabels?.())
      } else target.meter.unknownCost(cost.kind)
      const known = usage.estimated ? 'estimated' : 'exact'
      worst = Math.max(worst, statuses.indexOf(cost.kind === 'cost' ? known : cost.kind))
    },
    record({ facts: { llm } }) {
      if (!llm || worst === -1) return
      llm.costStatus = statuses[worst]
      if (sum === undefined) return
      llm.cost = dollarsOf(sum)
      llm.costPicodollars = sum > maxPicodollars ? Number.MAX_SAFE_INTEGER : Number(sum)
    },
  }
}

/** 9,007 dollars, beyond any real call. */
const maxPicodollars = BigInt(Number.MAX_SAFE_INTEGER)

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
