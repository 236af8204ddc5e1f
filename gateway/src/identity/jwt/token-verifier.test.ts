import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  audience,
  issuer,
  keySetOf,
  type SigningPair,
  signingPair,
  signPayload,
  signToken,
} from '../../../test/fixtures/jwt.ts'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import { parseKeySet } from './key-set.ts'
import { createLocalKeySource } from './key-source.ts'
import { createTokenVerifier, type TokenRules, type Verdict } from './token-verifier.ts'

const ec = signingPair('ec')
const rsa = signingPair('rsa', 'RS256')
const ed = signingPair('ed', 'EdDSA')
const rules: TokenRules = { issuer, audiences: ['other', audience], requiredClaims: ['exp'] }
const nowMs = 1_700_000_000_000

function sourceOf(...pairs: SigningPair[]) {
  const set = parseKeySet(keySetOf(...pairs))
  if (set === undefined) throw new Error('no key set')
  return createLocalKeySource(set)
}

function setUp(changed: Partial<TokenRules> = {}, source = sourceOf(ec, rsa, ed)) {
  const { clock } = fixtureContext()
  clock.advance(nowMs - clock.now())
  const verifier = createTokenVerifier(source, { ...rules, ...changed }, clock)
  return { clock, verify: (token: string) => verifier.verify(token) }
}

async function verdictOn(token: string | Promise<string>, changed?: Partial<TokenRules>): Promise<Verdict> {
  return setUp(changed).verify(await token)
}

function refusal(reason: string): Verdict {
  return { kind: 'invalid', reason }
}

const seconds = nowMs / 1000

describe('a token', () => {
  it.each([ec, rsa, ed])('signed with a key of the set is valid: $algorithm', async (pair) => {
    const verdict = await verdictOn(signToken(pair, nowMs, { roles: ['reader'] }))
    expect(verdict).toMatchObject({ kind: 'valid', claims: { sub: 'ada', roles: ['reader'] } })
  })

  it('has claims with exact integers', async () => {
    const claims = JSON.stringify({ iss: issuer, aud: audience, exp: seconds + 60, level: 3 })
    const text = claims.replace('}', ',"tenant":9007199254740993}')
    const verdict = await verdictOn(signPayload(ec, text))
    expect(verdict).toMatchObject({ kind: 'valid', claims: { tenant: 9007199254740993n, level: 3 } })
  })

  it.each([
    ['another issuer', { iss: 'https://id.example.com:8443/realms/other' }, 'claim iss'],
    ['an issuer that differs by a slash', { iss: `${issuer}/` }, 'claim iss'],
    ['another audience', { aud: 'someone else' }, 'claim aud'],
    ['no audience of several', { aud: ['a', 'b'] }, 'claim aud'],
    ['an expiry past the leeway', { exp: seconds - 61 }, 'expired'],
    ['an expiry that is no number', { exp: 'never' }, 'claim exp'],
    ['a beginning past the leeway', { nbf: seconds + 61 }, 'claim nbf'],
  ])('with %s is invalid', async (_, claims, reason) => {
    const token = signToken(ec, nowMs, claims)
    expect(await verdictOn(token)).toEqual(refusal(reason))
  })

  it.each([
    ['one audience of several', { aud: ['a', audience] }],
    ['an expiry within the leeway', { exp: seconds - 59 }],
    ['a beginning within the leeway', { nbf: seconds + 59 }],
  ])('with %s is valid', async (_, claims) => {
    expect(await verdictOn(signToken(ec, nowMs, claims))).toMatchObject({ kind: 'valid' })
  })

  it('without a required claim is invalid', async () => {
    const without = signToken(ec, nowMs, { exp: undefined, sub: undefined })
    expect(await verdictOn(without)).toEqual(refusal('claim exp'))
    expect(await verdictOn(without, { requiredClaims: ['sub'] })).toEqual(refusal('claim sub'))
    expect(await verdictOn(without, { requiredClaims: [] })).toMatchObject({ kind: 'valid' })
  })

  it('without issuer or audience is invalid regardless of requiredClaims', async () => {
    const lax = { requiredClaims: [] }
    expect(await verdictOn(signToken(ec, nowMs, { iss: undefined }), lax)).toEqual(refusal('claim iss'))
    expect(await verdictOn(signToken(ec, nowMs, { aud: undefined }), lax)).toEqual(refusal('claim aud'))
  })

  it('with an unknown key id, or that of another algorithm, is invalid', async () => {
    expect(await verdictOn(signToken(ec, nowMs, {}, { kid: 'gone' }))).toEqual(refusal('unknown key'))
    expect(await verdictOn(signToken(ec, nowMs, {}, { kid: 'rsa' }))).toEqual(refusal('unknown key'))
    const impostor = signingPair('ec')
    expect(await verdictOn(signToken(impostor, nowMs))).toEqual(refusal('wrong signature'))
  })

  it('with an unknown key id causes a fetch only with the expected issuer', async () => {
    const { current: keys } = sourceOf(ec)
    const wanted: string[] = []
    const renewed = async (keyId: string) => {
      wanted.push(keyId)
      return keys()
    }
    const { verify } = setUp({}, { current: keys, refetch: renewed })
    await verify(await signToken(ec, nowMs, { iss: 'https://other.test' }, { kid: 'foreign' }))
    await verify(await signToken(ec, nowMs, {}, { kid: 'unknown' }))
    expect(wanted).toEqual(['unknown'])
  })

  it('without a key id is valid only if one key matches', async () => {
    const token = await signToken(ec, nowMs, {}, { kid: undefined })
    expect(await verdictOn(token)).toMatchObject({ kind: 'valid' })
    const two = setUp({}, sourceOf(ec, signingPair('ec2')))
    expect(await two.verify(token)).toEqual(refusal('unknown key'))
  })

  it('without a signature, or signed with the public key as a secret, is invalid', async () => {
    const [, payload = ''] = (await signToken(rsa, nowMs)).split('.')
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const none = `${part({ alg: 'none', kid: 'rsa' })}.${payload}.`
    expect(await verdictOn(none)).toEqual(refusal('malformed'))
    expect(await verdictOn(`${none}AA`)).toEqual(refusal('unknown key'))
    for (const secret of [JSON.stringify(rsa.jwk), String(rsa.jwk['n'])]) {
      const signed = `${part({ alg: 'HS256', kid: 'rsa' })}.${payload}`
      const signature = createHmac('sha256', secret).update(signed).digest('base64url')
      expect(await verdictOn(`${signed}.${signature}`)).toEqual(refusal('unknown key'))
    }
  })

  it('of excessive length is refused before verification', () => {
    expect(setUp().verify('x'.repeat(16 * 1024 + 1))).toEqual(refusal('too long'))
  })

  it('of any shape is refused without an error', async () => {
    const { verify } = setUp()
    const segment = fc.oneof(
      fc.base64String().map((text) => text.replace(/[+/=]/g, '_')),
      fc.json().map((json) => Buffer.from(json).toString('base64url')),
      fc
        .record({
          alg: fc.constantFrom('none', 'ES256', 'HS256', 'RS256', ''),
          kid: fc.constantFrom('ec', 'rsa', 1),
        })
        .map((header) => Buffer.from(JSON.stringify(header)).toString('base64url')),
    )
    const token = fc.oneof(
      fc.string(),
      fc.array(segment, { maxLength: 5 }).map((parts) => parts.join('.')),
    )
    await fc.assert(
      fc.asyncProperty(token, async (text) => {
        expect((await verify(text)).kind).toBe('invalid')
      }),
      { numRuns: 300 },
    )
  })

  it('with any single character changed is invalid', async () => {
    const { verify } = setUp()
    const good = await signToken(ec, nowMs)
    await verify(good)
    await fc.assert(
      fc.asyncProperty(
        fc.nat(good.length - 2),
        fc.constantFrom('A', 'z', '0', '.', '-'),
        async (at, character) => {
          const changed = good.slice(0, at) + character + good.slice(at + 1)
          if (changed !== good) expect((await verify(changed)).kind).toBe('invalid')
        },
      ),
      { numRuns: 200 },
    )
  })
})

describe('a cached token', () => {
  it('is returned synchronously until it expires', async () => {
    const { clock, verify } = setUp()
    const token = await signToken(ec, nowMs)
    expect(await verify(token)).toMatchObject({ kind: 'valid' })
    expect(verify(token)).toMatchObject({ kind: 'valid', claims: { sub: 'ada' } })
    clock.advance(299_999)
    expect(verify(token)).toMatchObject({ kind: 'valid' })
    clock.advance(1)
    const again = verify(token)
    expect(again).toBeInstanceOf(Promise)
    expect(await again).toMatchObject({ kind: 'valid' })
    clock.advance(60_000)
    expect(await verify(token)).toEqual(refusal('expired'))
  })

  it('is verified again after five minutes if it has no expiry', async () => {
    const { clock, verify } = setUp({ requiredClaims: [] })
    const token = await signToken(ec, nowMs, { exp: undefined })
    await verify(token)
    clock.advance(299_999)
    expect(verify(token)).not.toBeInstanceOf(Promise)
    clock.advance(1)
    expect(verify(token)).toBeInstanceOf(Promise)
  })

  it('is verified again after a change of keys', async () => {
    const both = sourceOf(ec, rsa).current()
    const other = sourceOf(rsa).current()
    let keys = both
    const { verify } = setUp({}, { current: () => keys, refetch: async () => keys })
    const token = await signToken(ec, nowMs)
    await verify(token)
    expect(verify(token)).toMatchObject({ kind: 'valid' })
    keys = other
    expect(await verify(token)).toEqual(refusal('unknown key'))
  })

  it('is not confused with a token of the same prefix', async () => {
    const { verify } = setUp()
    const token = await signToken(ec, nowMs)
    await verify(token)
    expect(await verify(token.slice(0, -4))).toMatchObject({ kind: 'invalid' })
    expect(await verify(`${token}AAAA`)).toMatchObject({ kind: 'invalid' })
  })
})

describe('without keys', () => {
  const none = { current: () => undefined, refetch: async () => undefined }

  it('a token is neither valid nor invalid', async () => {
    expect(await setUp({}, none).verify(await signToken(ec, nowMs))).toEqual({ kind: 'unavailable' })
  })

  it('a text that is not a token is still invalid', async () => {
    expect(await setUp({}, none).verify('nonsense')).toEqual(refusal('malformed'))
  })
})
