import { isJsonObject } from '../../../../lib/json/json.ts'
import { readBedrockError } from '../messages-to-converse/errors.ts'
import { createRefusals, isAbsent } from '../refusals.ts'
import type { Translation } from '../translate.ts'
import { invalidResponse, toErrorBody } from '../upstream-error.ts'
import { embeddingsReply } from './reply.ts'
import { formatOf, textsOf } from './request-fields.ts'

const shared = {
  error: (status, body) => toErrorBody('openai', readBedrockError(status, body)),
  stream() {
    throw invalidResponse('embeddings are not a stream')
  },
} satisfies Partial<Translation>

/** From OpenAI's embeddings to Amazon Titan: https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html */
export const embeddingsToTitan: Translation = {
  ...shared,
  upstream: 'titan_embeddings',
  request(body) {
    const refusals = createRefusals('models of Amazon Titan')
    const [text = '', ...others] = textsOf(body, refusals)
    if (others.length > 0) refusals.add('input', 'models of Amazon Titan accept one text per request')
    const settings = formatOf(body, refusals)
    const { dimensions } = body
    const result = refusals.result({
      inputText: text,
      ...(isAbsent(dimensions) ? undefined : { dimensions }),
    })
    return result.kind === 'body' ? { ...result, settings } : result
  },
  reply({ embedding, inputTextTokenCount }, context) {
    return embeddingsReply([embedding ?? null], inputTextTokenCount, context)
  },
}

/** From OpenAI's embeddings to Cohere: https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-embed.html */
export const embeddingsToCohere: Translation = {
  ...shared,
  upstream: 'cohere_embeddings',
  request(body) {
    const refusals = createRefusals('models of Cohere')
    const texts = textsOf(body, refusals)
    const settings = formatOf(body, refusals)
    const { dimensions } = body
    const result = refusals.result({
      texts,
      // OpenAI has one kind of vectors; this is the kind for texts that are searched.
      input_type: 'search_document',
      ...(isAbsent(dimensions) ? undefined : { output_dimension: dimensions }),
    })
    return result.kind === 'body' ? { ...result, settings } : result
  },
  reply({ embeddings, inputTextTokenCount }, context) {
    const vectors = isJsonObject(embeddings) ? embeddings.float : embeddings
    return embeddingsReply(vectors, inputTextTokenCount, context)
  },
}
