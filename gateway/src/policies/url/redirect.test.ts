import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureExchange, throughPolicies } from '../../../test/fixtures/pipeline.ts'
import { parseRequestTarget } from '../../lib/request-target.ts'
import type { RequestFacts } from '../../pipeline/exchange.ts'
import { checkRequestRedirect, compileRequestRedirect, type RequestRedirectConfig } from './redirect.ts'

function send(config: RequestRedirectConfig, request: Partial<RequestFacts> = {}, prefix = '/') {
  const exchange = fixtureExchange({ host: 'a.test:8080', path: '/foo/bar', query: '?q=1', ...request })
  exchange.route = { target: { name: 'route' }, prefix }
  return throughPolicies([compileRequestRedirect(config)], exchange)
}

function locationOf(...sent: Parameters<typeof send>): unknown {
  return send(...sent).headers['location']
}

function mistakes(config: RequestRedirectConfig): string[] {
  const found: string[] = []
  checkRequestRedirect(config, (path) => found.push(path.join('.')))
  return found
}

describe('a redirect', () => {
  it('is a 302 or the configured status', () => {
    expect(send({ scheme: 'https' }).status).toBe(302)
    expect(send({ scheme: 'https', status: 308 }).status).toBe(308)
  })

  it('with a status alone is to the same address', () => {
    expect(send({ status: 303 })).toMatchObject({
      status: 303,
      headers: { location: 'http://a.test:8080/foo/bar?q=1' },
    })
  })

  it('to another scheme is to its usual port', () => {
    expect(locationOf({ scheme: 'https' })).toBe('https://a.test/foo/bar?q=1')
    expect(locationOf({ scheme: 'http' }, { scheme: 'https' })).toBe('http://a.test/foo/bar?q=1')
  })

  it('to another host stays at the port', () => {
    expect(locationOf({ authority: { host: 'b.test' } })).toBe('http://b.test:8080/foo/bar?q=1')
    expect(locationOf({ authority: { host: 'b.test' } }, { host: 'a.test' })).toBe(
      'http://b.test/foo/bar?q=1',
    )
    expect(locationOf({ authority: { host: 'b.test' }, scheme: 'https' })).toBe('https://b.test/foo/bar?q=1')
  })

  it('to another port stays at the host', () => {
    expect(locationOf({ authority: { port: 9000 } })).toBe('http://a.test:9000/foo/bar?q=1')
    expect(locationOf({ authority: { port: 9000 } }, { host: '[::1]:80' })).toBe(
      'http://[::1]:9000/foo/bar?q=1',
    )
  })

  it('never names the port that the scheme implies', () => {
    expect(locationOf({ authority: { port: 80 } })).toBe('http://a.test/foo/bar?q=1')
    expect(locationOf({ authority: { port: 443 }, scheme: 'https' })).toBe('https://a.test/foo/bar?q=1')
    expect(locationOf({ authority: { port: 443 } })).toBe('http://a.test:443/foo/bar?q=1')
    expect(locationOf({ authority: { full: 'b.test:80' } })).toBe('http://b.test/foo/bar?q=1')
    expect(locationOf({ authority: { full: 'b.test:81' } })).toBe('http://b.test:81/foo/bar?q=1')
  })

  it('to another path keeps the query', () => {
    expect(locationOf({ path: { full: '/x' } })).toBe('http://a.test:8080/x?q=1')
    expect(locationOf({ path: { prefix: '/x' } }, {}, '/foo')).toBe('http://a.test:8080/x/bar?q=1')
  })

  it('keeps a slash at the end', () => {
    const exchange = fixtureExchange({ path: '/foo', trailingSlash: true })
    const { headers } = throughPolicies([compileRequestRedirect({ scheme: 'https' })], exchange)
    expect(headers['location']).toBe('https://gateway.test/foo/')
  })

  it('is refused when the client sends an invalid host', () => {
    for (const host of ['', 'a b', 'evil.test/x', 'a@b', 'a.test:x', `${'a'.repeat(400)}`]) {
      expect(send({ scheme: 'https' }, { host }).status).toBe(400)
      expect(send({ scheme: 'https', authority: { host: 'b.test' } }, { host }).status).toBe(302)
    }
  })

  it('escapes characters that are invalid in an address', () => {
    expect(locationOf({ scheme: 'https' }, { path: '/\xc3\xa9', query: '?\u{1f600}' })).toBe(
      'https://a.test/%C3%A9?%F0%9F%98%80',
    )
  })

  it('has no other host and no line break for any request', () => {
    const target = fc.oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^[/\\.:@?#%a-z0-9]*$/))
    fc.assert(
      fc.property(
        target,
        fc.constantFrom({ scheme: 'https' } as const, { path: { prefix: '' } }),
        (text, config) => {
          const parsed = parseRequestTarget(`/${text}`)
          if (parsed === undefined) return
          const location = String(locationOf(config, { ...parsed, host: 'a.test' }))
          expect(location).toMatch(/^[\x21-\x7e]+$/)
          expect(new URL(location).host).toBe('a.test')
        },
      ),
    )
  })
})

describe('checking', () => {
  it('reports where the mistake is', () => {
    expect(mistakes({ authority: { full: 'a b' }, path: { full: 'x' }, status: 304 })).toEqual([
      'authority.full',
      'path.full',
      'status',
    ])
    expect(mistakes({ authority: { host: 'a.test:80' } })).toEqual(['authority.host'])
    expect(mistakes({})).toEqual([''])
    expect(mistakes({ status: 303 })).toEqual([])
    expect(mistakes({ scheme: 'https', authority: { host: '[::1]' }, status: 301 })).toEqual([])
  })
})
