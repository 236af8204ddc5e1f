import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../../../test/fixtures/pipeline.ts'
import { createSealedValues } from './sealed-values.ts'

const key = Buffer.alloc(32, 7)

function setUp(issuer = 'https://gw.test/mcp', sessionKey = key, settings = 'g') {
  const { clock } = fixtureContext()
  return { clock, sealed: createSealedValues(sessionKey, { issuer, settings }, clock) }
}

describe('a sealed value', () => {
  it('is read back with any content', () => {
    const { sealed } = setUp()
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const plain = JSON.parse(JSON.stringify(value))
        expect(sealed.unseal('code', sealed.seal('code', plain, undefined))).toEqual(plain)
      }),
    )
  })

  it('is not read after any change of its text', () => {
    const { sealed } = setUp()
    const text = sealed.seal('code', { a: 'b' }, undefined)
    fc.assert(
      fc.property(fc.nat(text.length - 1), fc.constantFrom(...'AZaz09-_=+ '), (index, character) => {
        const changed = text.slice(0, index) + character + text.slice(index + 1)
        expect(sealed.unseal('code', changed)).toEqual(changed === text ? { a: 'b' } : undefined)
      }),
    )
    for (const each of [
      '',
      'x',
      text.slice(1),
      text.slice(0, -1),
      `${text}A`,
      text + text,
      'A'.repeat(30_000),
    ])
      expect(sealed.unseal('code', each)).toBeUndefined()
  })

  it('is not read for another purpose, issuer or key', () => {
    const { sealed } = setUp()
    const text = sealed.seal('code', { a: 'b' }, undefined)
    for (const purpose of ['client', 'request', 'login', 'access', 'refresh'] as const)
      expect(sealed.unseal(purpose, text)).toBeUndefined()
    expect(setUp('https://gw.test/other').sealed.unseal('code', text)).toBeUndefined()
    expect(setUp(undefined, Buffer.alloc(32, 8)).sealed.unseal('code', text)).toBeUndefined()
    expect(setUp().sealed.unseal('code', text)).toEqual({ a: 'b' })
  })

  it('is not read under other settings, unless it is a registration', () => {
    const { sealed } = setUp()
    const other = setUp(undefined, undefined, 'x'.repeat(5_000)).sealed
    expect(other.unseal('access', sealed.seal('access', { a: 'b' }, undefined))).toBeUndefined()
    expect(other.unseal('client', sealed.seal('client', { a: 'b' }, undefined))).toEqual({ a: 'b' })
  })

  it('expires', () => {
    const { sealed, clock } = setUp()
    const text = sealed.seal('code', {}, clock.now() + 10)
    clock.advance(9)
    expect(sealed.unseal('code', text)).toEqual({})
    clock.advance(1)
    expect(sealed.unseal('code', text)).toBeUndefined()
  })
})
