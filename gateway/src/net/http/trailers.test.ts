import { describe, expect, it } from 'vitest'
import { acceptsTrailers, allowedTrailers } from './trailers.ts'

describe('trailers', () => {
  it('are forwarded except fields for framing, routing or authentication', () => {
    const fields = {
      'x-sum': '1',
      'set-cookie': ['a'],
      host: 'h',
      authorization: 'a',
      ':status': '200',
      etag: 'e',
    }
    expect(allowedTrailers(fields)).toEqual({ 'x-sum': '1', etag: 'e' })
  })

  it('are undefined if none remain', () => {
    expect(allowedTrailers({ 'content-length': '1' })).toBeUndefined()
    expect(allowedTrailers(undefined)).toBeUndefined()
  })

  it.each([
    ['trailers', true],
    ['gzip;q=0.5, Trailers', true],
    ['gzip', false],
    ['trailersX', false],
    [undefined, false],
  ])('are read by a client with te: %s: %s', (te, expected) => {
    expect(acceptsTrailers(te === undefined ? {} : { te })).toBe(expected)
  })
})
