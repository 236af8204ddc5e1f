import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../lib/json/json.ts'
import type { Endpoint } from '../../request/endpoints.ts'
import type { Translation } from '../translate.ts'
import { batchEmbedContents, embedContent } from './gemini-embeddings.ts'

const context = { requestModel: 'm', now: () => 0, includeUsage: false }
const text = (...texts: string[]): JsonObject => ({ parts: texts.map((one) => ({ text: one })) })

function to(upstream: Endpoint, translations = embedContent): Translation {
  const found = translations.find((translation) => translation.upstream === upstream)
  if (found === undefined) throw new Error(`no translation to ${upstream}`)
  return found
}

function bodyOf(translation: Translation, request: JsonObject): JsonObject {
  const result = translation.request({ model: 'm', stream: false, ...request })
  if (result.kind !== 'body') throw new Error(result.message)
  return result.body
}

describe('a Gemini request for embeddings', () => {
  it('has its texts and its size', () => {
    const requests = [
      { model: 'models/other', content: text('a', 'b'), taskType: 'CLUSTERING', outputDimensionality: 8 },
      { content: { parts: { text: 'c' } }, task_type: 'CLUSTERING', output_dimensionality: 8 },
    ]
    const body = bodyOf(to('embeddings', batchEmbedContents), { requests })
    expect(body).toEqual({ model: 'm', input: ['a\nb', 'c'], dimensions: 8 })
    expect(bodyOf(to('embeddings'), { content: text('x') })).toEqual({ model: 'm', input: ['x'] })
  })

  it('has its task and title where the service has them', () => {
    const request = { content: text('x'), taskType: 'RETRIEVAL_DOCUMENT', title: 'T' }
    expect(bodyOf(to('predict'), request)).toEqual({
      instances: [{ content: 'x', task_type: 'RETRIEVAL_DOCUMENT', title: 'T' }],
    })
    const { title: _, ...untitled } = request
    expect(bodyOf(to('cohere_embeddings'), untitled)).toMatchObject({ input_type: 'search_document' })
    expect(bodyOf(to('titan_embeddings'), untitled)).toEqual({ inputText: 'x' })
    expect(bodyOf(to('nova_embeddings'), untitled)).toMatchObject({ taskType: 'SINGLE_EMBEDDING' })
  })

  const refused: [string, readonly Translation[], JsonObject][] = [
    ['content', embedContent, {}],
    ['content', embedContent, { content: { parts: [] } }],
    ['content.parts[0].inlineData', embedContent, { content: { parts: [{ text: 'x', inlineData: {} }] } }],
    ['content.parts[0].text', embedContent, { content: { parts: [{}] } }],
    ['title', embedContent, { content: text('x'), title: 'T' }],
    ['autoTruncate', embedContent, { content: text('x'), autoTruncate: true }],
    ['requests', batchEmbedContents, {}],
    ['other', batchEmbedContents, { requests: [{ content: text('x') }], other: 1 }],
    ['requests[0]', batchEmbedContents, { requests: [1] }],
    [
      'requests[1].outputDimensionality',
      batchEmbedContents,
      { requests: [{ content: text('x') }, { content: text('y'), outputDimensionality: 3 }] },
    ],
  ]
  it.each(refused)('is refused for %s', (param, translations, request) => {
    const result = to('embeddings', translations).request({ model: 'm', ...request })
    expect(result).toMatchObject({ kind: 'unsupported', param })
  })
})

describe('embeddings for a Gemini client', () => {
  const data = [
    { index: 1, embedding: [3] },
    { index: 0, embedding: [1, 2] },
  ]

  it('are in the order of the texts', () => {
    expect(to('embeddings', batchEmbedContents).reply({ data }, context)).toEqual({
      embeddings: [{ values: [1, 2] }, { values: [3] }],
    })
    expect(to('embeddings').reply({ data: [{ embedding: [1] }] }, context)).toEqual({
      embedding: { values: [1] },
    })
  })

  it('of other services have the same shape', () => {
    const predictions = [{ embeddings: { values: [1], statistics: { token_count: 1 } } }]
    expect(to('predict').reply({ predictions }, context)).toEqual({ embedding: { values: [1] } })
    const error = to('titan_embeddings').error(400, '{"message":"too long"}')
    expect(error).toMatchObject({ error: { code: 400, status: 'INVALID_ARGUMENT', message: 'too long' } })
  })

  it.each([
    {},
    { data: [{ embedding: 'AAAA' }] },
    { data: [{ index: 5, embedding: [1] }] },
    { data: [...data, data[0]] },
  ])('that are %j are refused', (body) => {
    expect(() => to('embeddings').reply(JSON.parse(JSON.stringify(body)), context)).toThrow('cannot be read')
    expect(() => to('embeddings').stream(context)).toThrow('cannot be read')
  })
})
