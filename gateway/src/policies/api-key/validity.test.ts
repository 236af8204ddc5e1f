import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange, textOf, throughPolicies } from '../../../test/fixtures/pipeline.ts'
import { compileAuthentication } from '../../identity/authentication.ts'
import { type ApiKeyConfig, checkApiKey, compileApiKey } from './api-key.ts'
import { compilePatterns, intersectAccess } from './name-patterns.ts'
import { digestOf, keyHashOf } from './record.ts'

const end = Date.parse('2027-01-31T00:00:00Z')
const hashOf = (key: string) => keyHashOf(digestOf(key))

function send(config: ApiKeyConfig, now: number, headers: Record<string, string>) {
  const context = { ...fixtureContext(), clock: { now: () => now, monotonic: () => 0 } }
  const exchange = fixtureExchange({ headers })
  const policy = compileAuthentication('api key', [compileApiKey(config, context, 'llm')])
  const reply = throughPolicies([policy], exchange)
  return { status: reply.status, text: textOf(reply), exchange, refusedBy: exchange.log.refusedBy }
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const expiring: ApiKeyConfig = {
  keys: [{ key: 'k', metadata: { id: 'key-1' }, expiresAt: '2027-01-31T01:00:00+01:00' }],
}

describe('a key with an end', () => {
  it('is accepted before it and refused from then on, as an unknown key', () => {
    expect(send(expiring, end - 1, bearer('k')).status).toBe(200)
    const refused = send(expiring, end, bearer('k'))
    expect(refused.status).toBe(401)
    expect(refused.text).toBe(send(expiring, end, bearer('unknown')).text)
    expect(refused.refusedBy).toBe('api-key: expired key key-1')
    expect(refused.exchange.facts.apiKey).toBeUndefined()
  })

  it('records its end for streams', () => {
    expect(send(expiring, end - 1, bearer('k')).exchange.auth.expiresAt).toBe(end)
    expect(send({ keys: [{ key: 'k' }] }, 0, bearer('k')).exchange.auth.expiresAt).toBeUndefined()
  })

  it.each(['strict', 'optional', 'permissive'] as const)('is refused in %s mode', (mode) => {
    expect(send({ ...expiring, mode }, end, bearer('k')).status).toBe(401)
  })

  it('does not prevent a valid key in another location', () => {
    const keys = [...expiring.keys, { key: 'other' }]
    expect(send({ keys }, end, { ...bearer('k'), 'x-api-key': 'other' }).status).toBe(200)
    expect(send({ keys }, end, { ...bearer('k'), 'x-api-key': 'unknown' }).refusedBy).toContain('expired')
  })
})

describe('a disabled key', () => {
  const config: ApiKeyConfig = { keys: [{ key: 'k', disabled: true, metadata: { id: 'key-1' } }] }

  it('is refused with its own reason in the log', () => {
    const refused = send(config, 0, bearer('k'))
    expect(refused.status).toBe(401)
    expect(refused.text).toContain('api key authentication failure: invalid credentials')
    expect(refused.refusedBy).toBe('api-key: disabled key key-1')
  })

  it('is refused with its earlier keys', () => {
    const previousKeys = [{ keyHash: hashOf('old'), expiresAt: '2099-01-01T00:00:00Z' }]
    const keys = config.keys.map((record) => ({ ...record, previousKeys }))
    expect(send({ keys }, 0, bearer('old')).refusedBy).toBe('api-key: disabled key key-1')
  })
})

describe('an earlier key', () => {
  const previousKeys = [{ keyHash: hashOf('old'), expiresAt: '2027-01-31T00:00:00Z' }]
  const config: ApiKeyConfig = { keys: [{ key: 'new', metadata: { name: 'ci' }, previousKeys }] }

  it('has the identity of its record until its end', () => {
    const old = send(config, end - 1, bearer('old'))
    expect(old.status).toBe(200)
    expect(old.exchange.facts.apiKey).toEqual(send(config, end, bearer('new')).exchange.facts.apiKey)
    expect(send(config, end, bearer('old')).refusedBy).toMatch(/^api-key: rotated key [0-9a-f-]{36}$/)
  })

  it('ends with its record', () => {
    const keys = config.keys.map((record) => ({ ...record, expiresAt: '2026-01-31T00:00:00Z' }))
    expect(send({ keys }, end - 1, bearer('old')).refusedBy).toContain('expired key')
  })
})

describe('the id of a key', () => {
  it('may be that of agentgateway', () => {
    const metadata = { 'agentgateway.dev/id': 'theirs', name: 'ci' }
    expect(send({ keys: [{ key: 'k', metadata }] }, 0, bearer('k')).exchange.facts.apiKey).toEqual({
      ...metadata,
      id: 'theirs',
    })
  })
})

describe('two keys of one request', () => {
  const names = fc.constantFrom('a', 'ab', 'abc', 'b', 'bc', 'c', '')
  const patterns = fc.option(fc.array(fc.constantFrom('*', 'a', 'a*', 'ab*', '*c', '*b', 'b')), {
    nil: undefined,
  })

  it('permit exactly the names that both permit', () => {
    fc.assert(
      fc.property(patterns, patterns, names, (one, other, name) => {
        const [first, second] = [compilePatterns(one), compilePatterns(other)]
        const permitted = (first?.allows(name) ?? true) && (second?.allows(name) ?? true)
        expect(intersectAccess(first, second)?.allows(name) ?? true).toBe(permitted)
      }),
    )
  })

  it('apply the limits of both, and end with the first', () => {
    const limits = [{ requests: 1, unit: 'Hours' as const }]
    const context = { ...fixtureContext(), clock: { now: () => 0, monotonic: () => 0 } }
    const inner = { keys: [{ key: 'k', metadata: { id: 'inner' }, limits, allowedTargets: ['a*'] }] }
    const outer = { keys: expiring.keys.map((record) => ({ ...record, limits, allowedTargets: ['*b'] })) }
    const exchange = fixtureExchange({ headers: bearer('k') })
    const checks = [inner, outer].map((config, at) => compileApiKey(config, context, `scope ${at}`))
    throughPolicies([{ name: 'keys', onRequest: (one) => void checks.map((check) => check(one)) }], exchange)
    const { auth, facts } = exchange
    expect(facts.apiKey?.['id']).toBe('inner')
    expect(auth.limits?.map(({ keyId, label }) => [keyId, label])).toEqual([
      ['inner', 'requests per hour'],
      ['key-1', 'requests per hour'],
    ])
    expect(auth.expiresAt).toBe(end)
    expect(['ab', 'a', 'b'].map((name) => auth.targets?.allows(name))).toEqual([true, false, false])
  })
})

describe('checking', () => {
  function issues(record: object): string[] {
    const found: string[] = []
    const keys = [{ key: 'k', ...record }]
    checkApiKey({ keys }, (path, message) => found.push(`${path.join('.')}: ${message}`))
    return found
  }

  it.each([
    ['a date', { expiresAt: '2027-01-31' }, 'keys.0.expiresAt: expiresAt must be an RFC 3339 time'],
    ['a pattern', { allowedTargets: ['a*b'] }, 'keys.0.allowedTargets.0: a target pattern has at most one *'],
    [
      'a malformed hash',
      { previousKeys: [{ keyHash: 'x', expiresAt: '2027-01-31T00:00:00Z' }] },
      'keys.0.previousKeys.0.keyHash: ',
    ],
    [
      'the current key as earlier one',
      { previousKeys: [{ keyHash: hashOf('k'), expiresAt: '2027-01-31T00:00:00Z' }] },
      'keys.0: the same key is in keys[0] already',
    ],
    [
      'an allowance beyond exact counts',
      { limits: [{ requests: Number.MAX_SAFE_INTEGER, burst: 1, unit: 'Hours' }] },
      'keys.0.limits.0.burst: sum of base and burst is too large',
    ],
  ])('reports %s', (_, record, message) => {
    expect(issues(record)).toEqual([expect.stringContaining(message)])
  })
})
