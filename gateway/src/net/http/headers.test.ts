import { describe, expect, it } from 'vitest'
import { createHeaderFilter, firstHeader } from './headers.ts'

describe('createHeaderFilter', () => {
  it('drops hop-by-hop headers, those named in connection, and the given ones', () => {
    const headers = {
      connection: 'close, X-Private',
      'x-private': '1',
      te: 'trailers',
      'transfer-encoding': 'chunked',
      host: 'example.com',
      accept: '*/*',
      'x-many': ['1', '2'],
    }
    expect(createHeaderFilter((name) => name === 'host')(headers)).toEqual({
      accept: '*/*',
      'x-many': ['1', '2'],
    })
  })

  it('does not modify its argument', () => {
    const headers = { connection: 'keep-alive', accept: '*/*' }
    createHeaderFilter((name) => name === 'accept')(headers)
    expect(headers).toEqual({ connection: 'keep-alive', accept: '*/*' })
  })
})

describe('a caching filter', () => {
  it('decides about names beyond its cache', () => {
    const filter = createHeaderFilter((name) => name.startsWith('x-'))
    for (let index = 0; index < 3_000; index++) {
      expect(filter({ [`x-${index}`]: '1', [`y-${index}`]: '1' })).toEqual({ [`y-${index}`]: '1' })
    }
  })
})

describe('firstHeader', () => {
  it('returns the first of several values', () => {
    expect(firstHeader({ a: ['1', '2'] }, 'a')).toBe('1')
    expect(firstHeader({ a: '3' }, 'a')).toBe('3')
    expect(firstHeader({}, 'a')).toBeUndefined()
  })
})
