import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { readBedrockError } from '../messages-to-converse/errors.ts'
import { createRefusals, isAbsent, type Refusals } from '../refusals.ts'
import type { TranslatedRequest, Translation } from '../translate.ts'
import { invalidResponse, toErrorBody } from '../upstream-error.ts'
import { embeddingsReply } from './reply.ts'
import { formatOf, textsOf } from './request-fields.ts'

const shared = {
  error: (status, body) => toErrorBody('openai', readBedrockError(status, body)),
  stream() {
    throw invalidResponse('embeddings are not a stream')
  },
} satisfies Partial<Translation>

/** Body of a family of models from the texts of a request, whose other fields are read. */
type ToBody = (texts: readonly string[], body: JsonObject, refusals: Refusals) => JsonObject

function translate(
  body: JsonObject,
  service: string,
  own: readonly string[],
  toBody: ToBody,
): TranslatedRequest {
  const refusals = createRefusals(service)
  const texts = textsOf(body, own, refusals)
  const settings = formatOf(body, refusals)
  const result = refusals.result(toBody(texts, body, refusals))
  return result.kind === 'body' ? { ...result, settings } : result
}

/**
 * From OpenAI's embeddings to Amazon Titan:
 * https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html
 */
export const embeddingsToTitan: Translation = {
  ...shared,
  upstream: 'titan_embeddings',
  request: (body) =>
    translate(
      body,
      'models of Amazon Titan',
      ['normalize'],
      (texts, { dimensions, normalize }, refusals) => ({
        inputText: onlyText(texts, 'models of Amazon Titan', refusals),
        ...present({ dimensions, normalize }),
      }),
    ),
  reply: ({ embedding, inputTextTokenCount }, context) =>
    embeddingsReply([embedding ?? null], inputTextTokenCount, context),
}

/**
 * From OpenAI's embeddings to Cohere:
 * https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-embed.html
 */
export const embeddingsToCohere: Translation = {
  ...shared,
  upstream: 'cohere_embeddings',
  request: (body) =>
    translate(body, 'models of Cohere', ['input_type', 'truncate'], (texts, fields) => ({
      texts: [...texts],
      // OpenAI has one kind of vectors; a query is the default, as in agentgateway.
      input_type: fields['input_type'] ?? 'search_query',
      ...present({ truncate: fields['truncate'], output_dimension: fields['dimensions'] }),
    })),
  reply({ embeddings, inputTextTokenCount }, context) {
    const vectors = isJsonObject(embeddings) ? embeddings.float : embeddings
    return embeddingsReply(vectors, inputTextTokenCount, context)
  },
}

/**
 * From OpenAI's embeddings to Amazon Nova:
 * https://docs.aws.amazon.com/nova/latest/userguide/embeddings-schema.html
 */
export const embeddingsToNova: Translation = {
  ...shared,
  upstream: 'nova_embeddings',
  request: (body) =>
    translate(
      body,
      'models of Amazon Nova',
      ['embedding_purpose', 'truncation_mode'],
      (texts, fields, refusals) => ({
        taskType: 'SINGLE_EMBEDDING',
        singleEmbeddingParams: {
          embeddingPurpose: fields['embedding_purpose'] ?? 'GENERIC_INDEX',
          ...present({ embeddingDimension: fields['dimensions'] }),
          text: {
            truncationMode: fields['truncation_mode'] ?? 'END',
            value: onlyText(texts, 'models of Amazon Nova', refusals),
          },
        },
      }),
    ),
  reply({ embeddings, inputTextTokenCount }, context) {
    const vectors = Array.isArray(embeddings)
      ? embeddings.map((item) => (isJsonObject(item) ? (item.embedding ?? null) : null))
      : undefined
    return embeddingsReply(vectors, inputTextTokenCount, context)
  },
}

function onlyText([text = '', ...others]: readonly string[], models: string, refusals: Refusals): string {
  if (others.length > 0) refusals.add('input', `${models} accept one text per request`)
  return text
}

/** Members with a value. */
function present(members: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  const found: JsonObject = {}
  for (const [name, value] of Object.entries(members)) if (!isAbsent(value)) found[name] = value
  return found
}
