import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CredentialPlaceConfig } from './place-config.ts'
import { compilePlacement, compileReadPlaced } from './placement.ts'

function placed(place: CredentialPlaceConfig | undefined, path: string, cookie?: string) {
  const request = { headers: cookie === undefined ? {} : { cookie }, path }
  compilePlacement(place)(request, 'a b&c')
  return request
}

describe('the placement of a credential', () => {
  it('replaces the header of the client', () => {
    const request = { headers: { authorization: 'Bearer client', 'x-key': 'client' }, path: '/' }
    compilePlacement(undefined)(request, 'own')
    compilePlacement({ header: { name: 'X-Key' } })(request, 'own')
    expect(request).toEqual({ headers: { authorization: 'Bearer own', 'x-key': 'own' }, path: '/' })
  })

  it('replaces all parameters of the client with the same name', () => {
    const place = { queryParameter: { name: 'key' } }
    expect(placed(place, '/x').path).toBe('/x?key=a%20b%26c')
    expect(placed(place, '/x?key=1&a=2&%6Bey=3').path).toBe('/x?a=2&key=a%20b%26c')
  })

  it('replaces the cookie of the client and preserves the others', () => {
    const place = { cookie: { name: 'key' } }
    expect(placed(place, '/').headers).toEqual({ cookie: 'key=a%20b&c' })
    expect(placed(place, '/', 'a=1; key=2; b=3').headers).toEqual({ cookie: 'a=1; b=3; key=a%20b&c' })
  })

  it.each([
    undefined,
    { header: { name: 'X-Key' } },
    { header: { name: 'x-key', prefix: 'Key ' } },
    { queryParameter: { name: 'key' } },
    { cookie: { name: 'key' } },
  ])('is read from %j', (place) => {
    const request = { headers: { cookie: 'a=1' }, path: '/x?a=2' }
    const read = compileReadPlaced(place)
    expect(read(request)).toBeUndefined()
    compilePlacement(place)(request, 'token/1=')
    expect(read(request)).toBe('token/1=')
  })

  it('adds exactly one parameter or cookie for any credential', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (credential) => {
        const query = { headers: {}, path: '/?a=1' }
        compilePlacement({ queryParameter: { name: 'key' } })(query, credential)
        const sent = new URL(query.path, 'http://h').searchParams
        expect([...sent.keys()]).toEqual(['a', 'key'])
        expect(sent.get('key')).toBe(credential)
        const cookies = { headers: { cookie: 'a=1' }, path: '/' }
        compilePlacement({ cookie: { name: 'key' } })(cookies, credential)
        expect(cookies.headers.cookie.split(';')).toHaveLength(2)
      }),
    )
  })
})
