import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../lib/json/json.ts'
import { rerankToBedrock } from './rerank-to-bedrock.ts'

const context = { requestModel: 'm', now: () => 0, includeUsage: true }
const ranked = {
  results: [
    { index: 1, relevance_score: 0.9 },
    { index: 0, relevance_score: 0.1 },
  ],
}

function refusalOf(body: JsonObject): string {
  const translated = rerankToBedrock.request({ model: 'm', query: 'q', documents: ['a'], ...body })
  return translated.kind === 'unsupported' ? translated.message : ''
}

describe('rerank', () => {
  it('becomes a request of a reranker of Bedrock', () => {
    const body = { model: 'm', query: 'q', documents: ['a', { text: 'b' }], top_n: 1 }
    expect(rerankToBedrock.request(body)).toEqual({
      kind: 'body',
      body: { query: 'q', documents: ['a', 'b'], top_n: 1 },
    })
  })

  it('returns the documents on request', () => {
    const body = { model: 'm', query: 'q', documents: ['a', { text: 'b' }], return_documents: true }
    const translated = rerankToBedrock.request(body)
    const settings = translated.kind === 'body' ? translated.settings : undefined
    expect(rerankToBedrock.reply(ranked, { ...context, settings })).toEqual({
      results: [
        { index: 1, relevance_score: 0.9, document: { text: 'b' } },
        { index: 0, relevance_score: 0.1, document: { text: 'a' } },
      ],
    })
    expect(rerankToBedrock.reply(ranked, context)).toEqual(ranked)
  })

  it.each<[JsonObject, string]>([
    [{ query: 1 }, 'query: must be a string'],
    [{ documents: [] }, 'documents: must be a list of texts'],
    [{ documents: ['a', { title: 'b' }] }, 'documents[1]: must be a text, or an object with a text only'],
    [
      { documents: [{ text: 'a', title: 'b' }] },
      'documents[0]: must be a text, or an object with a text only',
    ],
    [{ return_documents: 'yes' }, 'return_documents: must be true or false'],
    [{ max_tokens_per_doc: 10 }, 'max_tokens_per_doc: cannot be translated for Amazon Bedrock'],
    [{ rank_fields: ['a'] }, 'rank_fields: cannot be translated for Amazon Bedrock'],
  ])('refuses %j', (body, message) => {
    expect(refusalOf(body)).toBe(message)
  })

  it.each<[JsonObject]>([[{}], [{ results: ['x'] }], [{ results: [{ index: 0 }] }]])(
    'refuses the response %j',
    (body) => {
      expect(() => rerankToBedrock.reply(body, context)).toThrow(/no results|no place or score/)
    },
  )

  it('has errors in the shape of Cohere, with advice', () => {
    expect(rerankToBedrock.error(404, '{"message":"unknown model"}')).toMatchObject({
      message: 'unknown model: check the id of the model and the region',
    })
  })
})
