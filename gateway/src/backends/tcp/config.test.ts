import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import { check } from '../../schema/check.ts'
import type { NamedBackend } from '../../upstream/config.ts'
import { checkTcpRoute, type TcpRouteConfig, tcpRouteSchema } from './config.ts'
import { compileTcpTargets } from './targets.ts'

const named: NamedBackend[] = [
  { name: 'db', host: 'db.internal:5432', policies: { tcp: { connectTimeout: '2s' } } },
  { name: 'tools', mcp: {} },
]

describe('an entry of tcpRoutes', () => {
  it('accepts every key', () => {
    const route = {
      name: 'db',
      gateways: ['a', 'b/tls'],
      hostnames: ['db.example.com', '*.db.example.com'],
      policies: { backendTLS: { hostname: 'db.internal' } },
      backends: [
        { host: 'localhost:5432', weight: 3, policies: { backendTLS: { insecure: true } } },
        { backend: '/db', policies: { tcp: { connectTimeout: '1s' }, health: { eviction: {} } } },
      ],
    }
    expect(check(tcpRouteSchema, route)).toEqual({ kind: 'valid', value: route })
    expect(mistakes(route)).toEqual([])
    expect(check(tcpRouteSchema, { backends: [], gateways: 'default' }).kind).toBe('valid')
  })

  it.each<[string, TcpRouteConfig, string, string]>([
    ['a hostname with a wildcard inside', { hostnames: ['a.*.com'], backends: [] }, 'hostnames.0', '"*"'],
    ['a hostname with a port', { hostnames: ['a.com:1'], backends: [] }, 'hostnames.0', 'port'],
    ['port 0', { backends: [{ host: 'a:0' }] }, 'backends.0.host', 'port 0'],
    [
      'an unknown backend',
      { backends: [{ backend: '/x' }] },
      'backends.0.backend',
      'no backend is named "x"',
    ],
    [
      'a backend of another kind',
      { backends: [{ backend: '/tools' }] },
      'backends.0.backend',
      'is not a host',
    ],
    [
      'a certificate without its key',
      { backends: [], policies: { backendTLS: { cert: 'a.pem' } } },
      'policies.backendTLS',
      'cert needs its key',
    ],
    [
      'a key without its certificate',
      { backends: [{ host: 'a:1', policies: { backendTLS: { key: 'a.pem' } } }] },
      'backends.0.policies.backendTLS',
      'key needs its cert',
    ],
  ])('is refused with %s', (_, route, path, message) => {
    expect(mistakes(route)).toEqual([[path, expect.stringContaining(message)]])
  })

  it.each([
    ['both kinds of backend', { backends: [{ host: 'a:1', backend: '/db' }] }],
    ['a backend that is none', { backends: [{ weight: 1 }] }],
    ['a host without a port', { backends: [{ host: 'a' }] }],
    ['a negative weight', { backends: [{ host: 'a:1', weight: -1 }] }],
    [
      'a policy that TCP does not have',
      { backends: [{ host: 'a:1', policies: { backendAuth: { key: 'k' } } }] },
    ],
    ['no backends', { name: 'db' }],
  ])('is no such entry with %s', (_, route) => {
    expect(check(tcpRouteSchema, route).kind).toBe('mistakes')
  })
})

describe('the backends of a route', () => {
  it('use their own policies, else those of the referenced entry, else those of the route', () => {
    const targets = compileTcpTargets(
      {
        policies: { backendTLS: { hostname: 'of.route' } },
        backends: [
          { host: '[::1]:70', policies: { backendTLS: { hostname: 'own' } } },
          { backend: '/db', weight: 0 },
          { backend: '/db', policies: { tcp: { connectTimeout: '1500ms' } } },
        ],
      },
      named,
      fixtureContext(),
    )()
    const tls = (serverName: string) => expect.objectContaining({ serverName })
    expect(targets).toMatchObject([
      { name: '[::1]:70', weight: 1, dial: { host: '::1', port: 70, tls: tls('own'), timeoutMs: 10_000 } },
      {
        name: 'db',
        weight: 0,
        dial: { host: 'db.internal', port: 5432, tls: tls('of.route'), timeoutMs: 2_000 },
      },
      { name: 'db', weight: 1, dial: { host: 'db.internal', timeoutMs: 1_500 } },
    ])
  })

  it('reset their share of the connections without endpoints, and with `reject`', () => {
    const backends = [...named, { name: 'empty', endpoints: [] }]
    const route: TcpRouteConfig = {
      backends: [{ backend: '/empty', weight: 2 }, { reject: {}, weight: 3 }, { host: 'a:1' }],
    }
    expect(mistakes(route)).toEqual([['backends.0.backend', expect.any(String)]])
    const targets = compileTcpTargets(route, backends, fixtureContext())()
    expect(targets.map(({ weight, dial }) => [weight, dial?.host])).toEqual([
      [2, undefined],
      [3, undefined],
      [1, 'a'],
    ])
  })

  it('share compiled TLS settings while the configuration is unchanged', () => {
    const context = fixtureContext()
    const route: TcpRouteConfig = {
      policies: { backendTLS: {} },
      backends: [{ host: 'a:1' }, { host: 'b:1' }],
    }
    const before = compileTcpTargets(route, named, context)()
    const after = compileTcpTargets(route, named, context)()
    expect(before[0]?.dial?.tls).toBeDefined()
    expect(new Set([...before, ...after].map(({ dial }) => dial?.tls)).size).toBe(1)
  })

  it('reject files with invalid content', () => {
    const context = { ...fixtureContext(), readFile: () => 'not PEM' }
    const compile = (backendTLS: object) =>
      compileTcpTargets({ backends: [{ host: 'a:1', policies: { backendTLS } }] }, named, context)
    expect(() => compile({ root: 'ca.pem' })).toThrow('a file of backendTLS of backend "a:1" cannot be used')
    expect(() => compile({ cert: 'c.pem', key: 'k.pem' })).toThrow('cannot be used')
  })
})

function mistakes(route: TcpRouteConfig): [string, string][] {
  const found: [string, string][] = []
  checkTcpRoute(route, named, (path, message) => found.push([path.join('.'), message]))
  return found
}
