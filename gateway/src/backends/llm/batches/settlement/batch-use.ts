import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { Usage } from '../../../../pipeline/facts/llm-facts.ts'
import { addCost, type CostSum, noCost } from '../../catalog/cost-sum.ts'
import type { Prices } from '../../catalog/prices.ts'
import type { Candidate } from '../../models/candidate.ts'
import { addUsage, modelIn, usageIn } from '../../reply/usage.ts'
import type { Endpoint } from '../../request/endpoints.ts'

/** Real usage and cost of a batch that has ended. */
export type BatchUse = { readonly usage: Usage; readonly cost: CostSum }

/** Use by a description or results; of results that were read in part, that of the read ones. */
export type ReadUse = BatchUse & { readonly extent: 'all' | 'part' }

/** Prices of the model of a batch. */
export type BatchPrices = { readonly prices: Prices | undefined; readonly candidate: Candidate }

const nothing: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  totalTokens: 0,
  cachedInputTokens: 0,
  cacheCreationInputTokens: 0,
  reasoningTokens: 0,
  estimated: false,
}

/** Status in descriptions of batches after which no request is served. */
const ended: ReadonlySet<unknown> = new Set(['completed', 'failed', 'expired', 'cancelled'])

/**
 * The use of a batch by its description; undefined before its end, and if only its results have the use.
 * https://platform.openai.com/docs/api-reference/batch/object
 */
export function useOfBatch(value: JsonObject, pricing: BatchPrices): BatchUse | undefined {
  if (!ended.has(value['status'])) return undefined
  const hasResults = typeof value['output_file_id'] === 'string' || hasCompleted(value)
  const usage = usageIn('responses', { usage: value['usage'] ?? null })
  if (usage === undefined || usage.totalTokens === 0) return hasResults ? undefined : useOf(pricing)
  const use = addTo(useOf(pricing), { ...usage, batch: 'sum' }, modelIn('chat', value), pricing)
  return use.isUnclear && hasResults ? undefined : use
}

/** The same for a batch of Anthropic. https://docs.anthropic.com/en/api/retrieving-message-batches */
export function useOfMessageBatch(value: JsonObject, pricing: BatchPrices): BatchUse | undefined {
  const isEmpty = countOf(value, 'succeeded') === 0
  return value['processing_status'] === 'ended' && isEmpty ? useOf(pricing) : undefined
}

/** Whether requests were served, whose results may be at another place than the output file. */
function hasCompleted(value: JsonObject): boolean {
  const completed = countOf(value, 'completed')
  return typeof completed === 'number' ? completed > 0 : value['status'] === 'completed'
}

/** A number of requests; undefined if it is not reported. */
function countOf({ request_counts: counts }: JsonObject, name: string): JsonValue | undefined {
  return isJsonObject(counts) ? counts[name] : undefined
}

/** Adds up results, each a JSON object. The sum is undefined if one of them has no usage. */
export function createResultSum(endpoint: Endpoint, pricing: BatchPrices) {
  let use: Use | undefined = useOf(pricing)
  return {
    add(result: JsonObject | undefined) {
      const message = result && messageOf(result)
      if (message === 'none' || use === undefined) return
      const usage = message && usageIn(endpoint, message)
      use =
        usage && message
          ? addTo(use, { ...usage, batch: 'request' }, modelIn(endpoint, message), pricing)
          : undefined
    },
    get use(): BatchUse | undefined {
      return use
    },
  }
}

/** The response in a result; `none` for requests that failed, which cost nothing. */
function messageOf({ response, result }: JsonObject): JsonObject | 'none' | undefined {
  if (isJsonObject(result)) {
    if (result['type'] !== 'succeeded') return 'none'
    return isJsonObject(result['message']) ? result['message'] : undefined
  }
  if (!isJsonObject(response)) return 'none'
  const status = response['status_code']
  if (typeof status === 'number' && status >= 400) return 'none'
  return isJsonObject(response['body']) ? response['body'] : undefined
}

/** `isUnclear`: a price depends on the sizes of the single requests. */
type Use = BatchUse & { readonly isUnclear: boolean }

/** No use, which costs nothing. */
function useOf({ prices }: BatchPrices): Use {
  const cost: CostSum = prices === undefined ? noCost : { amount: 0n, status: 'exact' }
  return { usage: nothing, cost, isUnclear: false }
}

function addTo(
  { usage, cost, isUnclear }: Use,
  added: Usage,
  responseModel: string | undefined,
  { prices, candidate: { target, model } }: BatchPrices,
): Use {
  const names = [responseModel, model, target.configuredModel]
  const price = prices?.(target.provider.name, names, added)
  return {
    usage: addUsage(usage, added),
    cost: price === undefined ? cost : addCost(cost, price, added),
    isUnclear: isUnclear || (price?.kind === 'cost' && price.basis === 'unclear'),
  }
}
