import { describe, expect, it } from 'vitest'
import { runToCompletion } from '../../lib/scheduling/yielding.ts'
import { checkTraffic } from './check-traffic.ts'
import { createCheckedRoutes } from './checked-routes.ts'
import { trafficSections, type WrittenSections } from './sections.ts'

function mistakes(sections: WrittenSections): string[] {
  const found: string[] = []
  const report = (path: readonly unknown[], message: string) => found.push(`${path.join('.')}: ${message}`)
  runToCompletion(checkTraffic(trafficSections(sections), report, createCheckedRoutes()))
  return found
}

describe('checkTraffic', () => {
  it('reports duplicate binds, of which one would replace the other and its policies', () => {
    const listeners = [{ name: 'a' }]
    expect(
      mistakes({
        binds: [
          { port: 80, listeners },
          { port: 81, listeners },
        ],
      }),
    ).toEqual([])
    expect(
      mistakes({
        binds: [
          { port: 80, listeners },
          { port: 80, listeners },
        ],
      }),
    ).toEqual(['binds.1.port: another entry of binds has this port: put its listeners there'])
    expect(mistakes({ gateways: { 'bind-80': { port: 81 } }, binds: [{ port: 80, listeners }] })).toEqual([
      'binds.0: is the gateway bind-80, and another gateway is named so: rename that one',
    ])
  })

  it('reports route groups that do not exist, repeat themselves or multiply', () => {
    const gateways = { default: { port: 80 } }
    const to = (...groups: string[]) => ({ backends: groups.map((routeGroup) => ({ routeGroup })) })
    const group = (name: string, ...routes: object[]) => ({ name, routes })
    const exact = { matches: [{ path: { exact: '/a' } }] }
    expect(
      mistakes({ gateways, routes: [{ ...exact, ...to('a') }], routeGroups: [group('b', to('b'))] }),
    ).toEqual([
      'routes.0.backends.0.routeGroup: no route group is named "a"',
      'routes.0.matches.0.path: must be a pathPrefix, because the route refers to a routeGroup',
      'routeGroups.0: must not refer to itself, not through other groups either: b',
    ])
    const cycle = [group('a', to('b')), group('b', to('c')), group('c', to('a'))]
    expect(mistakes({ gateways, routes: [to('a')], routeGroups: cycle })).toHaveLength(3)
    const wide = (name: string, ...next: string[]) =>
      group(name, ...Array.from({ length: 20 }, () => to(...next)))
    const routeGroups = [wide('a', 'b'), wide('b', 'c'), wide('c', 'd'), wide('d')]
    expect(mistakes({ gateways, routes: [to('a')], routeGroups })).toEqual([
      'routeGroups: must have at most 100000 routes, counted for each route that refers to a group',
    ])
    const mixed = [{ backends: [{ routeGroup: 'a' }, { host: 'a.test:80' }] }]
    expect(mistakes({ gateways, routes: mixed, routeGroups: [group('a')] })).toEqual([
      'routes.0.backends.1: must be a routeGroup, because another backend of the route is one',
    ])
  })

  it('reports a credential that dynamic backends of route groups inherit', () => {
    const policies = { backendAuth: { key: 'secret' } }
    const to = (routeGroup: string) => ({ backends: [{ routeGroup }] })
    const dynamic = { backends: [{ dynamic: {} }] }
    const mistakesOf = (parent: object, child: object, delegating: object = {}) =>
      mistakes({
        gateways: { default: { port: 80 } },
        routes: [{ ...to('a'), ...parent }],
        routeGroups: [
          { name: 'a', routes: [{ ...to('b'), ...delegating }] },
          { name: 'b', routes: [{ ...dynamic, ...child }] },
        ],
      })
    const message = 'must not be set on a dynamic backend of all hosts: set hostnames on the route'
    expect(mistakesOf({ policies }, {})).toEqual([
      `routes.0.policies.backendAuth: for routes of b: ${message}`,
    ])
    expect(mistakesOf({}, {}, { policies })).toEqual([
      `routeGroups.0.routes.0.policies.backendAuth: for routes of b: ${message}`,
    ])
    const hostnames = ['a.test']
    expect(mistakesOf({ policies }, { hostnames })).toEqual([])
    expect(mistakesOf({ policies }, {}, { hostnames })).toEqual([])
    expect(mistakesOf({ policies, hostnames }, {})).toEqual([])
    expect(mistakesOf({}, {})).toEqual([])
  })

  it.each([
    ['a.test', 'A.test.'],
    ['*', undefined],
  ])('finds listeners for the same hosts however they are spelt: %s, %s', (one, other) => {
    const listeners = [
      { name: 'a', hostname: one },
      { name: 'b', hostname: other },
    ]
    const [mistake, ...others] = mistakes({ gateways: { g: { port: 80, listeners } } })
    expect(mistake).toMatch(/^gateways\.g\.listeners\.1: another listener of this gateway is /)
    expect(others).toEqual([])
  })
})
