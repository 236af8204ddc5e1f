import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'
import type { Usage } from '../../../pipeline/facts/llm-facts.ts'

/**
 * Counts of a response of `InvokeModel` in its headers; undefined without them.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html
 */
export function usageInHeaders(headers: Headers): Usage | undefined {
  const input = countIn(headers, 'x-amzn-bedrock-input-token-count')
  const output = countIn(headers, 'x-amzn-bedrock-output-token-count')
  if (input === undefined && output === undefined) return undefined
  const cached = countIn(headers, 'x-amzn-bedrock-cache-read-input-token-count')
  const created = countIn(headers, 'x-amzn-bedrock-cache-write-input-token-count')
  return invokeUsage({ input, output, cached, created })
}

/**
 * Counts in the last chunk of a stream of `InvokeModel`, or of embeddings in a body.
 * https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html
 */
export function usageInChunk(body: JsonObject): Usage | undefined {
  const metrics = body['amazon-bedrock-invocationMetrics']
  if (!isJsonObject(metrics)) {
    const input = count(body['inputTextTokenCount'])
    return input === undefined ? undefined : invokeUsage({ input })
  }
  return invokeUsage({
    input: count(metrics['inputTokenCount']),
    output: count(metrics['outputTokenCount']),
    cached: count(metrics['cacheReadInputTokenCount']),
    created: count(metrics['cacheWriteInputTokenCount']),
  })
}

/** Counts of embeddings of Cohere, of which images count, too. https://docs.cohere.com/reference/embed */
export function embedUsage(meta: JsonValue | undefined): Usage | undefined {
  const billed = isJsonObject(meta) ? meta['billed_units'] : undefined
  if (!isJsonObject(billed)) return undefined
  const text = count(billed['input_tokens'])
  const image = count(billed['image_tokens'])
  return text === undefined && image === undefined
    ? undefined
    : invokeUsage({ input: (text ?? 0) + (image ?? 0) })
}

/**
 * Cohere reports tokens in `meta.tokens` (https://docs.cohere.com/reference/rerank), other services an object
 * of OpenAI's shape or the total only.
 */
export function rerankUsage({ usage: reported, meta }: JsonObject): Usage | undefined {
  const tokens = isJsonObject(reported) ? reported : isJsonObject(meta) ? meta['tokens'] : undefined
  if (!isJsonObject(tokens)) return undefined
  const input =
    count(tokens['input_tokens']) ?? count(tokens['prompt_tokens']) ?? count(tokens['total_tokens'])
  if (input === undefined) return undefined
  return invokeUsage({ input, output: count(tokens['output_tokens']) })
}

/** Embeddings of Vertex AI count the tokens of each text. */
export function predictUsage(predictions: JsonValue | undefined): Usage | undefined {
  if (!Array.isArray(predictions)) return undefined
  const counts = predictions.map((prediction) => {
    const embeddings = isJsonObject(prediction) ? prediction['embeddings'] : undefined
    const statistics = isJsonObject(embeddings) ? embeddings['statistics'] : undefined
    return isJsonObject(statistics) ? count(statistics['token_count']) : undefined
  })
  if (counts.every((tokens) => tokens === undefined)) return undefined
  return invokeUsage({ input: counts.reduce<number>((sum, tokens) => sum + (tokens ?? 0), 0) })
}

/** https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_TokenUsage.html */
export function converseUsage(value: JsonValue | undefined): Usage | undefined {
  if (!isJsonObject(value)) return undefined
  const input = count(value['inputTokens'])
  const output = count(value['outputTokens'])
  if (input === undefined && output === undefined) return undefined
  const cached = count(value['cacheReadInputTokens'])
  return invokeUsage({ input, output, cached, created: count(value['cacheWriteInputTokens']) })
}

/**
 * Counts of Cohere's chat: billed tokens, or all if none are billed. Both include cached input.
 * https://docs.cohere.com/v2/reference/chat
 */
export function cohereUsage(value: JsonValue | undefined): Usage | undefined {
  if (!isJsonObject(value)) return undefined
  const reports = [value['billed_units'], value['tokens']].filter(isJsonObject)
  const counts = reports.find((tokens) => count(tokens['input_tokens']) !== undefined) ?? reports[0]
  const input = count(counts?.['input_tokens'])
  const output = count(counts?.['output_tokens'])
  if (input === undefined && output === undefined) return undefined
  const cached = Math.min(count(value['cached_tokens']) ?? 0, input ?? 0)
  return invokeUsage({ input: (input ?? 0) - cached, output, cached })
}

type Counts = {
  input: number | undefined
  output?: number | undefined
  cached?: number | undefined
  created?: number | undefined
}

/** The counts of input exclude those of the cache. */
function invokeUsage({ input = 0, output = 0, cached = 0, created = 0 }: Counts): Usage {
  const inputTokens = input + cached + created
  return {
    inputTokens,
    outputTokens: output,
    totalTokens: inputTokens + output,
    cachedInputTokens: cached,
    cacheCreationInputTokens: created,
    reasoningTokens: 0,
    estimated: false,
  }
}

function countIn(headers: Headers, name: string): number | undefined {
  const text = firstHeader(headers, name)
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined
}

function count(value: JsonValue | undefined): number | undefined {
  const isCount = typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 1e9
  return isCount ? value : undefined
}
