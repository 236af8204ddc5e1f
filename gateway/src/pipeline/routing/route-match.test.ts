import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import {
  checkMatch,
  compileConditions,
  matchesConditions,
  normalisePath,
  type RouteMatch,
  wholeMatch,
} from './route-match.ts'

const all: RouteMatch = { path: { kind: 'prefix', value: '/' }, method: undefined, headers: [], query: [] }

function mistakes(match: Partial<RouteMatch>): string[] {
  const found: string[] = []
  checkMatch({ ...all, ...match }, (path, message) => found.push(`${path.join('.')}: ${message}`))
  return found
}

function accepts(match: Partial<RouteMatch>, request: Parameters<typeof fixtureExchange>[0]): boolean {
  const conditions = compileConditions({ ...all, ...match })
  if (!conditions) return true
  return matchesConditions(conditions, fixtureExchange(request).facts.request, { parameters: undefined })
}

describe('checkMatch', () => {
  it('accepts valid matches', () => {
    expect(
      mistakes({
        path: { kind: 'exact', value: '/a%2Fb/é' },
        method: 'GET',
        headers: [{ name: 'X-Team', kind: 'regex', value: 'a|b' }],
        query: [{ name: 'a b', kind: 'exact', value: '' }],
      }),
    ).toEqual([])
  })

  it.each<[Partial<RouteMatch>, string]>([
    [{ path: { kind: 'exact', value: 'a' } }, 'path.exact: path must start with a slash'],
    [{ path: { kind: 'prefix', value: '/a?b' } }, 'path.pathPrefix: path must not have a query'],
    [{ path: { kind: 'prefix', value: '/a b' } }, 'path.pathPrefix: no request has the path'],
    [{ path: { kind: 'exact', value: '/a%2' } }, 'path.exact: no request has the path'],
    [{ path: { kind: 'exact', value: 'http://a/b' } }, 'path.exact: path must start with a slash'],
    [{ path: { kind: 'regex', value: '/(' } }, 'path.regex: invalid regular expression'],
    [{ path: { kind: 'regex', value: 'a)|(b' } }, 'path.regex: invalid regular expression'],
    [{ path: { kind: 'regex', value: '(?=a)' } }, 'path.regex: invalid regular expression'],
    [{ method: 'G T' }, 'method: method must be a token'],
    [{ method: '' }, 'method: method must be a token'],
    [{ method: 'get' }, 'method: methods are case-sensitive: write GET'],
    [{ headers: [{ name: 'a:b', kind: 'exact', value: '' }] }, 'headers.0.name: "a:b" is not a header name'],
    [{ headers: [{ name: 'a', kind: 'regex', value: '[' }] }, 'headers.0.value.regex: invalid'],
    [{ query: [{ name: 'a', kind: 'regex', value: '*' }] }, 'query.0.value.regex: invalid'],
  ])('reports %j', (match, message) => {
    const found = mistakes(match)
    expect(found).toHaveLength(1)
    expect(found[0]).toContain(message)
  })
})

describe('normalisePath', () => {
  it.each([
    ['/a//b/', '/a/b'],
    ['/a/../b', '/b'],
    ['/%61%2f', '/a%2F'],
    ['/é', '/%C3%A9'],
    ['/\ud800', '/%EF%BF%BD'],
    ['/a?b', undefined],
  ])('normalises %j like a request path', (path, normalised) => {
    expect(normalisePath(path)).toBe(normalised)
  })
})

describe('conditions', () => {
  const team = (kind: 'exact' | 'regex', value: string) => ({ headers: [{ name: 'X-Team', kind, value }] })

  it('compares header names case-insensitively and values exactly', () => {
    expect(accepts(team('exact', 'a'), { headers: { 'x-team': 'a' } })).toBe(true)
    expect(accepts(team('exact', 'a'), { headers: { 'x-team': 'A' } })).toBe(false)
    expect(accepts(team('exact', 'a'), {})).toBe(false)
  })

  it('joins repeated headers', () => {
    expect(accepts(team('exact', 'a, b'), { headers: { 'x-team': ['a', 'b'] } })).toBe(true)
    expect(accepts(team('exact', 'a'), { headers: { 'x-team': ['a', 'b'] } })).toBe(false)
  })

  it('matches a pattern against the whole value', () => {
    expect(accepts(team('regex', 'a|ab'), { headers: { 'x-team': 'ab' } })).toBe(true)
    expect(accepts(team('regex', 'a'), { headers: { 'x-team': 'ab' } })).toBe(false)
    expect(accepts(team('regex', 'a'), { headers: { 'x-team': 'a\n' } })).toBe(false)
  })

  it.each(['constructor', '__proto__', 'tostring'])('ignores the inherited name %s', (name) => {
    expect(accepts({ headers: [{ name, kind: 'regex', value: '.*' }] }, {})).toBe(false)
  })

  it('decodes query parameters and uses the first of a name', () => {
    const query = [{ name: 'a b', kind: 'exact' as const, value: 'x y' }]
    expect(accepts({ query }, { query: '?a%20b=x+y&a%20b=z' })).toBe(true)
    expect(accepts({ query }, { query: '?a%20b=z&a%20b=x+y' })).toBe(false)
    expect(accepts({ query }, { query: '' })).toBe(false)
  })

  it('compares methods exactly', () => {
    expect(accepts({ method: 'GET' }, { method: 'GET' })).toBe(true)
    expect(accepts({ method: 'GET' }, { method: 'HEAD' })).toBe(false)
  })

  it('does not evaluate a pattern on a text that is too long', () => {
    const matches = wholeMatch('.*')
    expect(matches('a'.repeat(8192))).toBe(true)
    expect(matches('a'.repeat(8193))).toBe(false)
  })
})
