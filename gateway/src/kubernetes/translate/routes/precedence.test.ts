import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../../test/fixtures/pipeline.ts'
import { routeMatchOf } from '../../../config/traffic/compile-route-match.ts'
import { attachedHostnames } from '../../../pipeline/routing/hostnames.ts'
import { compileRouteTable } from '../../../pipeline/routing/route-table.ts'
import type { GRPCRoute, GrpcRouteRule, HTTPRoute, HttpRouteMatch } from '../../objects/gateway-api.ts'
import { keyOf } from '../../objects/meta.ts'
import { emptyObjectSet } from '../../objects/object-set.ts'
import type { GatewayPlan } from '../plan.ts'
import type { PolicyIndex } from '../policies/policies.ts'
import { createRouteTranslator } from './routes.ts'
import type { RoutesInput } from './routes-translation.ts'

type Route = HTTPRoute | GRPCRoute
type GrpcMatch = NonNullable<GrpcRouteRule['matches']>[number]
type Request = { host: string; path: string; method: string; headers: Record<string, string>; query: string }

const names = ['a', 'b', 'c']
const hosts = ['x.example.com', 'y.x.example.com', 'example.com', 'x.example.org']
const hostnames = fc.subarray([...hosts, '*.example.com', '*.x.example.com', '*.com'], { maxLength: 3 })
const ages = fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', undefined)
const headers = fc
  .subarray(['h1', 'h2'])
  .chain((chosen) =>
    fc.tuple(...chosen.map((name) => fc.constantFrom('1', '2').map((value) => ({ name, value })))),
  )

const httpMatch: fc.Arbitrary<HttpRouteMatch> = fc.record({
  path: fc.option(
    fc.record({
      type: fc.constantFrom('Exact', 'PathPrefix'),
      value: fc.constantFrom('/', '/a', '/a/b', '/ab', '/a/'),
    }),
    { nil: undefined },
  ),
  method: fc.option(fc.constantFrom('GET', 'POST'), { nil: undefined }),
  headers,
  queryParams: fc.subarray([
    { name: 'q1', value: '1' },
    { name: 'q2', value: '2' },
  ]),
})

const grpcMatch: fc.Arbitrary<GrpcMatch> = fc.record({
  method: fc.option(
    fc
      .record({
        service: fc.constantFrom(undefined, 's', 'shop.Cart', 'shop.Cart.v2'),
        method: fc.constantFrom(undefined, 'Add', 'AddManyItemsAtOnce'),
      })
      .filter(({ service, method }) => (service ?? method) !== undefined),
    { nil: undefined },
  ),
  headers,
})

const request: fc.Arbitrary<Request> = fc.record({
  host: fc.constantFrom(...hosts, 'other.test'),
  path: fc.constantFrom(
    '/',
    '/a',
    '/a/',
    '/a/b',
    '/a/b/c',
    '/ab',
    '/s/Add',
    '/shop.Cart/Add',
    '/shop.Cart.v2/AddManyItemsAtOnce',
    '/other/AddManyItemsAtOnce',
  ),
  method: fc.constantFrom('GET', 'POST', 'PUT'),
  headers: fc.record({ h1: fc.constantFrom('1', '2'), h2: fc.constantFrom('1', '2') }, { requiredKeys: [] }),
  query: fc.constantFrom('', '?q1=1', '?q2=2', '?q1=1&q2=2'),
})

describe('the order of matches', () => {
  it.each(['HTTPRoute', 'GRPCRoute'] as const)('is the precedence of the Gateway API for %s', (kind) => {
    const match: fc.Arbitrary<HttpRouteMatch | GrpcMatch> = kind === 'HTTPRoute' ? httpMatch : grpcMatch
    const rule = fc.record({
      matches: fc.array(match, { maxLength: 3 }),
      backendRefs: fc.constant([{ name: 's', port: 80 }]),
    })
    const routes = fc.uniqueArray(
      fc.record({
        name: fc.constantFrom(...names),
        age: ages,
        hostnames,
        rules: fc.array(rule, { minLength: 1, maxLength: 3 }),
      }),
      { selector: ({ name }) => name, maxLength: 3 },
    )
    const listenerHostname = fc.constantFrom(undefined, '*.example.com', 'x.example.com')
    fc.assert(
      fc.property(
        routes,
        listenerHostname,
        fc.array(request, { minLength: 20, maxLength: 20 }),
        (drawn, hostname, requests) => {
          const objects = drawn.map(({ name, age, hostnames: own, rules }) => {
            const metadata = { name, namespace: 'n', creationTimestamp: age }
            return {
              apiVersion: 'v1',
              kind,
              metadata,
              spec: { parentRefs: [{ name: 'g' }], hostnames: own, rules },
            } as Route
          })
          const find = tableOf(objects, hostname)
          for (const one of requests) expect(find(one)).toBe(expectedRule(objects, hostname, one))
        },
      ),
      { numRuns: 300 },
    )
  })
})

/** Finds routes in the translated Config, as the listener with that hostname does. */
function tableOf(
  routes: readonly Route[],
  hostname: string | undefined,
): (request: Request) => string | undefined {
  const { gateways } = createRouteTranslator()(inputOf(routes, hostname))
  const configs = gateways.get('n/g')?.routes ?? []
  const find = compileRouteTable(
    configs.map(({ name = '', hostnames: own = [], matches = [] }) => ({
      hostnames: attachedHostnames(hostname, own) ?? [],
      matches: matches.map(routeMatchOf),
      target: name,
    })),
  )
  return ({ host, path, method, headers: fields, query }) =>
    find(fixtureExchange({ host, path, method, headers: fields, query }).facts.request)?.target
}

function inputOf(routes: readonly Route[], hostname: string | undefined): RoutesInput {
  const listener = {
    gateway: 'n/g',
    name: 'l',
    port: 80,
    hostname,
    protocol: 'HTTP',
    isPassthrough: false,
    kinds: ['HTTPRoute', 'GRPCRoute'],
    allowsNamespace: () => true,
    reference: '80/l',
  } as const
  const ofKind = (kind: Route['kind']) =>
    new Map(routes.filter((route) => route.kind === kind).map((route) => [keyOf(route), route]))
  const objects = { ...emptyObjectSet(), HTTPRoute: ofKind('HTTPRoute'), GRPCRoute: ofKind('GRPCRoute') }
  const policies: PolicyIndex = { policiesOf: () => none, frontendOf: () => undefined, statuses: () => [] }
  const references = { backend: () => ({ kind: 'resolved', name: 'Service/n/s:80', traffic: 'http' }) }
  // Fakes, reduced to the fields that the translation of routes reads.
  return {
    objects,
    references,
    plans: [{ key: 'n/g', listeners: [listener] } as unknown as GatewayPlan],
    policies,
  } as unknown as RoutesInput
}

const none = { policies: undefined, backends: [] }

/** Name of the best rule, by a comparison of all matches (HTTPRouteRule.matches, GRPCRouteRule.matches). */
function expectedRule(
  routes: readonly Route[],
  listener: string | undefined,
  request: Request,
): string | undefined {
  const found = routes.flatMap((route) =>
    (attachedHostnames(listener, route.spec.hostnames ?? []) ?? [])
      .filter((hostname) => covers(hostname, request.host))
      .flatMap((hostname) =>
        (route.spec.rules ?? []).flatMap(({ matches = [] }, index) => {
          const all: readonly (HttpRouteMatch | GrpcMatch)[] = matches.length === 0 ? [{}] : matches
          return all
            .map((match) => scoreOf(route.kind, match, request))
            .filter((score) => score !== undefined)
            .map((score) => ({
              name: `${route.kind}/${keyOf(route)}/${index}`,
              score: [
                hostname.includes('*') ? 0 : hostname.length,
                hostname === '*' ? 0 : hostname.length,
                ...score,
              ],
              tie: [route.metadata.creationTimestamp ?? '~', keyOf(route), String(index)],
            }))
        }),
      ),
  )
  return found.toSorted((a, b) => compareLists(b.score, a.score) || compareLists(a.tie, b.tie))[0]?.name
}

function covers(hostname: string, host: string): boolean {
  if (hostname === '*') return true
  return hostname.startsWith('*.') ? host.endsWith(hostname.slice(1)) : host === hostname
}

/** Numbers of which the first larger one wins; undefined without a match. */
function scoreOf(
  kind: Route['kind'],
  match: HttpRouteMatch | GrpcMatch,
  request: Request,
): number[] | undefined {
  const fields = match.headers ?? []
  if (!fields.every(({ name, value }) => request.headers[name] === value)) return undefined
  if (kind === 'GRPCRoute') {
    const [, service, method] = request.path.split('/')
    const wanted = (match as GrpcMatch).method
    if (wanted?.service !== undefined && wanted.service !== service) return undefined
    if (wanted?.method !== undefined && wanted.method !== method) return undefined
    return [wanted?.service?.length ?? 0, wanted?.method?.length ?? 0, fields.length]
  }
  const { path, method, queryParams = [] } = match as HttpRouteMatch
  const parameters = new URLSearchParams(request.query)
  if (!queryParams.every(({ name, value }) => parameters.get(name) === value)) return undefined
  if (method !== undefined && method !== request.method) return undefined
  const { type = 'PathPrefix', value = '/' } = path ?? {}
  const counts = [Number(method !== undefined), fields.length, queryParams.length]
  if (type === 'Exact') return request.path === value ? [1, 0, ...counts] : undefined
  const prefix = value === '/' ? '' : value.replace(/\/$/, '')
  const isPrefix = request.path === prefix || request.path.startsWith(`${prefix}/`)
  return isPrefix ? [0, prefix.length, ...counts] : undefined
}

function compareLists<T extends number | string>(some: readonly T[], others: readonly T[]): number {
  for (const [index, one] of some.entries()) {
    const other = others[index]
    if (other !== undefined && one !== other) return one < other ? -1 : 1
  }
  return 0
}
