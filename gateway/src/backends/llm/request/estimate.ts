import type { CallEstimate, Exchange } from '../../../pipeline/exchange.ts'
import type { Usage } from '../../../pipeline/facts/llm-facts.ts'
import type { Prices } from '../catalog/prices.ts'
import type { Candidate } from '../models/candidate.ts'
import { unitsOfRequest } from '../reply/units.ts'
import { estimateTokens } from '../reply/usage.ts'
import { callOf, isConnection } from './call.ts'
import { operations } from './endpoints.ts'
import { outputLimit } from './output-limit.ts'

/** Output tokens of a choice without a limit in the request. More than most responses have. */
const assumedOutputTokens = 1_024
/** Larger bodies may contain images, whose size is unrelated to tokens. */
const maxPlainBytes = 16_384
const bytesPerToken = 4

const nothing: CallEstimate = { tokens: 0, picodollars: 0 }

/**
 * Creates the estimate of a call before it: a token per four bytes of input, and the output limit of the
 * request, at the price of the first candidate.
 */
export function createEstimate(prices: Prices | undefined): (exchange: Exchange) => CallEstimate {
  return (exchange) => {
    const call = callOf(exchange)
    const candidate = call?.candidates[0]
    if (call === undefined || candidate === undefined) return nothing
    const { endpoint, bytes, object } = call
    if (object !== undefined)
      return object.charge === undefined
        ? nothing
        : { ...amountsOf(candidate, { ...object.charge, batch: 'sum' }, prices), isCharge: true }
    if (call.stored !== undefined || endpoint === 'moderations') return nothing
    if (operations[endpoint].operation === 'count_tokens') return nothing
    // A connection of realtime costs nothing itself: each of its responses is a call.
    if (isConnection(call)) return nothing
    const { llmRequest = {} } = exchange.facts
    const inputTokens =
      bytes.length <= maxPlainBytes ? Math.ceil(bytes.length / bytesPerToken) : estimateTokens(llmRequest)
    const outputTokens =
      endpoint === 'passthrough'
        ? assumedOutputTokens
        : outputLimit(endpoint, llmRequest, candidate.target, assumedOutputTokens)
    const units = unitsOfRequest(endpoint, llmRequest)
    return amountsOf(candidate, { inputTokens, outputTokens, units }, prices)
  }
}

function amountsOf(
  { target, model }: Candidate,
  {
    inputTokens,
    outputTokens,
    batch,
    units,
  }: Pick<Usage, 'inputTokens' | 'outputTokens' | 'batch' | 'units'>,
  prices: Prices | undefined,
): CallEstimate {
  const tokens = inputTokens + outputTokens
  if (prices === undefined) return { tokens, picodollars: undefined }
  const cost = prices(target.provider.name, [model, target.configuredModel], {
    inputTokens,
    outputTokens,
    totalTokens: tokens,
    cachedInputTokens: 0,
    cacheCreationInputTokens: 0,
    reasoningTokens: 0,
    batch,
    units,
    estimated: true,
  })
  return { tokens, picodollars: cost.kind === 'cost' ? Number(cost.amount) : undefined }
}
