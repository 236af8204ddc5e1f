import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import type { RequestFacts } from '../exchange.ts'
import { explainRoute } from './explain-route.ts'
import type { RouteMatch } from './route-match.ts'
import { createRouteTableBuilder, type RouteEntry } from './route-table.ts'

const requestOf = (facts: Partial<RequestFacts>) =>
  fixtureExchange({ method: 'GET', host: 'a.test', path: '/v1/chat', ...facts }).facts.request

function match(path: string, more: Partial<RouteMatch> = {}): RouteMatch {
  return { path: { kind: 'prefix', value: path }, method: undefined, headers: [], query: [], ...more }
}

const header = (name: string, value: string) => [{ name, kind: 'exact' as const, value }]

function explained(entries: readonly RouteEntry<string>[], facts: Partial<RequestFacts> = {}): string[] {
  const builder = createRouteTableBuilder<string>()
  for (const entry of entries) builder.add(entry)
  return explainRoute(builder.table, requestOf(facts)).map(({ target, hostname, path, result }) => {
    const reason =
      result.kind === 'failed'
        ? `${result.condition} ${result.name ?? ''}`
        : result.kind === 'outranked'
          ? `by ${result.by}`
          : ''
    return `${target} ${hostname} ${path.kind} ${path.value}: ${result.kind} ${reason}`.trimEnd()
  })
}

const route = (target: string, hostnames: readonly string[], ...matches: RouteMatch[]) => ({
  target,
  hostnames,
  matches,
})

describe('explainRoute', () => {
  it('names the respect in which the selected route is more specific', () => {
    const entries = [
      route('all', []),
      route('chat', ['a.test'], match('/v1/chat')),
      route('later', ['a.test'], match('/v1/chat')),
      route('any host', [], match('/v1/chat', { method: 'GET' })),
      route('v1', ['a.test'], match('/v1')),
      route('header', ['a.test'], match('/v1/chat', { headers: header('x-team', 'a') })),
    ]
    expect(explained(entries, { headers: { 'x-team': 'a' } })).toEqual([
      'header a.test prefix /v1/chat: selected',
      'chat a.test prefix /v1/chat: outranked by conditions',
      'later a.test prefix /v1/chat: outranked by conditions',
      'v1 a.test prefix /v1: outranked by path',
      'any host * prefix /v1/chat: outranked by hostname',
      'all * prefix /: outranked by hostname',
    ])
  })

  it('names the first condition that failed', () => {
    const entries = [
      route('method', [], match('/v1/chat', { method: 'POST', headers: header('x-a', '1') })),
      route('header', [], match('/v1/chat', { headers: header('x-a', '1') })),
      route('query', [], match('/v1/chat', { query: header('model', 'secret') })),
      route('path', [], match('/v1/images')),
      route('host', ['b.test'], match('/v1/chat')),
      route('fallback', []),
    ]
    expect(explained(entries, { headers: { 'x-a': '2' }, query: '?model=other' })).toEqual([
      'method * prefix /v1/chat: failed method POST',
      'header * prefix /v1/chat: failed header x-a',
      'query * prefix /v1/chat: failed query model',
      'fallback * prefix /: selected',
      'path * prefix /v1/images: failed path',
      'host b.test prefix /v1/chat: failed hostname',
    ])
  })

  it('orders equal matches by configuration', () => {
    expect(explained([route('first', []), route('second', [])])).toEqual([
      'first * prefix /: selected',
      'second * prefix /: outranked by order',
    ])
  })

  it('lists routes with a similar path first without a match', () => {
    const entries = [
      route('images', [], match('/images')),
      route('models', [], match('/v1/models')),
      route('exact', [], match('', { path: { kind: 'exact', value: '/v1/chat/' } })),
    ]
    expect(explained(entries)).toEqual([
      'exact * exact /v1/chat/: failed path',
      'models * prefix /v1/models: failed path',
      'images * prefix /images: failed path',
    ])
  })

  it('lists each route with another path once', () => {
    const entries = [
      route('many', [], match('/v1/models'), match('/v1/files'), match('/v2')),
      route('all', []),
    ]
    expect(explained(entries)).toEqual(['all * prefix /: selected', 'many * prefix /v1/models: failed path'])
  })

  it('lists at most ten, the selected one included', () => {
    const losers = Array.from({ length: 50 }, (_, index) =>
      route(`r${index}`, [], match('/v1/chat', { headers: header(`x-${index}`, '1') })),
    )
    const listed = explained([...losers, route('fallback', [])])
    expect(listed).toHaveLength(10)
    expect(listed.at(-1)).toBe('fallback * prefix /: selected')
  })

  it('selects the route that the router selects', () => {
    const path = fc.constantFrom('/', '/a', '/a/b', '/a/b/c', '/ab')
    const kind = fc.constantFrom('exact' as const, 'prefix' as const, 'regex' as const)
    const value = fc.record({ kind, value: path })
    const matches = fc.record({
      path: value,
      method: fc.constantFrom(undefined, 'GET', 'POST'),
      headers: fc.constantFrom([], header('x-a', '1')),
      query: fc.constantFrom([], header('q', '1')),
    })
    const hostname = fc.constantFrom('a.test', '*.test', 'x.a.test', '*', 'b.test')
    const entries = fc.array(
      fc.record({
        hostnames: fc.array(hostname, { maxLength: 2 }),
        matches: fc.array(matches, { maxLength: 3 }),
      }),
      { maxLength: 6 },
    )
    const request = fc.record({
      host: fc.constantFrom('a.test', 'x.a.test', 'B.test:80', 'c'),
      path,
      trailingSlash: fc.boolean(),
      method: fc.constantFrom('GET', 'POST'),
      headers: fc.constantFrom({}, { 'x-a': '1' }),
      query: fc.constantFrom('', '?q=1'),
    })
    fc.assert(
      fc.property(entries, request, (routes, facts) => {
        const builder = createRouteTableBuilder<number>()
        for (const [target, entry] of routes.entries()) builder.add({ ...entry, target })
        const sent = requestOf(facts)
        const listed = explainRoute(builder.table, sent)
        const selected = listed.filter(({ result }) => result.kind === 'selected')
        expect(selected.map(({ target }) => target)).toEqual(
          [builder.build()(sent)?.target].filter((target) => target !== undefined),
        )
        expect(listed.length).toBeLessThanOrEqual(10)
      }),
      { numRuns: 2_000 },
    )
  })
})
