import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { freePorts } from '../support/free-port.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { call, http2Client } from '../support/http-call.ts'
import { readToEnd, tlsConnect } from '../support/tcp-servers.ts'
import { namedUpstream } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

const local = { allowNetworks: ['127.0.0.0/8'] }

let gateway: Gateway
let upstream: Awaited<ReturnType<typeof namedUpstream>>
let [open = 0, closed = 0, computed = 0, tcp = 0] = [0]

beforeAll(async () => {
  upstream = await namedUpstream('upstream', 'file')
  const server = createServer((socket) => socket.on('error', () => {}).pipe(socket)).listen(0, '127.0.0.1')
  endAfter('file', () => {
    server.close()
  })
  await once(server, 'listening')
  const { port: echo } = server.address() as AddressInfo
  ;[open = 0, closed = 0, computed = 0, tcp = 0] = await freePorts(4)
  gateway = await startGateway(
    {
      gateways: {
        open: { port: open },
        closed: { port: closed },
        computed: { port: computed },
        tcp: { port: tcp, protocol: 'TLS' },
      },
      routes: [
        { name: 'open', gateways: 'open', backends: [{ dynamic: local }] },
        { name: 'closed', gateways: 'closed', backends: [{ dynamic: {} }] },
        {
          name: 'computed',
          gateways: 'computed',
          policies: { retry: { attempts: 1 } },
          backends: [
            { dynamic: { ...local, target: `request.headers["x-to"] + ":" + string(${upstream.port})` } },
          ],
        },
      ],
      tcpRoutes: [
        {
          name: 'echo',
          gateways: 'tcp',
          hostnames: ['*.test'],
          backends: [{ dynamic: { ...local, target: `"127.0.0.1:" + string(${echo})` } }],
        },
        {
          name: 'localhost',
          gateways: 'tcp',
          hostnames: ['localhost'],
          backends: [{ dynamic: {} }],
        },
      ],
    },
    { lifetime: 'file' },
  )
})

describe('a dynamic backend', () => {
  it('forwards to the host of the request, in HTTP/1 and HTTP/2', async () => {
    const host = `127.0.0.1:${upstream.port}`
    expect(await call(open, '/x?y=1', { host })).toMatchObject({ status: 200, text: 'upstream' })
    const answer = await http2Client(open).ask('/', { authority: `localhost:${upstream.port}` })
    expect([answer.status, answer.text]).toEqual([200, 'upstream'])
    expect(upstream.seen.at(0)).toMatchObject({ path: '/x?y=1', headers: { host } })
  })

  it('refuses private and loopback addresses unless they are allowed', async () => {
    const seen = upstream.seen.length
    for (const host of ['127.0.0.1', 'localhost', '[::1]', '169.254.169.254', '10.0.0.1', '0.0.0.0']) {
      const answer = await call(closed, '/', { host: `${host}:${upstream.port}` })
      expect([host, answer.status]).toEqual([host, 503])
    }
    expect((await call(open, '/', { host: '169.254.169.254' })).status).toBe(503)
    expect(upstream.seen).toHaveLength(seen)
    await until('the reason is logged', () => gateway.stdout().includes('is not a public address'))
  })

  it('refuses the listeners of the gateway', async () => {
    expect((await call(open, '/', { host: `127.0.0.1:${open}` })).status).toBe(503)
    expect((await call(open, '/', { host: `localhost:${closed}` })).status).toBe(503)
    for (const port of [gateway.adminPort, gateway.statsPort, gateway.readinessPort])
      expect([port, (await call(open, '/metrics', { host: `127.0.0.1:${port}` })).status]).toEqual([
        port,
        503,
      ])
    await until('the reason is logged', () => gateway.stdout().includes('is a listener of this gateway'))
  })

  it('forwards to the result of an expression, and to nothing without one', async () => {
    expect((await call(computed, '/', { headers: { 'x-to': '127.0.0.1' } })).text).toBe('upstream')
    expect((await call(computed, '/')).status).toBe(400)
    expect((await call(computed, '/', { headers: { 'x-to': 'a b' } })).status).toBe(400)
    expect((await call(open, '/', { host: 'a.test:0' })).status).toBe(400)
  })

  it('connects TLS that passes through by its server name', async () => {
    // The echo server answers a ClientHello with itself: an error of TLS, not a closed connection.
    const failure = (servername: string) =>
      tlsConnect(tcp, { servername, rejectUnauthorized: false }).then(
        readToEnd,
        (error: { code?: string }) => error.code,
      )
    expect(await failure('a.test')).toMatch(/^ERR_SSL/)
    expect(await failure('localhost')).toBe('ECONNRESET')
    expect(await failure('other.example')).toBe('ECONNRESET')
  })
})
