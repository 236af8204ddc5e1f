import { describe, expect, it } from 'vitest'
import { backendTexts, gatewaysOf, matchText } from './traffic-values.ts'

describe('the words of a route', () => {
  it.each([
    [{}, '/*'],
    [{ path: { exact: '/health' } }, '/health'],
    [{ path: { pathPrefix: '/v1/' }, method: 'GET' }, 'GET /v1/*'],
    [{ path: { pathPrefix: '/' } }, '/*'],
    [
      { path: { regex: '/a.*' }, headers: [{ name: 'x-team' }], query: [{ name: 'page' }] },
      '~ /a.*, header x-team, query page',
    ],
  ])('of the match %j are %s', (match, text) => {
    expect(matchText(match)).toBe(text)
  })

  it('name its gateways', () => {
    expect(gatewaysOf({})).toEqual(['default'])
    expect(gatewaysOf({ gateways: 'edge' })).toEqual(['edge'])
    expect(gatewaysOf({ gateways: ['a', 'b/c'] })).toEqual(['a', 'b/c'])
  })

  it('name its backends, or the policy that responds', () => {
    expect(
      backendTexts({ backends: [{ host: 'a:80', weight: 9 }, { backend: '/b', weight: 1 }, { mcp: {} }] }),
    ).toEqual(['a:80 · weight 9', '/b', 'MCP servers'])
    expect(backendTexts({ policies: { directResponse: {} } })).toEqual(['direct response'])
    expect(backendTexts({})).toEqual([])
  })
})
