import { describe, expect, it } from 'vitest'
import { firstHeader, forwardableHeaders } from './headers.ts'

describe('forwardableHeaders', () => {
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
    expect(forwardableHeaders(headers, new Set(['host']))).toEqual({ accept: '*/*', 'x-many': ['1', '2'] })
  })

  it('leaves its argument alone', () => {
    const headers = { connection: 'keep-alive', accept: '*/*' }
    forwardableHeaders(headers, new Set(['accept']))
    expect(headers).toEqual({ connection: 'keep-alive', accept: '*/*' })
  })
})

describe('firstHeader', () => {
  it('takes the first of several values', () => {
    expect(firstHeader({ a: ['1', '2'] }, 'a')).toBe('1')
    expect(firstHeader({ a: '3' }, 'a')).toBe('3')
    expect(firstHeader({}, 'a')).toBeUndefined()
  })
})
