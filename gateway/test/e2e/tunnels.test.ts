import { once } from 'node:events'
import { request } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Authority, createAuthority } from '../support/certificates.ts'
import { endAfter } from '../support/cleanup.ts'
import { freePorts } from '../support/free-port.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { readToEnd } from '../support/tcp-servers.ts'
import { certificateFiles, namedUpstream } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

/** Connections of one client; those of a test are closed at its end. */
const maxConnections = 12

let authority: Authority
let gateway: Gateway
let upstream: Awaited<ReturnType<typeof namedUpstream>>
let echo: number
let [proxy = 0, secureProxy = 0, proxied = 0, optional = 0, plain = 0] = [0]

beforeAll(async () => {
  authority = createAuthority()
  upstream = await namedUpstream('upstream', 'file')
  const server = createServer((socket) => socket.on('error', () => {}).pipe(socket)).listen(0, '127.0.0.1')
  endAfter('file', () => {
    server.close()
  })
  await once(server, 'listening')
  ;({ port: echo } = server.address() as AddressInfo)
  ;[proxy = 0, secureProxy = 0, proxied = 0, optional = 0, plain = 0] = await freePorts(5)
  const { cert, key } = certificateFiles(authority.issue('api.test', 'proxy.test'), 'file')
  const issuer = certificateFiles(authority, 'file')
  const served = (body: string) => ({ policies: { directResponse: { status: 200, body } } })
  gateway = await startGateway(
    {
      config: { limits: { maxConnectionsPerClient: maxConnections } },
      binds: [
        { port: proxy, tunnelProtocol: 'connect', listeners: [] },
        {
          port: secureProxy,
          tunnelProtocol: 'connect',
          listeners: [{ protocol: 'HTTPS', tls: { cert, key } }],
        },
        {
          port: 443,
          mode: 'internal',
          listeners: [
            { protocol: 'HTTPS', tls: { cert, key }, routes: [{ name: 'tls', ...served('terminated') }] },
          ],
        },
        {
          port: 8443,
          mode: 'internal',
          listeners: [
            {
              hostname: '*.inspected.test',
              protocol: 'HTTPS',
              tls: { mode: 'dynamicCa', cert: issuer.cert, key: issuer.key },
              routes: [{ name: 'inspected', ...served('inspected') }],
            },
          ],
        },
        {
          port: 80,
          mode: 'internal',
          listeners: [
            {
              routes: [
                {
                  name: 'forward',
                  policies: {
                    authorization: { rules: [{ deny: '"x-deny" in source.connectHeaders' }] },
                  },
                  backends: [{ dynamic: { allowNetworks: ['127.0.0.0/8'] } }],
                },
              ],
            },
          ],
        },
        {
          mode: 'internal',
          listeners: [
            {
              protocol: 'TCP',
              tcpRoutes: [{ name: 'any', backends: [{ dynamic: { allowNetworks: ['127.0.0.0/8'] } }] }],
            },
          ],
        },
        {
          port: proxied,
          tunnelProtocol: 'proxy',
          listeners: [{ routes: [{ name: 'proxied', backends: [{ host: upstream.host }] }] }],
        },
        { port: optional, listeners: [{ routes: [{ name: 'plain', ...served('plain') }] }] },
      ],
      gateways: { default: { port: plain } },
      routes: [{ name: 'own', ...served('own') }],
    },
    { lifetime: 'file' },
  )
})

type Opened = { status: number; socket: Socket }

/** Sends a CONNECT request. */
async function open(port: number, path: string, headers: Record<string, string> = {}): Promise<Opened> {
  const sent = request({ host: '127.0.0.1', port, method: 'CONNECT', path, headers, agent: false })
  sent.end()
  const [response, socket] = await new Promise<[{ statusCode?: number | undefined }, Socket]>(
    (resolve, reject) => {
      sent.on('connect', (...args) => resolve([args[0], args[1]]))
      sent.on('error', reject)
    },
  )
  endAfter('test', () => {
    socket.destroy()
  })
  return { status: response.statusCode ?? 0, socket }
}

async function ask(socket: Socket, host: string): Promise<string> {
  socket.write(`GET /path HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
  return readToEnd(socket)
}

function secured(socket: Socket, servername: string): Promise<Socket> {
  const client = connectTls({ socket, servername, ca: authority.cert })
  endAfter('test', () => {
    client.destroy()
  })
  return new Promise((resolve, reject) => {
    client.once('secureConnect', () => resolve(client))
    client.once('error', reject)
  })
}

describe('CONNECT', () => {
  it('continues on the internal listener of the port, with TLS', async () => {
    const { status, socket } = await open(proxy, 'api.test:443')
    expect(status).toBe(200)
    expect(await ask(await secured(socket, 'api.test'), 'api.test')).toContain('terminated')
  })

  it('presents a certificate for each server name of the listener, issued by the authority', async () => {
    for (const host of ['a.inspected.test', 'b.inspected.test', 'a.inspected.test']) {
      const { socket } = await open(proxy, `${host}:8443`)
      expect(await ask(await secured(socket, host), host)).toContain('inspected')
    }
    const { socket } = await open(proxy, 'other.test:8443')
    await expect(secured(socket, 'other.test')).rejects.toThrow(/unrecognized name/)
    const unnamed = await open(proxy, 'a.inspected.test:8443')
    await expect(secured(unnamed.socket, '')).rejects.toThrow(/unrecognized name/)
  })

  it('continues in HTTP, with its fields in rules', async () => {
    const host = `127.0.0.1:${upstream.port}`
    const { socket } = await open(proxy, '127.0.0.1:80')
    expect(await ask(socket, host)).toContain('upstream')
    const denied = await open(proxy, '127.0.0.1:80', { 'x-deny': '1' })
    expect(await ask(denied.socket, host)).toContain('403')
  })

  it('continues on the listener of every port, towards the requested host', async () => {
    const { socket } = await open(proxy, `localhost:${echo}`)
    socket.write('through')
    const [answer]: Buffer[] = await once(socket, 'data')
    expect(String(answer)).toBe('through')
  })

  it('continues on an open port of the gateway', async () => {
    const { socket } = await open(proxy, `any.test:${plain}`)
    expect(await ask(socket, 'any.test')).toContain('own')
  })

  it('has the settings of HTTP connections up to the tunnel', async () => {
    const [port = 0] = await freePorts(1)
    const http = { http1MaxHeaders: 20, maxConnectionDuration: '1s' }
    const routes = [{ backends: [{ dynamic: { allowNetworks: ['127.0.0.0/8'] } }] }]
    await startGateway({
      frontendPolicies: { http },
      binds: [
        { port, tunnelProtocol: 'connect', listeners: [] },
        { mode: 'internal', listeners: [{ protocol: 'TCP', tcpRoutes: routes }] },
      ],
    })
    const headers = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`x-${index}`, '1']))
    expect((await call(port, '/', { headers })).status).toBe(431)
    const { socket } = await open(port, `localhost:${echo}`)
    // The connection opened last is the last one to reach its age.
    const idle = connect(port, '127.0.0.1').resume()
    await once(idle, 'close')
    socket.write('through')
    const [answer]: Buffer[] = await once(socket, 'data')
    expect(String(answer)).toBe('through')
  })

  it('is accepted over TLS', async () => {
    const outer = await secured(connect(secureProxy, '127.0.0.1'), 'proxy.test')
    outer.write('CONNECT api.test:443 HTTP/1.1\r\nhost: api.test:443\r\n\r\n')
    const [answer]: Buffer[] = await once(outer, 'data')
    expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /)
    expect(await ask(await secured(outer, 'api.test'), 'api.test')).toContain('terminated')
  })

  it('refuses its own port, malformed targets, and other methods', async () => {
    expect((await open(proxy, `127.0.0.1:${proxy}`)).status).toBe(403)
    expect((await open(proxy, 'api.test')).status).toBe(400)
    expect((await open(proxy, 'api.test:0')).status).toBe(400)
    expect((await call(proxy, '/')).status).toBe(405)
    expect((await open(plain, 'api.test:443')).status).toBe(405)
    await until('the refusal is logged', () => gateway.stdout().includes('CONNECT: no listener for port'))
  })

  it('resets tunnels to addresses of the gateway', async () => {
    const { socket } = await open(proxy, '169.254.169.254:1')
    await expect(readToEnd(socket)).rejects.toMatchObject({ code: 'ECONNRESET' })
  })
})

describe('the PROXY protocol', () => {
  const version2 = Buffer.from('0d0a0d0a000d0a515549540a2111000ccb007107c000020104d201bb', 'hex')

  async function through(header: string | Buffer): Promise<string> {
    const socket = connect(proxied, '127.0.0.1')
    endAfter('test', () => {
      socket.destroy()
    })
    socket.write(header)
    return ask(socket, 'a.test')
  }

  it('reports the client of version 2', async () => {
    expect(await through(version2)).toContain('upstream')
    expect(upstream.seen.at(-1)?.headers['x-forwarded-for']).toBe('203.0.113.7')
    const [line] = (await gateway.logged(1)).filter(({ route }) => route === 'proxied')
    await until('the request is logged', () => gateway.stdout().includes('"client":"203.0.113.7"'))
    expect(line === undefined || line['client'] === '203.0.113.7').toBe(true)
  })

  it('limits the connections of a reported client', async () => {
    const open = async (last: number) => {
      const socket = connect(proxied, '127.0.0.1').on('error', () => {})
      endAfter('test', () => {
        socket.destroy()
      })
      socket.write(Buffer.concat([version2.subarray(0, 19), Buffer.of(last), version2.subarray(20)]))
      socket.write('GET / HTTP/1.1\r\nhost: a.test\r\n\r\n')
      await Promise.race([once(socket, 'data'), once(socket, 'close')])
      return socket.destroyed ? 'closed' : 'served'
    }
    for (let index = 0; index < maxConnections; index += 1) expect(await open(9)).toBe('served')
    expect(await open(9)).toBe('closed')
    expect(await open(10)).toBe('served')
  })

  it('closes connections without a valid header', async () => {
    const seen = upstream.seen.length
    for (const header of [
      '',
      'PROXY TCP4 203.0.113.7 192.0.2.1 1 2\r\n',
      Buffer.concat([version2.subarray(0, 12), Buffer.alloc(16)]),
    ])
      expect(await through(header).catch(() => '')).toBe('')
    expect(upstream.seen).toHaveLength(seen)
  })
})
