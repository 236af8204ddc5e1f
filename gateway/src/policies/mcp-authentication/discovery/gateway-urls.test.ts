import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../../test/fixtures/pipeline.ts'
import { createGatewayUrls } from './gateway-urls.ts'

function requestTo(host: string, path: string, headers: Record<string, string> = {}) {
  return fixtureExchange({ host, path, headers }).facts.request
}

describe('urls of a configured resource', () => {
  const urls = createGatewayUrls('https://gw.example.com/team/mcp', true)
  const request = requestTo('internal:3000', '/mcp', { 'x-forwarded-host': 'evil.test' })

  it('are those of the resource for every request', () => {
    expect(urls.origin(request)).toBe('https://gw.example.com')
    expect(urls.resource(request, '/other')).toBe('https://gw.example.com/team/mcp')
    expect(urls.authorizationServer(request, '/other')).toBe('https://gw.example.com/team/mcp')
    expect(urls.resourceMetadata(request)).toBe(
      'https://gw.example.com/.well-known/oauth-protected-resource/team/mcp',
    )
  })

  it('without a path have an issuer with a path', () => {
    const bare = createGatewayUrls('https://gw.example.com', false)
    expect(bare.authorizationServer(request, '')).toBe('https://gw.example.com/mcp')
    expect(bare.resourceMetadata(request)).toBe('https://gw.example.com/.well-known/oauth-protected-resource')
  })
})

describe('urls of requests', () => {
  const urls = createGatewayUrls(undefined, false)
  const trusting = createGatewayUrls(undefined, true)
  const forwarded = { 'x-forwarded-proto': 'https, http', 'x-forwarded-host': 'gw.example.com, inner' }

  it('come from the host and the path', () => {
    const request = requestTo('gw.test:3000', '/mcp')
    expect(urls.resource(request, '/mcp')).toBe('http://gw.test:3000/mcp')
    expect(urls.authorizationServer(request, '')).toBe('http://gw.test:3000/mcp')
    expect(urls.resourceMetadata(request)).toBe(
      'http://gw.test:3000/.well-known/oauth-protected-resource/mcp',
    )
    expect(urls.resourceMetadata(requestTo('gw.test', '/'))).toBe(
      'http://gw.test/.well-known/oauth-protected-resource',
    )
  })

  it('use forwarding headers only if trusted', () => {
    const request = requestTo('inner:3000', '/mcp', forwarded)
    expect(urls.origin(request)).toBe('http://inner:3000')
    expect(trusting.origin(request)).toBe('https://gw.example.com')
  })

  it('are safe in a quoted string for every path', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (host, path) => {
        const request = requestTo(host, `/${path}`, { 'x-forwarded-host': path, 'x-forwarded-proto': host })
        for (const each of [urls, trusting]) {
          expect(each.resourceMetadata(request)).toMatch(/^https?:\/\/[\x21\x23-\x5b\x5d-\x7e]+$/)
        }
      }),
    )
  })
})
