import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { readBedrockError } from '../messages-to-converse/errors.ts'
import { createRefusals, isAbsent, type Refusals } from '../refusals.ts'
import type { TranslatedRequest, Translation, TranslationContext } from '../translate.ts'
import { invalidResponse, toErrorBody } from '../upstream-error.ts'

/**
 * From both versions of Cohere's rerank to rerankers of Amazon Bedrock, whose response has neither texts nor
 * counts. https://docs.aws.amazon.com/bedrock/latest/userguide/rerank-use.html
 */
export const rerankToBedrock: Translation = {
  upstream: 'bedrock_rerank',
  request: toBedrockRequest,
  reply: toRanking,
  error: (status, body) => toErrorBody('cohere', readBedrockError(status, body)),
  stream() {
    throw invalidResponse('a ranking is not a stream')
  },
}

const translatedFields: ReadonlySet<string> = new Set([
  ...['model', 'query', 'documents', 'top_n', 'return_documents'],
])

function toBedrockRequest(body: JsonObject): TranslatedRequest {
  const refusals = createRefusals('Amazon Bedrock')
  refusals.addUnknown(body, translatedFields, '')
  const { query, top_n: count, return_documents: returned } = body
  if (typeof query !== 'string') refusals.add('query', 'must be a string')
  if (!isAbsent(returned) && typeof returned !== 'boolean')
    refusals.add('return_documents', 'must be true or false')
  const documents = toTexts(body.documents, refusals)
  const translated = refusals.result({
    query: query ?? '',
    documents,
    ...(isAbsent(count) ? undefined : { top_n: count }),
  })
  if (translated.kind === 'unsupported' || returned !== true) return translated
  return { ...translated, settings: { documents } }
}

function toTexts(documents: JsonValue | undefined, refusals: Refusals): string[] {
  if (!Array.isArray(documents) || documents.length === 0) {
    refusals.add('documents', 'must be a list of texts')
    return []
  }
  return documents.map((document, index) => {
    if (typeof document === 'string') return document
    const { text, ...others } = isJsonObject(document) ? document : {}
    if (typeof text === 'string' && Object.keys(others).length === 0) return text
    refusals.add(`documents[${index}]`, 'must be a text, or an object with a text only')
    return ''
  })
}

function toRanking({ results }: JsonObject, { settings }: TranslationContext): JsonObject {
  if (!Array.isArray(results)) throw invalidResponse('it has no results')
  const { documents } = settings ?? {}
  const texts = Array.isArray(documents) ? documents : undefined
  return {
    results: results.map((result): JsonObject => {
      const { index, relevance_score: score } = isJsonObject(result) ? result : {}
      if (typeof index !== 'number' || isAbsent(score))
        throw invalidResponse('a result has no place or score')
      const text = texts?.[index]
      return { index, relevance_score: score, ...(text === undefined ? undefined : { document: { text } }) }
    }),
  }
}
