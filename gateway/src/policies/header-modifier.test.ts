import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureExchange, throughPolicies } from '../../test/fixtures/pipeline.ts'
import type { Headers } from '../net/http/headers.ts'
import type { HeaderModifierConfig } from '../upstream/header-modifier.ts'
import {
  checkHeaderModifier,
  compileRequestHeaderModifier,
  compileResponseHeaderModifier,
} from './header-modifier.ts'

/** The headers that are forwarded for a request with `headers`. */
function forwarded(config: HeaderModifierConfig, headers: Headers): Headers {
  const exchange = fixtureExchange({ headers })
  throughPolicies([compileRequestHeaderModifier(config)], exchange)
  const copy = { ...headers }
  for (const edit of exchange.forwarding?.headerEdits ?? []) edit(copy)
  return copy
}

function mistakes(config: HeaderModifierConfig, of: 'request' | 'response' = 'request'): string[] {
  const found: string[] = []
  checkHeaderModifier(config, of, (path, message) => found.push(`${path.join('.')}: ${message}`))
  return found
}

describe('request headers', () => {
  it('are added beside those that are there, set in their place, and removed', () => {
    const config = { add: { 'X-A': '2' }, set: { 'X-B': 'new' }, remove: ['X-C', 'x-absent'] }
    const headers = { 'x-a': '1', 'x-b': 'old', 'x-c': 'gone', accept: '*/*' }
    expect(forwarded(config, headers)).toEqual({ 'x-a': '1,2', 'x-b': 'new', accept: '*/*' })
    expect(forwarded(config, {})).toEqual({ 'x-a': '2', 'x-b': 'new' })
  })

  it('are joined as each kind of header is', () => {
    const config = { add: { cookie: 'b=2', 'x-many': '3' } }
    expect(forwarded(config, { cookie: 'a=1', 'x-many': ['1', '2'] })).toEqual({
      cookie: 'a=1; b=2',
      'x-many': ['1', '2', '3'],
    })
  })

  it('stay as the client sent them for everyone but the upstream', () => {
    const exchange = fixtureExchange({ headers: { 'x-a': '1' } })
    throughPolicies([compileRequestHeaderModifier({ set: { 'x-a': '2' } })], exchange)
    expect(exchange.facts.request.headers).toEqual({ 'x-a': '1' })
  })

  it('are changed by several levels one after the other', () => {
    const exchange = fixtureExchange()
    throughPolicies(
      [
        compileRequestHeaderModifier({ set: { 'x-a': '1' } }),
        compileRequestHeaderModifier({ add: { 'x-a': '2' } }),
      ],
      exchange,
    )
    const headers: Headers = {}
    for (const edit of exchange.forwarding?.headerEdits ?? []) edit(headers)
    expect(headers).toEqual({ 'x-a': '1,2' })
  })

  it('named like object prototype members are ordinary', () => {
    expect(forwarded({ add: { constructor: 'x' } }, {})).toEqual({ constructor: 'x' })
  })
})

describe('response headers', () => {
  it('are changed on replies of the backend', () => {
    const policy = compileResponseHeaderModifier({
      add: { 'set-cookie': 'b=2', vary: 'accept' },
      set: { 'strict-transport-security': 'max-age=1' },
      remove: ['Server'],
    })
    const backend = {
      name: 'backend',
      onRequest: () => ({
        status: 200,
        headers: { server: 'x', 'set-cookie': 'a=1', vary: 'origin' },
        body: undefined,
      }),
    }
    expect(throughPolicies([policy, backend], fixtureExchange()).headers).toEqual({
      'set-cookie': ['a=1', 'b=2'],
      vary: 'origin,accept',
      'strict-transport-security': 'max-age=1',
    })
  })
})

describe('checking', () => {
  it('refuses names that no header has, and those that are not for a policy', () => {
    expect(mistakes({ set: { 'x y': '1' }, add: { __proto: '1' }, remove: [':path'] })).toEqual([
      'set.x y: not a header name: "x y"',
      'remove.0: not a header name: ":path"',
    ])
    for (const header of ['Connection', 'Transfer-Encoding', 'te', 'Upgrade', 'content-length']) {
      expect(mistakes({ set: { [header]: 'x' } })).toHaveLength(1)
      expect(mistakes({ add: { [header]: 'x' } }, 'response')).toHaveLength(1)
      expect(mistakes({ remove: [header] })).toHaveLength(1)
    }
    expect(mistakes({ set: { Host: 'x' } })).toEqual([
      'set.Host: host is not a modifiable header: use urlRewrite.authority',
    ])
    expect(mistakes({ set: { host: 'x' } }, 'response')).toEqual([
      'set.host: host is made anew for each message',
    ])
  })

  it('refuses a name that would change the object instead of a header', () => {
    const config: HeaderModifierConfig = { set: JSON.parse('{"__proto__": "x"}') }
    expect(mistakes(config)).toEqual(['set.__proto__: not a header name: "__proto__"'])
  })

  it('accepts no value that could begin another header, or that cannot be sent', () => {
    for (const value of ['a\r\nb: c', 'a\nb', 'a\rb', 'a\0b', '\x7f', '中']) {
      expect(mistakes({ set: { 'x-a': value } })).toHaveLength(1)
      expect(mistakes({ add: { 'x-a': value } })).toHaveLength(1)
    }
    expect(mistakes({ set: { 'x-a': '', 'x-b': 'tab\tand café' } })).toEqual([])
  })

  it('passes only values that the platform itself sends', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        if (mistakes({ set: { 'x-a': value } }).length > 0) return
        expect(() => new Headers({ 'x-a': value })).not.toThrow()
      }),
    )
  })
})
