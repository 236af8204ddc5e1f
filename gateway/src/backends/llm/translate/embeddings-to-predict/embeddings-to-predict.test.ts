import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../lib/json/json.ts'
import { parseExactObject } from '../exact-json.ts'
import { embeddingsToPredict } from './embeddings-to-predict.ts'

const context = { requestModel: 'gemini-embedding-001', now: () => 0, includeUsage: true }
const request = (fields: JsonObject) =>
  embeddingsToPredict.request({ model: 'gemini-embedding-001', input: 'a', ...fields })

describe('embeddings of Vertex AI', () => {
  it('are requested with one instance for each text', () => {
    expect(
      request({ input: ['a', 'b'], dimensions: 256, task_type: 'RETRIEVAL_QUERY', encoding_format: 'float' }),
    ).toEqual({
      kind: 'body',
      body: {
        instances: [
          { content: 'a', task_type: 'RETRIEVAL_QUERY' },
          { content: 'b', task_type: 'RETRIEVAL_QUERY' },
        ],
        parameters: { outputDimensionality: 256 },
      },
    })
  })

  it.each([
    ['input', { input: [1, 2] }],
    ['input', { input: {} }],
    ['encoding_format', { encoding_format: 'int8' }],
    ['other', { other: 1 }],
  ])('are refused for %s: %j', (param, fields) => {
    expect(request(fields as JsonObject)).toMatchObject({ kind: 'unsupported', param })
  })

  const text =
    '{"predictions":[{"embeddings":{"values":[0.5,-0.01234567890123456789],"statistics":{"token_count":4}}},{"embeddings":{"values":[1],"statistics":{"token_count":2}}}]}'

  it('have numbers and usage', () => {
    const reply = embeddingsToPredict.reply(parseExactObject(text) ?? {}, context)
    expect(JSON.parse(JSON.stringify(reply))).toEqual({
      object: 'list',
      model: 'gemini-embedding-001',
      data: [
        { object: 'embedding', index: 0, embedding: [0.5, -0.012345678901234568] },
        { object: 'embedding', index: 1, embedding: [1] },
      ],
      usage: { prompt_tokens: 6, total_tokens: 6 },
    })
  })

  it('are base64 if the client requests it', () => {
    const made = request({ encoding_format: 'base64' })
    const settings = made.kind === 'body' ? made.settings : undefined
    const { data } = embeddingsToPredict.reply(parseExactObject(text) ?? {}, { ...context, settings })
    const [first] = data as { embedding: string }[]
    const bytes = Buffer.from(first?.embedding ?? '', 'base64')
    expect([bytes.readFloatLE(0), bytes.readFloatLE(4)]).toEqual([0.5, Math.fround(-0.012345678901234568)])
  })

  it.each([{}, { predictions: [{}] }, { predictions: [{ embeddings: { values: 'x' } }] }])(
    '%j is refused',
    (body) => {
      expect(() => embeddingsToPredict.reply(body as JsonObject, context)).toThrow('cannot be read')
    },
  )
})
