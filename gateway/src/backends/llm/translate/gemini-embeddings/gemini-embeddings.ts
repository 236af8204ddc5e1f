import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { composeTranslations } from '../compose.ts'
import { embeddingsToCohere, embeddingsToNova, embeddingsToTitan } from '../embeddings/embeddings.ts'
import { embeddingsToPredict } from '../embeddings-to-predict/embeddings-to-predict.ts'
import { camelCased, objectAt, objectsAt } from '../gemini-to-chat/fields.ts'
import { createRefusals, isAbsent, type Refusals } from '../refusals.ts'
import type { TranslatedRequest, Translation } from '../translate.ts'
import { invalidResponse, readUpstreamError, toErrorBody } from '../upstream-error.ts'

/** Fields of OpenAI's embeddings for a task and a title, as far as a service has them. */
type TaskFields = (task: Task, refusals: Refusals) => JsonObject
type Task = {
  readonly type: JsonValue | undefined
  readonly title: JsonValue | undefined
  readonly path: string
}

/** Translations of `embedContent`, best first. */
export const embedContent: readonly Translation[] = translationsOf(
  (body) => [[withoutModel(body), '']],
  (vectors) => ({ embedding: { values: vectors[0] ?? [] } }),
)

/** Translations of `batchEmbedContents`, best first. */
export const batchEmbedContents: readonly Translation[] = translationsOf(
  (body, refusals) => {
    const { requests, ...others } = withoutModel(body)
    refusals.addUnknown(others, new Set(), '')
    return objectsAt(requests, 'requests', refusals).map(([request, path]) => [
      withoutModel(request),
      `${path}.`,
    ])
  },
  (vectors) => ({ embeddings: vectors.map((values) => ({ values })) }),
)

/** The model is that of the path. */
function withoutModel(body: JsonObject): JsonObject {
  const { model: _, stream: _stream, ...rest } = camelCased(body)
  return rest
}

type ReadRequests = (body: JsonObject, refusals: Refusals) => [request: JsonObject, prefix: string][]
type WriteVectors = (vectors: JsonValue[]) => JsonObject

function translationsOf(read: ReadRequests, write: WriteVectors): readonly Translation[] {
  const to = (fields: TaskFields): Translation => ({
    upstream: 'embeddings',
    request: (body) => toEmbeddings(body, read, fields),
    reply: (body) => write(vectorsIn(body)),
    error: (status, body) => toErrorBody('google', readUpstreamError(status, body)),
    stream() {
      throw invalidResponse('embeddings are not a stream')
    },
  })
  return [
    to(plainTask),
    composeTranslations(to(googleTask), embeddingsToPredict),
    composeTranslations(to(plainTask), embeddingsToTitan),
    composeTranslations(to(cohereTask), embeddingsToCohere),
    composeTranslations(to(plainTask), embeddingsToNova),
  ]
}

/** Vectors of most vendors do not depend on the task. */
function plainTask({ title, path }: Task, refusals: Refusals): JsonObject {
  if (!isAbsent(title)) refusals.add(`${path}title`, 'has no counterpart in this API: put it into the text')
  return {}
}

function googleTask({ type, title }: Task): JsonObject {
  return {
    ...(isAbsent(type) ? undefined : { task_type: type }),
    ...(isAbsent(title) ? undefined : { title }),
  }
}

const cohereTypes: ReadonlyMap<JsonValue, string> = new Map([
  ['RETRIEVAL_DOCUMENT', 'search_document'],
  ['CLASSIFICATION', 'classification'],
  ['CLUSTERING', 'clustering'],
])

function cohereTask(task: Task, refusals: Refusals): JsonObject {
  const type = cohereTypes.get(task.type ?? null)
  return { ...plainTask(task, refusals), ...(type === undefined ? undefined : { input_type: type }) }
}

const requestFields: ReadonlySet<string> = new Set(['content', 'taskType', 'title', 'outputDimensionality'])

/** Embeddings have one task and size for all texts. */
function toEmbeddings(body: JsonObject, read: ReadRequests, fields: TaskFields): TranslatedRequest {
  const refusals = createRefusals('embeddings')
  const requests = read(body, refusals)
  const [first] = requests
  if (first === undefined) refusals.add('requests', 'must have at least one request')
  const input = requests.map(([request, prefix]) => {
    refusals.addUnknown(request, requestFields, prefix.slice(0, -1))
    for (const name of ['taskType', 'title', 'outputDimensionality'])
      if (request[name] !== first?.[0][name])
        refusals.add(`${prefix}${name}`, 'must be the same in all requests')
    return textIn(request.content, `${prefix}content`, refusals)
  })
  const [shared = {}, path = ''] = first ?? []
  const { taskType: type, title, outputDimensionality: dimensions } = shared
  return refusals.result({
    model: body.model ?? '',
    input,
    ...(isAbsent(dimensions) ? undefined : { dimensions }),
    ...fields({ type, title, path }, refusals),
  })
}

const contentFields: ReadonlySet<string> = new Set(['role', 'parts'])
const partFields: ReadonlySet<string> = new Set(['text'])

function textIn(value: JsonValue | undefined, path: string, refusals: Refusals): string {
  const content = objectAt(value, path, refusals)
  refusals.addUnknown(content, contentFields, path)
  const texts = objectsAt(content.parts, `${path}.parts`, refusals).map(([part, at]) => {
    refusals.addUnknown(part, partFields, at)
    if (typeof part.text !== 'string') refusals.add(`${at}.text`, 'must be a string')
    return part.text
  })
  const text = texts.join('\n')
  if (text === '') refusals.add(path, 'must have a text')
  return text
}

function vectorsIn({ data }: JsonObject): JsonValue[] {
  if (!Array.isArray(data)) throw invalidResponse('it has no embeddings')
  const vectors: JsonValue[] = []
  for (const [position, item] of data.entries()) {
    const { index = position, embedding } = isJsonObject(item) ? item : {}
    if (!Array.isArray(embedding)) throw invalidResponse('an embedding is not a list of numbers')
    if (typeof index !== 'number' || index < 0 || index >= data.length)
      throw invalidResponse('the index of an embedding is out of range')
    if (vectors[index] !== undefined) throw invalidResponse('two embeddings have the same index')
    vectors[index] = embedding
  }
  return vectors
}
