import { connect as connectTls } from 'node:tls'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Authority, createAuthority } from '../support/certificates.ts'
import { freePorts } from '../support/free-port.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { call, http2Client, oneConnection, shownNames } from '../support/http-call.ts'
import { certificateFiles, namedUpstream } from '../support/traffic.ts'

/** Its response names the listener that received the request. */
function saying(name: string, more: object = {}): Record<string, unknown> {
  return { name, policies: { directResponse: { status: 200, body: name } }, ...more }
}

let authority: Authority
let gateway: Gateway
let [plain = 0, secure = 0, wide = 0, strict = 0, inner = 0, shared = 0] = [0]

beforeAll(async () => {
  authority = createAuthority()
  ;[plain = 0, secure = 0, wide = 0, strict = 0, inner = 0, shared = 0] = await freePorts(6)
  const files = (...names: string[]) => {
    const { cert, key } = certificateFiles(authority.issue(...names), 'file')
    return { cert, key }
  }
  const { cert: root } = certificateFiles(authority, 'file')
  gateway = await startGateway(
    {
      gateways: {
        default: { port: plain },
        secure: {
          port: secure,
          listeners: [
            { name: 'a', hostname: 'a.example.com', tls: files('a.example.com') },
            { name: 'wild', hostname: '*.example.com', tls: files('*.example.com') },
            {
              name: 'new',
              hostname: 'new.example.com',
              tls: { ...files('new.example.com'), minTLSVersion: 'TLS_V1_3' },
            },
            {
              name: 'guarded',
              hostname: 'guarded.example.com',
              tls: { ...files('guarded.example.com'), root },
            },
            { name: 'deep', hostname: '*.deep.example.com', tls: files('*.deep.example.com') },
          ],
        },
        wide: { port: wide, tls: files('any.example.org') },
        strict: {
          port: strict,
          protocol: 'HTTPS',
          tls: { ...files('s.example.org'), minTLSVersion: 'TLS_V1_3' },
        },
        shared: {
          port: shared,
          listeners: [
            { name: 'all', tls: files('any.example.org') },
            { name: 'second', hostname: 'second.test', tls: files('second.test') },
            { name: 'wildcard', hostname: '*.wild.test', tls: files('*.wild.test') },
            { name: 'fourth', hostname: 'fourth.wild.test', tls: files('fourth.wild.test') },
          ],
        },
        byHost: {
          port: inner,
          listeners: [{ hostname: 'one.test' }, { name: 'others', hostname: '*.test' }, { name: 'rest' }],
        },
      },
      routes: [
        saying('implicit'),
        saying('a', { gateways: 'secure/a' }),
        saying('new', { gateways: 'secure/new' }),
        saying('guarded', { gateways: 'secure/guarded' }),
        saying('wild', { gateways: ['secure/wild'] }),
        saying('deep', { gateways: 'secure/deep', hostnames: ['x.deep.example.com'] }),
        saying('wide', { gateways: 'wide' }),
        saying('strict', { gateways: 'strict' }),
        saying('shared', { gateways: 'shared/all', hostnames: ['one.test'] }),
        saying('second', { gateways: 'shared/second' }),
        saying('wildcard', { gateways: 'shared/wildcard' }),
        saying('fourth', { gateways: 'shared/fourth' }),
        saying('zero', { gateways: 'byHost/0' }),
        saying('others', { gateways: 'byHost/others' }),
        saying('rest', { gateways: 'byHost/rest' }),
        saying('everywhere', {
          gateways: ['default', 'byHost'],
          matches: [{ path: { exact: '/everywhere' } }],
        }),
      ],
    },
    { lifetime: 'file' },
  )
})

const tls = (name: string | false) => ({ ca: authority.cert, name })

describe('a gateway', () => {
  it('named default carries the routes that name none', async () => {
    expect(await call(plain, '/x', { host: 'whatever.test' })).toMatchObject({
      status: 200,
      text: 'implicit',
    })
    expect((await call(wide, '/', { tls: tls(false) })).text).toBe('wide')
  })

  it('is one of several that a route attaches to', async () => {
    expect((await call(plain, '/everywhere')).text).toBe('everywhere')
    expect((await call(inner, '/everywhere', { host: 'one.test' })).text).toBe('everywhere')
    expect((await call(inner, '/everywhere', { host: 'any.thing' })).text).toBe('everywhere')
  })

  it.each([
    ['one.test', 'zero'],
    ['ONE.test:80', 'zero'],
    ['two.test', 'others'],
    ['a.b.test', 'others'],
    ['test', 'rest'],
    ['one.test.example', 'rest'],
  ])('gives requests for %s to the most specific listener: %s', async (host, expected) => {
    expect((await call(inner, '/', { host })).text).toBe(expected)
  })

  it('keeps a connection for many requests, also behind answers it gives itself', async () => {
    const agent = oneConnection()
    for (let count = 0; count < 20; count++) {
      const answer = await call(plain, `/${count}`, { agent, method: count % 2 ? 'POST' : 'GET' })
      expect(answer.status).toBe(200)
    }
    const [line, ...others] = (await gateway.logged(20)).slice(-20)
    expect(others.every((other) => other['clientPort'] === line?.['clientPort'])).toBe(true)
  })

  it('speaks HTTP/2 in the clear to clients that know it does', async () => {
    const client = http2Client(plain)
    const answers = await Promise.all([client.ask('/1'), client.ask('/2'), client.ask('/everywhere')])
    expect(answers.map(({ text }) => text)).toEqual(['implicit', 'implicit', 'everywhere'])
  })
})

describe('a gateway with TLS', () => {
  it('shows each name its own certificate', async () => {
    expect(await shownNames(secure, tls('a.example.com'))).toBe('DNS:a.example.com')
    expect(await shownNames(secure, tls('b.example.com'))).toBe('DNS:*.example.com')
    expect(await shownNames(secure, tls('x.deep.example.com'))).toBe('DNS:*.deep.example.com')
    await expect(shownNames(secure, tls('a.example.org'))).rejects.toThrow(/alert|closed|reset/i)
  })

  it('speaks HTTP/2 where the client offers it, and HTTP/1.1 where not', async () => {
    const socket = await new Promise<string | false | null>((resolve, reject) => {
      const offered = connectTls(
        {
          port: wide,
          host: '127.0.0.1',
          ca: authority.cert,
          ALPNProtocols: ['h2', 'http/1.1'],
          checkServerIdentity: () => undefined,
        },
        () => {
          resolve(offered.alpnProtocol)
          offered.destroy()
        },
      )
      offered.on('error', reject)
    })
    expect(socket).toBe('h2')
    expect((await call(wide, '/', { tls: tls(false) })).text).toBe('wide')
    expect((await http2Client(wide, tls(false)).ask('/')).text).toBe('wide')
  })

  it('serves the listener of the host, which a wildcard certificate may well cover', async () => {
    const client = http2Client(secure, tls('b.example.com'))
    expect((await client.ask('/', { authority: 'b.example.com' })).text).toBe('wild')
    expect((await client.ask('/', { authority: 'c.example.com' })).text).toBe('wild')
    expect(
      (await call(secure, '/', { host: 'x.deep.example.com', tls: tls('x.deep.example.com') })).text,
    ).toBe('deep')
    expect(
      (await call(secure, '/', { host: 'y.deep.example.com', tls: tls('y.deep.example.com') })).status,
    ).toBe(404)
  })

  it('refuses requests for another listener with 421, over a connection that named its own', async () => {
    const client = http2Client(secure, tls('a.example.com'))
    for (const authority of [
      'b.example.com',
      'new.example.com',
      'guarded.example.com',
      'GUARDED.example.com:443',
    ])
      expect((await client.ask('/', { authority })).status).toBe(421)
    expect((await call(secure, '/', { host: 'new.example.com', tls: tls('a.example.com') })).status).toBe(421)
    expect((await call(secure, '/', { host: 'elsewhere.test', tls: tls('a.example.com') })).status).toBe(404)
  })

  // Gateway API conformance, HTTPRouteHTTPSListenerDetectMisdirectedRequests.
  it.each([
    ['one.test', 'one.test', 200, 'shared'],
    ['one.test', 'second.test', 421, undefined],
    ['one.test', 'unknown.test', 404, undefined],
    ['second.test', 'second.test', 200, 'second'],
    ['second.test', 'one.test', 421, undefined],
    ['second.test', 'unknown.test', 421, undefined],
    ['third.wild.test', 'third.wild.test', 200, 'wildcard'],
    ['third.wild.test', 'fifth.wild.test', 200, 'wildcard'],
    ['third.wild.test', 'fourth.wild.test', 421, undefined],
    ['third.wild.test', 'second.test', 421, undefined],
    ['fourth.wild.test', 'fourth.wild.test', 200, 'fourth'],
    ['fourth.wild.test', 'fifth.wild.test', 421, undefined],
    ['unknown.test', 'one.test', 200, 'shared'],
    ['unknown.test', 'unknown.test', 404, undefined],
    // Without a server name, nothing contradicts the host.
    [false, 'one.test', 200, 'shared'],
    [false, 'second.test', 200, 'second'],
  ] as const)('with server name %s answers requests for %s with %i', async (name, host, status, text) => {
    const ask = http2Client(shared, tls(name)).ask('/', { authority: host })
    for (const answer of [await ask, await call(shared, '/', { host, tls: tls(name) })]) {
      expect(answer.status).toBe(status)
      if (text !== undefined) expect(answer.text).toBe(text)
    }
  })

  it('admits clients with a certificate, where one is demanded', async () => {
    const host = 'guarded.example.com'
    const guarded = { host, tls: { ...tls(host), ...authority.issue('client.test') } }
    const stranger = { host, tls: { ...tls(host), ...createAuthority().issue('client.test') } }
    expect((await call(secure, '/', guarded)).text).toBe('guarded')
    await expect(call(secure, '/', stranger)).rejects.toThrow()
    await expect(call(secure, '/', { host, tls: tls(host) })).rejects.toThrow()
  })

  it('enforces its minimum version', async () => {
    const attempt = (maxVersion: 'TLSv1.2' | 'TLSv1.3') =>
      new Promise<string | null>((resolve, reject) => {
        const socket = connectTls(
          {
            port: strict,
            host: '127.0.0.1',
            ca: authority.cert,
            maxVersion,
            checkServerIdentity: () => undefined,
          },
          () => {
            resolve(socket.getProtocol())
            socket.destroy()
          },
        )
        socket.on('error', reject)
      })
    expect(await attempt('TLSv1.3')).toBe('TLSv1.3')
    await expect(attempt('TLSv1.2')).rejects.toThrow(/protocol version/i)
  })

  it('answers clients that speak plain HTTP, and serves others meanwhile', async () => {
    expect((await call(wide, '/')).status).toBe(400)
    expect((await call(wide, '/', { tls: tls(false) })).status).toBe(200)
  })
})

describe('a gateway with TLS behind a trusted proxy', () => {
  it('serves the hosts that the proxy reports, over one connection under its own name', async () => {
    const [port = 0] = await freePorts(1)
    const listener = (name: string, hostname: string) => {
      const { cert, key } = certificateFiles(authority.issue(hostname))
      return { name, hostname, tls: { cert, key } }
    }
    await startGateway({
      frontendPolicies: { http: { trustedProxies: ['127.0.0.1'] } },
      gateways: { g: { port, listeners: [listener('edge', 'edge.test'), listener('shop', 'shop.test')] } },
      routes: [saying('edge', { gateways: 'g/edge' }), saying('shop', { gateways: 'g/shop' })],
    })
    const client = http2Client(port, tls('edge.test'))
    const headers = { 'x-forwarded-host': 'shop.test' }
    expect((await client.ask('/', { authority: 'edge.test', headers })).text).toBe('shop')
    expect((await client.ask('/', { authority: 'shop.test' })).status).toBe(421)
  })
})

describe('a route of a listener that names an upstream', () => {
  it("is reached by both versions of HTTP, and the upstream receives the client's scheme", async () => {
    const upstream = await namedUpstream('up')
    const [one = 0, two = 0] = await freePorts(2)
    const { cert, key } = certificateFiles(authority.issue('up.test'))
    await startGateway({
      gateways: { http: { port: one }, https: { port: two, tls: { cert, key } } },
      routes: [{ gateways: ['http', 'https'], backends: [{ host: upstream.host }] }],
    })
    expect((await call(one, '/1')).text).toBe('up')
    expect((await call(two, '/2', { tls: tls('up.test'), host: 'up.test' })).text).toBe('up')
    expect((await http2Client(two, tls('up.test')).ask('/3', { authority: 'up.test' })).text).toBe('up')
    expect(upstream.seen.map(({ path, headers }) => [path, headers['x-forwarded-proto']])).toEqual([
      ['/1', 'http'],
      ['/2', 'https'],
      ['/3', 'https'],
    ])
  })
})
