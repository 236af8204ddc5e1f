import { expect, it } from 'vitest'
import { fixtureExchange } from '../../../../test/fixtures/pipeline.ts'
import { SecretText } from '../../../cel/secret-text.ts'
import { readJsonObject } from '../../../lib/json/text.ts'
import type { Facts } from '../../../pipeline/exchange.ts'
import type { Candidate } from '../models/candidate.ts'
import type { Call } from '../request/call.ts'
import type { ResponseCache } from './cache.ts'
import { cacheKeys } from './key.ts'

const json = readJsonObject('{"model":"a","messages":[]}')
// The members that a key is made of.
const call = { endpoint: 'chat', hideUsage: false, json } as Call
const candidate = { model: 'a', target: {} } as Candidate
const cache = { fingerprint: '', key: undefined, headers: [] as readonly string[] } as ResponseCache

function keyOf(facts: Partial<Facts>): string | undefined {
  const exchange = fixtureExchange({ method: 'POST', path: '/v1/chat/completions' })
  return cacheKeys(
    { ...exchange, facts: { ...exchange.facts, ...facts } },
    call,
    candidate,
    cache,
  )?.canonical()
}

it('differs between identities of clients', () => {
  const secret = (text: string) => new SecretText(text)
  const source = { address: '127.0.0.1', port: 1 }
  const identities: Partial<Facts>[] = [
    {},
    { apiKey: { id: 'a' } },
    { apiKey: { id: 'b' } },
    { apiKey: { team: 'a' }, key: secret('1') },
    { apiKey: { team: 'a' }, key: secret('2') },
    { jwt: { sub: 'a' } },
    { jwt: { sub: 'a', iss: 'x' } },
    { jwt: { sub: 'b' } },
    { jwt: {}, token: secret('1') },
    { jwt: {}, token: secret('2') },
    { jwt: { sub: 'a' }, apiKey: { id: 'a' } },
    { basicAuth: { username: 'a' } },
    { source: { ...source, subject: 'CN=a', issuer: 'CN=x', subjectAltNames: [] } },
    { source: { ...source, subject: 'CN=b', issuer: 'CN=x', subjectAltNames: [] } },
  ]
  const keys = identities.map(keyOf)
  expect(new Set(keys).size).toBe(identities.length)
  expect(keys).not.toContain(undefined)
})

it('is equal for an identity with other credentials and names', () => {
  const secret = (text: string) => new SecretText(text)
  expect(keyOf({ apiKey: { id: 'a', name: 'x' }, key: secret('1') })).toBe(
    keyOf({ apiKey: { id: 'a', name: 'y' }, key: secret('2') }),
  )
  expect(keyOf({ jwt: { sub: 'a', exp: 1 }, token: secret('1') })).toBe(
    keyOf({ jwt: { sub: 'a', exp: 2 }, token: secret('2') }),
  )
})

it('contains the metadata of an authorization service, which may be the only identity', () => {
  const exchangeWith = (extAuthz: Facts['extAuthz'], headers = {}) => ({
    ...fixtureExchange({ method: 'POST', path: '/v1/chat/completions', headers }, { extAuthz }),
    extAuthz: [{ policy: 'p' } as never],
  })
  const keys = [
    exchangeWith({ user: 'ada' }),
    exchangeWith({ user: 'bob' }),
    exchangeWith(undefined, { cookie: 'session=1' }),
    exchangeWith(undefined, { cookie: 'session=2' }),
  ].map((exchange) => cacheKeys(exchange, call, candidate, cache)?.exact)
  expect(new Set(keys).size).toBe(4)
  expect(keys).not.toContain(undefined)
  expect(cacheKeys(exchangeWith(undefined), call, candidate, cache)).toBeUndefined()
})

it('contains the metadata of a processing service, which may be the only identity', () => {
  const exchangeWith = (extProc: Facts['extProc'], { user, headers = {} }: Known = {}) => ({
    ...fixtureExchange(
      { method: 'POST', path: '/v1/chat/completions', headers },
      { extProc, extAuthz: user },
    ),
    isProcessed: true,
  })
  const keys = [
    exchangeWith({ user: 'ada' }),
    exchangeWith({ user: 'bob' }),
    exchangeWith({ user: 'bob' }, { user: { user: 'bob' } }),
    exchangeWith(undefined, { user: { user: 'bob' } }),
    exchangeWith(undefined, { headers: { cookie: 'session=1' } }),
    exchangeWith({ user: 'ada' }, { headers: { cookie: 'session=1' } }),
  ].map((exchange) => cacheKeys(exchange, call, candidate, cache)?.exact)
  expect(new Set(keys).size).toBe(6)
  expect(keys).not.toContain(undefined)
  expect(cacheKeys(exchangeWith(undefined), call, candidate, cache)).toBeUndefined()
})

type Known = { readonly user?: Facts['extAuthz']; readonly headers?: Readonly<Record<string, string>> }

it('contains neither prompt nor credential', () => {
  expect(keyOf({ apiKey: { id: 'a' } })).toMatch(/^[\w-]{43}$/)
})
