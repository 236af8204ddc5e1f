import { GatewayError } from '../../../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { createRefusals, isAbsent, type Refusals } from '../refusals.ts'
import type { TranslatedRequest, Translation, TranslationContext } from '../translate.ts'
import { invalidResponse, readUpstreamError, toErrorBody } from '../upstream-error.ts'

/** From a client with OpenAI's embeddings to `predict` of a text embedding model of Vertex AI. */
export const embeddingsToPredict: Translation = {
  upstream: 'predict',
  request: toPredictRequest,
  reply: toEmbeddings,
  error: (status, body) => toErrorBody('openai', readUpstreamError(status, body)),
  stream() {
    throw new GatewayError('upstream_invalid', 'the upstream answered embeddings with an event stream')
  },
}

const translatedFields: ReadonlySet<string> = new Set([
  ...['model', 'input', 'dimensions', 'encoding_format', 'user'],
  // Fields of Vertex AI that clients may add.
  ...['task_type', 'title', 'auto_truncate'],
])

function toPredictRequest(body: JsonObject): TranslatedRequest {
  const refusals = createRefusals('Vertex AI')
  refusals.addUnknown(body, translatedFields, '')
  const { dimensions, encoding_format: format, task_type: taskType, title, auto_truncate: truncates } = body
  const shared = {
    ...(isAbsent(taskType) ? undefined : { task_type: taskType }),
    ...(isAbsent(title) ? undefined : { title }),
  }
  const parameters = {
    ...(isAbsent(dimensions) ? undefined : { outputDimensionality: dimensions }),
    ...(isAbsent(truncates) ? undefined : { autoTruncate: truncates }),
  }
  if (!isAbsent(format) && format !== 'float' && format !== 'base64')
    refusals.add('encoding_format', 'must be float or base64')
  const instances = toTexts(body.input, refusals).map((content) => ({ content, ...shared }))
  const translated = refusals.result({
    instances,
    ...(Object.keys(parameters).length === 0 ? undefined : { parameters }),
  })
  if (translated.kind === 'unsupported' || format !== 'base64') return translated
  return { ...translated, settings: { encoding_format: format } }
}

function toTexts(input: JsonValue | undefined, refusals: Refusals): JsonValue[] {
  if (typeof input === 'string') return [input]
  if (Array.isArray(input) && input.every((text) => typeof text === 'string')) return input
  refusals.add('input', 'must be a string or a list of strings: Vertex AI does not accept tokens')
  return []
}

function toEmbeddings(response: JsonObject, { requestModel, settings }: TranslationContext): JsonObject {
  const { predictions } = response
  if (!Array.isArray(predictions)) throw invalidResponse('it has no predictions')
  const isBase64 = settings?.encoding_format === 'base64'
  let tokens = 0
  const data = predictions.map((prediction, index) => {
    const { values, statistics } = embeddingsOf(prediction)
    if (!Array.isArray(values)) throw invalidResponse('a prediction has no values')
    const count = isJsonObject(statistics) ? statistics.token_count : undefined
    if (typeof count === 'number') tokens += count
    return { object: 'embedding', index, embedding: isBase64 ? base64Of(values) : values }
  })
  return { object: 'list', data, model: requestModel, usage: { prompt_tokens: tokens, total_tokens: tokens } }
}

function embeddingsOf(prediction: JsonValue): JsonObject {
  const embeddings = isJsonObject(prediction) ? prediction.embeddings : undefined
  return isJsonObject(embeddings) ? embeddings : {}
}

/** 32-bit floats in little-endian order, as OpenAI encodes them. */
function base64Of(values: readonly JsonValue[]): string {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeFloatLE(numberOf(value), index * 4)
  return bytes.toString('base64')
}

/** A number, which may have more digits than a double. */
function numberOf(value: JsonValue): number {
  const number = typeof value === 'number' ? value : Number(JSON.stringify(value))
  if (Number.isFinite(number)) return number
  throw invalidResponse('a prediction has values that are not numbers')
}
