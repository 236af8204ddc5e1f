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
