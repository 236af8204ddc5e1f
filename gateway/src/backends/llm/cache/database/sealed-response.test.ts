import { describe, expect, it } from 'vitest'
import { openResponse, rowKeysOf, sealResponse } from './sealed-response.ts'

const scope = { place: 'gpt', secret: 'of the replicas' }
const response = { contentType: 'application/json', model: 'gpt-1', body: Buffer.from('{"a":"line\nline"}') }

describe('a row of the cache', () => {
  it('has keys of the request, the place and the secret', () => {
    const keys = [
      rowKeysOf('a', scope),
      rowKeysOf('b', scope),
      rowKeysOf('a', { ...scope, place: 'other' }),
      rowKeysOf('a', { ...scope, secret: undefined }),
    ]
    expect(new Set(keys.map(({ row }) => row)).size).toBe(4)
    expect(new Set(keys.map(({ content }) => String(content))).size).toBe(4)
    expect(rowKeysOf('a', scope)).toEqual(keys[0])
  })

  it('returns its response, also without a model and a body', () => {
    const { content } = rowKeysOf('a', scope)
    for (const sealed of [response, { ...response, model: undefined, body: Buffer.alloc(0) }])
      expect(openResponse(content, sealResponse(content, sealed))).toEqual(sealed)
  })

  it('contains no text of the response', () => {
    const { content } = rowKeysOf('a', scope)
    const texts = [1, 2].map(() => Buffer.from(sealResponse(content, response)).toString('latin1'))
    expect(texts[0]).not.toContain('line')
    expect(texts[0]).not.toContain('json')
    expect(texts[1]).not.toBe(texts[0])
  })

  it('returns nothing if it is damaged or belongs to another request', () => {
    const { content } = rowKeysOf('a', scope)
    const sealed = sealResponse(content, response)
    const damaged = Uint8Array.from(sealed)
    damaged[damaged.length - 1] = (damaged.at(-1) ?? 0) ^ 1
    expect(openResponse(content, damaged)).toBeUndefined()
    expect(openResponse(content, sealed.subarray(0, 20))).toBeUndefined()
    expect(openResponse(rowKeysOf('b', scope).content, sealed)).toBeUndefined()
  })
})
