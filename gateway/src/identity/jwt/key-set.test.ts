import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { signingPair } from '../../../test/fixtures/jwt.ts'
import { parseKeySet } from './key-set.ts'

const ec = signingPair('ec').jwk
const rsa = signingPair('rsa', 'RS256').jwk

function setOf(...keys: unknown[]) {
  return parseKeySet(JSON.stringify({ keys }))
}

function idsFor(set: ReturnType<typeof setOf>, id: string | undefined, algorithm: string) {
  return set?.find(id, algorithm).map((key) => key.id)
}

describe('a key set', () => {
  it.each(['', 'nonsense', '[]', '{}', '{"keys":{}}', 'null'])('rejects the text %s', (text) => {
    expect(parseKeySet(text)).toBeUndefined()
  })

  it('finds a key by id, for algorithms of that key only', () => {
    const set = setOf(ec, rsa)
    expect(idsFor(set, 'ec', 'ES256')).toEqual(['ec'])
    expect(idsFor(set, 'ec', 'RS256')).toEqual([])
    expect(idsFor(set, 'ec', 'HS256')).toEqual([])
    expect(idsFor(set, 'rsa', 'PS512')).toEqual(['rsa'])
    expect(idsFor(setOf({ ...rsa, alg: 'RS256' }), 'rsa', 'PS512')).toEqual([])
    expect(idsFor(set, 'none such', 'ES256')).toEqual([])
  })

  it('finds the only matching key without an id', () => {
    expect(idsFor(setOf(ec, rsa), undefined, 'ES256')).toEqual(['ec'])
    expect(idsFor(setOf(ec, { ...ec, kid: 'more' }), undefined, 'ES256')).toEqual([])
  })

  it('skips unusable keys', () => {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
    const useless = [
      null,
      'text',
      { kty: 'oct', kid: 'secret', k: 'c2VjcmV0' },
      { kty: 'OKP', crv: 'X25519', x: 'AA', kid: 'agreement' },
      { kty: 'EC', crv: 'constructor', kid: 'trick' },
      { kty: 'RSA', kid: 'without numbers' },
      { ...ec, kid: 'enc', use: 'enc' },
      { ...ec, kid: 'sign', key_ops: ['sign'] },
      { ...ec, kid: 'other', alg: 'RS256' },
      { ...ec, kid: 7 },
      { ...publicKey.export({ format: 'jwk' }), kid: 'short' },
    ]
    const set = setOf(...useless, ec)
    expect(set).toMatchObject({ size: 1, skipped: useless.length })
    expect(idsFor(set, 'ec', 'ES256')).toEqual(['ec'])
  })

  it('reads only the public members of a key', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const [key] = setOf({ ...privateKey.export({ format: 'jwk' }), kid: 'a' })?.find('a', 'ES256') ?? []
    expect(key?.key.type).toBe('public')
  })

  it('has a limit of keys', () => {
    expect(setOf(...Array.from({ length: 150 }, (_, id) => ({ ...ec, kid: `${id}` })))?.size).toBe(100)
  })
})
