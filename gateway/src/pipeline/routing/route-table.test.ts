import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import { cpuMsOf, expectBelow } from '../../../test/support/time-bound.ts'
import type { RequestFacts } from '../exchange.ts'
import type { PathMatch, RouteMatch, ValueMatch } from './route-match.ts'
import {
  checkRegexMatches,
  compileRouteTable,
  createRouteTableBuilder,
  type RouteEntry,
} from './route-table.ts'

function match(path: string, rest: Partial<RouteMatch> = {}): RouteMatch {
  const [kind, value] = path.split(' ')
  if (kind !== 'exact' && kind !== 'prefix' && kind !== 'regex') throw new Error('kind')
  return { path: { kind, value: value ?? '' }, method: undefined, headers: [], query: [], ...rest }
}

function entry(target: string, hostnames: string[], ...matches: RouteMatch[]): RouteEntry<string> {
  return { hostnames, matches, target }
}

function request(path: string, rest: Partial<RequestFacts> = {}): RequestFacts {
  return fixtureExchange({ path, method: 'GET', host: 'a.test', ...rest }).facts.request
}

describe('compileRouteTable', () => {
  it('prefers exact paths, then the longest of prefixes and regular expressions', () => {
    const find = compileRouteTable([
      entry('regex', [], match('regex /api/.*')),
      entry('root', ['b.test'], match('prefix /')),
      entry('api', ['b.test'], match('prefix /api')),
      entry('v1', ['b.test'], match('prefix /api/v1')),
      entry('exact', ['b.test'], match('exact /api/v1')),
      entry('hidden', ['b.test'], match('regex /api.*')),
    ])
    const at = (path: string) => find(request(path, { host: 'b.test' }))
    expect(at('/api/v1')).toEqual({ target: 'exact', prefix: '/' })
    expect(at('/api/v1/x')).toEqual({ target: 'v1', prefix: '/api/v1' })
    expect(at('/api/v2')).toEqual({ target: 'hidden', prefix: '/' })
    expect(at('/api')).toEqual({ target: 'hidden', prefix: '/' })
    expect(at('/other')).toEqual({ target: 'root', prefix: '/' })
    expect(find(request('/api/v2'))).toEqual({ target: 'regex', prefix: '/' })
  })

  it('prefers a prefix to a regular expression of equal length, and evaluates a single character last', () => {
    const find = compileRouteTable([
      entry('regex', [], match('regex /a.*')),
      entry('prefix', [], match('prefix /abc')),
      entry('long', [], match('regex /ab[c-d]/x')),
      entry('post', [], match('prefix /', { method: 'POST' })),
      entry('tiny', [], match('regex .')),
      entry('rest', ['a.test'], match('prefix /other')),
    ])
    const at = (path: string, rest: Partial<RequestFacts> = {}) => find(request(path, rest))?.target
    expect([at('/abc/y'), at('/abc/x'), at('/abd')]).toEqual(['prefix', 'long', 'regex'])
    expect([at('/', { method: 'POST' }), at('/')]).toEqual(['post', 'tiny'])
    expect(at(`/a${'b'.repeat(9_000)}`, { host: 'a.test' })).toBeUndefined()
  })

  it('ranks a regular expression by its rank, if it has one', () => {
    const ranked = (path: string, rank: number): RouteMatch => {
      const plain = match(path)
      return { ...plain, path: { ...plain.path, rank } }
    }
    const find = compileRouteTable([
      entry('low', [], ranked('regex /[^/]+/Echo', 2)),
      entry('high', [], ranked('regex /s/X.*', 9)),
      entry('service', [], match('prefix /s')),
      entry('rest', [], match('prefix /')),
    ])
    const at = (path: string) => find(request(path))?.target
    expect([at('/s/Echo'), at('/other/Echo'), at('/s/Xyz'), at('/other/Xyz')]).toEqual([
      ...['service', 'low', 'high', 'rest'],
    ])
  })

  it('matches prefixes on whole segments', () => {
    const find = compileRouteTable([entry('a', [], match('prefix /foo/'))])
    expect(find(request('/foo'))?.target).toBe('a')
    expect(find(request('/foo/bar'))?.target).toBe('a')
    expect(find(request('/foobar'))).toBeUndefined()
    expect(find(request('/'))).toBeUndefined()
  })

  it('takes a trailing slash as part of exact paths and regular expressions, not of prefixes', () => {
    const find = compileRouteTable([
      entry('plain', [], match('exact /two')),
      entry('slash', [], match('exact /three/')),
      entry('root', [], match('exact /')),
      entry('regex', [], match('regex /v[0-9]')),
      entry('directory', [], match('regex /w[0-9]/')),
      entry('prefix', [], match('prefix /p/')),
    ])
    const at = (path: string, trailingSlash: boolean) => find(request(path, { trailingSlash }))?.target
    expect([at('/two', false), at('/two', true)]).toEqual(['plain', undefined])
    expect([at('/three', false), at('/three', true)]).toEqual([undefined, 'slash'])
    expect([at('/v1', false), at('/v1', true)]).toEqual(['regex', undefined])
    expect([at('/w1', false), at('/w1', true)]).toEqual([undefined, 'directory'])
    expect([at('/p', false), at('/p', true), at('/', true)]).toEqual(['prefix', 'prefix', 'root'])
  })

  it('tries a less specific path if the conditions of the more specific one fail', () => {
    const find = compileRouteTable([
      entry('post', [], match('exact /a/b', { method: 'POST' })),
      entry('team', [], match('prefix /a/b', { headers: [{ name: 'x', kind: 'exact', value: '1' }] })),
      entry('rest', [], match('prefix /a')),
    ])
    expect(find(request('/a/b'))?.target).toBe('rest')
    expect(find(request('/a/b', { headers: { x: '1' } }))?.target).toBe('team')
    expect(find(request('/a/b', { method: 'POST' }))?.target).toBe('post')
  })

  it('prefers a method, then more headers, then more parameters, then the first entry', () => {
    const header = (name: string): ValueMatch => ({ name, kind: 'exact', value: '1' })
    const find = compileRouteTable([
      entry('plain', []),
      entry('plain again', []),
      entry('query', [], match('prefix /', { query: [header('q'), header('r')] })),
      entry('header', [], match('prefix /', { headers: [header('h')] })),
      entry('headers', [], match('prefix /', { headers: [header('h'), header('i')] })),
      entry('method', [], match('prefix /', { method: 'PUT' })),
    ])
    const everything = { query: '?q=1&r=1', headers: { h: '1', i: '1' } }
    expect(find(request('/', { ...everything, method: 'PUT' }))?.target).toBe('method')
    expect(find(request('/', everything))?.target).toBe('headers')
    expect(find(request('/', { ...everything, headers: { h: '1' } }))?.target).toBe('header')
    expect(find(request('/', { query: '?q=1&r=1' }))?.target).toBe('query')
    expect(find(request('/'))?.target).toBe('plain')
  })

  it('tries less specific hostnames without a match on the more specific one', () => {
    const find = compileRouteTable([
      entry('all', [], match('prefix /x')),
      entry('wild', ['*.example.com'], match('prefix /w')),
      entry('narrow', ['*.api.example.com'], match('prefix /n')),
      entry('exact', ['one.api.example.com'], match('exact /')),
    ])
    const at = (host: string, path: string) => find(request(path, { host }))?.target
    expect(at('ONE.api.example.com.:80', '/')).toBe('exact')
    expect(at('one.api.example.com', '/n')).toBe('narrow')
    expect(at('one.api.example.com', '/w')).toBe('wild')
    expect(at('one.api.example.com', '/x')).toBe('all')
    expect(at('example.com', '/w')).toBeUndefined()
    expect(at('example.com', '/x')).toBe('all')
  })

  it('evaluates regular expressions from the longest, on the whole path', () => {
    const find = compileRouteTable([
      entry('short', [], match('regex /a.*')),
      entry('long', [], match('regex /a/[0-9]+')),
      entry('either', [], match('regex /b|/bc')),
    ])
    expect(find(request('/a/1'))?.target).toBe('long')
    expect(find(request('/a/1x'))?.target).toBe('short')
    expect(find(request('/bc'))?.target).toBe('either')
    expect(find(request('/x/a/1'))).toBeUndefined()
  })

  it('does not match a path too long for regular expressions on a less specific hostname', () => {
    const find = compileRouteTable([
      entry('guarded', ['a.test'], match('regex /admin/.*')),
      entry('open', [], match('prefix /')),
    ])
    expect(find(request('/admin/x'))?.target).toBe('guarded')
    expect(find(request('/other'))?.target).toBe('open')
    expect(find(request(`/admin/${'x'.repeat(9_000)}`))).toBeUndefined()
    expect(find(request(`/admin/${'x'.repeat(9_000)}`, { host: 'b.test' }))?.target).toBe('open')
  })

  it('normalises configured paths like request paths', () => {
    const find = compileRouteTable([
      entry('escaped', [], match('exact /caf%C3%A9')),
      entry('dots', [], match('prefix /x/../y//')),
      entry('slash', [], match('exact /a%2fb')),
    ])
    expect(find(request('/caf%C3%A9'))?.target).toBe('escaped')
    expect(find(request('/y/z'))).toEqual({ target: 'dots', prefix: '/y' })
    expect(find(request('/a%2Fb'))?.target).toBe('slash')
  })

  it('throws on invalid matches', () => {
    expect(() => compileRouteTable([entry('a', [], match('regex ('))])).toThrow('invalid regular expression')
    expect(() => compileRouteTable([entry('a', [], match('exact a'))])).toThrow('no request has the path')
  })

  it('agrees with evaluating every match', () => {
    fc.assert(
      fc.property(fc.array(entries, { maxLength: 12 }), requests, (list, facts) => {
        const numbered = list.map((one, index) => ({ ...one, target: index }))
        expect(compileRouteTable(numbered)(facts)).toEqual(naive(numbered, facts))
      }),
      { numRuns: 5_000 },
    )
  }, 30_000)

  it('finds one of many routes as fast as one of few', () => {
    const find = compileRouteTable(
      Array.from({ length: 10_000 }, (_, index) =>
        entry(`route ${index}`, index % 2 ? [`host-${index}.test`] : [], match(`prefix /team-${index}/api`)),
      ),
    )
    expect(find(request('/team-9998/api/v1/x'))?.target).toBe('route 9998')
    expect(find(request('/team-9999/api', { host: 'host-9999.test' }))?.target).toBe('route 9999')
    expect(find(request('/team-9999/api', { host: 'host-1.test' }))).toBeUndefined()
  })

  it('handles hostile hosts and paths in bounded time', async () => {
    const builder = createRouteTableBuilder<number>()
    for (let index = 0; index < 1_000; index++) {
      builder.add({
        hostnames: [`*.${'x.'.repeat(index % 50)}test`],
        matches: [match(`prefix ${'/a'.repeat(index + 1)}`)],
        target: index,
      })
    }
    const find = builder.build()
    await expectBelow(2_000, () =>
      cpuMsOf(() => {
        for (let round = 0; round < 100; round++) {
          find(request('/a'.repeat(16_000), { host: 'x.'.repeat(16_000) }))
          find(request('/a'.repeat(16_000), { host: `${'x.'.repeat(120)}test` }))
        }
      }),
    )
  })
})

describe('checkRegexMatches', () => {
  it('reports the entry that exceeds the limit of a hostname, once', () => {
    const reported: number[] = []
    const many = Array.from({ length: 130 }, () => entry('r', ['a.test'], match('regex /a')))
    checkRegexMatches([...many, entry('r', ['b.test'], match('regex /a'))], (index) => reported.push(index))
    expect(reported).toEqual([100])
  })
})

// Reference implementation of the precedence, without optimisation.

const segment = fc.constantFrom('a', 'b', 'ab')
const paths = fc.array(segment, { maxLength: 3 }).map((parts) => `/${parts.join('/')}`)
const hosts = fc
  .array(fc.constantFrom('x', 'y'), { minLength: 1, maxLength: 3 })
  .map((parts) => parts.join('.'))
const hostnames = fc.oneof(
  hosts,
  hosts.map((host) => `*.${host}`),
  fc.constant('*'),
)
const pathMatches: fc.Arbitrary<PathMatch> = fc.oneof(
  fc.record({ kind: fc.constantFrom('exact' as const, 'prefix' as const), value: paths }),
  fc.record({
    kind: fc.constant('regex' as const),
    value: fc.constantFrom('/a.*', '/.*', '/a|/b', '/[ab]+', '/ab?(/b)*'),
  }),
)
const values = (names: string[]): fc.Arbitrary<ValueMatch[]> =>
  fc.uniqueArray(
    fc.record({
      name: fc.constantFrom(...names),
      kind: fc.constantFrom('exact' as const, 'regex' as const),
      value: fc.constantFrom('1', '2'),
    }),
    { selector: ({ name }) => name.toLowerCase(), maxLength: 2 },
  )
const entries = fc.record({
  hostnames: fc.array(hostnames, { maxLength: 2 }),
  matches: fc.array(
    fc.record({
      path: pathMatches,
      method: fc.constantFrom(undefined, undefined, 'GET', 'POST'),
      headers: values(['h', 'I']),
      query: values(['p', 'q']),
    }),
    { maxLength: 3 },
  ),
})
const sent = (names: string[]) =>
  fc.dictionary(fc.constantFrom(...names), fc.constantFrom('1', '2'), { maxKeys: 2, noNullPrototype: true })
const requests = fc
  .record({
    host: fc.tuple(hosts, fc.constantFrom('', '.', ':80')).map((parts) => parts.join('').toUpperCase()),
    path: paths,
    method: fc.constantFrom('GET', 'POST'),
    headers: sent(['h', 'i']),
    query: sent(['p', 'q']),
  })
  .map(({ path, query, ...rest }) =>
    request(path, { ...rest, query: `?${new URLSearchParams(query).toString()}` }),
  )

type Claim = { rank: number[]; target: number; prefix: string }

function naive(list: readonly RouteEntry<number>[], facts: RequestFacts) {
  const claims: Claim[] = []
  for (const { hostnames: names, matches, target } of list) {
    for (const hostname of names.length === 0 ? ['*'] : names) {
      const hostRank = rankOfHost(hostname, facts.host)
      if (hostRank === undefined) continue
      for (const one of matches.length === 0 ? [match('prefix /')] : matches) {
        const pathRank = rankOfPath(one.path, facts.path)
        if (pathRank === undefined || !allHold(one, facts)) continue
        const { headers, query, method, path } = one
        const rank = [...hostRank, ...pathRank, method ? 1 : 0, headers.length, query.length]
        claims.push({ rank, target, prefix: path.kind === 'prefix' ? path.value : '/' })
      }
    }
  }
  const [best] = claims.toSorted((a, b) => firstDifference(b.rank, a.rank))
  return best && { target: best.target, prefix: best.prefix }
}

function firstDifference(a: number[], b: number[]): number {
  for (const [index, value] of a.entries()) if (value !== b[index]) return value - (b[index] ?? 0)
  return 0
}

function rankOfHost(hostname: string, host: string): number[] | undefined {
  const name = host.toLowerCase().replace(/\.?(:\d+)?$/, '')
  if (hostname === '*') return [0, 0]
  if (hostname === name) return [2, 0]
  if (!hostname.startsWith('*.')) return undefined
  const wanted = hostname.split('.').slice(1)
  const have = name.split('.')
  if (have.length <= wanted.length) return undefined
  return have.slice(-wanted.length).join('.') === wanted.join('.') ? [1, wanted.length] : undefined
}

function rankOfPath({ kind, value }: PathMatch, path: string): number[] | undefined {
  if (kind === 'exact') return path === value ? [2, 0, 0] : undefined
  if (kind === 'regex') return path.match(new RegExp(`^(${value})$`)) ? [1, value.length, 0] : undefined
  const wanted = value.split('/').filter(Boolean)
  const have = path.split('/').filter(Boolean)
  return wanted.every((part, index) => have[index] === part) ? [1, value.length, 1] : undefined
}

function allHold({ method, headers, query }: RouteMatch, facts: RequestFacts): boolean {
  if (method && method !== facts.method) return false
  const parameters = new URLSearchParams(facts.query)
  return (
    headers.every(({ name, value }) => facts.headers[name.toLowerCase()] === value) &&
    query.every(({ name, value }) => parameters.get(name) === value)
  )
}
