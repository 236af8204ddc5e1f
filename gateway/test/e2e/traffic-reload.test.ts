import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createAuthority } from '../support/certificates.ts'
import { freePorts } from '../support/free-port.ts'
import { type GatewayConfig, startGateway } from '../support/gateway.ts'
import { call, shownNames } from '../support/http-call.ts'
import { programTarget } from '../support/mcp-fixtures.ts'
import { steadyTraffic } from '../support/steady-traffic.ts'
import { echoServer, tcpConnect } from '../support/tcp-servers.ts'
import { certificateFiles, namedUpstream, routing, routingConfig } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

describe('under load', () => {
  it('a change of any section fails no request of a route it leaves alone', async () => {
    const upstream = await namedUpstream('steady')
    const other = await namedUpstream('other')
    const echo = await echoServer()
    const authority = createAuthority()
    const { cert, key } = certificateFiles(authority.issue('steady.test'))
    const [port = 0, secure = 0, more = 0, tcp = 0, older = 0] = await freePorts(5)
    const base = {
      gateways: {
        default: { port },
        secure: { port: secure, tls: { cert, key } },
        tcp: { port: tcp, protocol: 'TCP' },
      },
      routes: [
        {
          name: 'steady',
          gateways: ['default', 'secure'],
          matches: [{ path: { pathPrefix: '/steady' } }],
          policies: {
            localRateLimit: [{ requests: 1_000_000, unit: 'Hours' }],
            responseHeaderModifier: { set: { 'x-route': 'steady' } },
          },
          backends: [{ backend: '/steady' }],
        },
      ],
      tcpRoutes: [{ name: 'echo', gateways: 'tcp', backends: [{ host: echo.host }] }],
      backends: [{ name: 'steady', host: upstream.host }],
    }
    const [steady] = base.routes
    const changes: [string, GatewayConfig][] = [
      ['another gateway', { ...base, gateways: { ...base.gateways, more: { port: more } } }],
      [
        'policies of the gateway',
        {
          ...base,
          gateways: { ...base.gateways, default: { port, cors: { allowOrigins: ['https://a.test'] } } },
        },
      ],
      [
        'listeners in place of one',
        {
          ...base,
          gateways: {
            ...base.gateways,
            default: { port, listeners: [{ name: 'all' }, { name: 'one', hostname: 'one.test' }] },
          },
        },
      ],
      [
        'another route',
        {
          ...base,
          routes: [{ name: 'more', policies: { directResponse: { status: 200 } } }, ...base.routes],
        },
      ],
      [
        'policies of the route',
        {
          ...base,
          routes: [{ ...steady, policies: { timeout: { requestTimeout: '5s' }, retry: { attempts: 1 } } }],
        },
      ],
      [
        'another backend',
        {
          ...base,
          routes: [...base.routes, { matches: [{ path: { exact: '/b' } }], backends: [{ backend: '/b' }] }],
          backends: [
            ...base.backends,
            { name: 'b', host: other.host, policies: { http: { requestTimeout: '1s' } } },
          ],
        },
      ],
      [
        'settings of the backend',
        {
          ...base,
          backends: [{ name: 'steady', host: upstream.host, policies: { http: { requestTimeout: '9s' } } }],
        },
      ],
      ['models', { ...base, llm: { models: [{ name: 'echo', provider: 'echo' }] } }],
      ['tools', { ...base, mcp: { targets: [programTarget('one')] } }],
      ['TCP routes', { ...base, tcpRoutes: [] }],
      ['settings of clients', { ...base, frontendPolicies: { http: { trustedProxies: ['10.0.0.0/8'] } } }],
      [
        'the older form',
        {
          ...base,
          binds: [
            { port: older, listeners: [{ routes: [{ policies: { directResponse: { status: 200 } } }] }] },
          ],
        },
      ],
      ['nothing more', base],
    ]
    const gateway = await startGateway(base)
    const socket = await tcpConnect(tcp)
    const traffic = steadyTraffic({
      port,
      secure: { port: secure, ca: authority.cert, name: 'steady.test' },
      path: '/steady/x',
      text: 'steady',
    })
    await delay(200)
    for (const [what, config] of changes) {
      await gateway.reload(config)
      expect((await call(port, '/steady')).status, what).toBe(200)
    }
    gateway.write('routes: [{')
    await until('the broken file is noticed', async () => !(await gateway.status()).synchronized)
    gateway.write(base)
    await until('the good one is back', async () => (await gateway.status()).synchronized)
    const { failures, durationsMs } = await traffic.stop()
    expect(failures).toEqual([])
    expect(durationsMs.length).toBeGreaterThan(50)
    const echoed = new Promise((resolve) => socket.once('data', (chunk) => resolve(String(chunk))))
    socket.write('still connected')
    expect(await echoed).toBe('still connected')
  }, 60_000)

  it('another certificate is shown to new connections, and no request fails', async () => {
    const upstream = await namedUpstream('steady')
    const authority = createAuthority()
    const files = certificateFiles(authority.issue('first.test'))
    const [secure = 0] = await freePorts(1)
    const { port } = await routing(
      [{ gateways: ['default', 'secure'], backends: [{ host: upstream.host }] }],
      { gateways: { secure: { port: secure, tls: { cert: files.cert, key: files.key } } } },
    )
    const shown = () => shownNames(secure, { ca: authority.cert, name: 'first.test' })
    expect(await shown()).toBe('DNS:first.test')
    const traffic = steadyTraffic({
      port,
      secure: { port: secure, ca: authority.cert, name: 'first.test' },
      path: '/',
      text: 'steady',
    })
    for (const name of ['second.test', 'third.test']) {
      files.write(authority.issue(name))
      await until(`the certificate of ${name} is shown`, async () => (await shown()) === `DNS:${name}`)
    }
    const { failures } = await traffic.stop()
    expect(failures).toEqual([])
  }, 60_000)

  it('10,000 routes come and go while requests are served', async () => {
    const upstream = await namedUpstream('steady')
    const steady = {
      name: 'steady',
      matches: [{ path: { pathPrefix: '/steady' } }],
      backends: [{ host: upstream.host }],
    }
    const { gateway, port } = await routing([steady])
    const many = (version: number) =>
      Array.from({ length: 10_000 }, (_, index) => ({
        name: `route-${index}`,
        hostnames: [`h${index % 100}.test`],
        matches: [{ path: { pathPrefix: `/r/${index}` } }],
        policies: {
          requestHeaderModifier: { set: { 'x-route': `${index % 3 === 0 ? version : 0}` } },
          directResponse: { status: 200, body: `route ${index} ${index % 3 === 0 ? version : 0}` },
        },
      }))
    const traffic = steadyTraffic({ port, path: '/steady', text: 'steady' })
    for (const version of [1, 2]) {
      gateway.write(routingConfig(port, [steady, ...many(version)]))
      await until(
        'the new routes serve',
        async () => (await call(port, '/r/9999', { host: 'h99.test' })).text === `route 9999 ${version}`,
        30_000,
      )
    }
    expect((await call(port, '/r/1/x', { host: 'h1.test' })).text).toBe('route 1 0')
    const { failures, durationsMs } = await traffic.stop()
    expect(failures).toEqual([])
    // Generous, because the machine is shared: the wait would be hundreds of milliseconds otherwise.
    expect(durationsMs[Math.floor(durationsMs.length * 0.99)]).toBeLessThan(250)
  }, 90_000)
})
