import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Duplex } from 'node:stream'
import { beforeAll, describe, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { createAuthority } from '../support/certificates.ts'
import { endAfter } from '../support/cleanup.ts'
import { each, headers, type Processor, startProcessor, unchanged } from '../support/ext-proc-server.ts'
import { freePort } from '../support/free-port.ts'
import { call } from '../support/http-call.ts'
import { listening } from '../support/listening.ts'
import { rawConnect, rawExchange } from '../support/raw-http.ts'
import { certificateFiles, type Routing, routing } from '../support/traffic.ts'
import { until, within } from '../support/wait.ts'

const key = 'ws-key-19b2'
let running: Routing
let secure = 0
let ca = ''
let host = ''
let processor: Processor
const sockets: WebSocket[] = []
const upgrades: { url: string | undefined; headers: Record<string, unknown> }[] = []

beforeAll(async () => {
  const upstream = createServer((_, response) => response.end('plain answer'))
  const chat = new WebSocketServer({
    noServer: true,
    maxPayload: 64 * 1024 * 1024,
    handleProtocols: () => 'chat.v2',
  })
  const tunnels = new Set<Duplex>()
  upstream.on('upgrade', (request, socket, head) => {
    tunnels.add(socket)
    socket.on('error', () => {})
    upgrades.push({ url: request.url, headers: request.headers })
    if (request.headers.upgrade !== 'websocket') {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo/1\r\n\r\n')
      socket.write(head)
      socket.pipe(socket)
      return
    }
    if (request.url === '/refused') {
      socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno')
      return
    }
    chat.handleUpgrade(request, socket, head, (client) => {
      sockets.push(client)
      client.on('message', (data, isBinary) => {
        if (String(data) === 'close me') client.close(4001, 'as you wish')
        else client.send(data, { binary: isBinary })
      })
    })
  })
  host = `127.0.0.1:${await listening(upstream)}`
  endAfter('file', () => {
    for (const tunnel of tunnels) tunnel.destroy()
    upstream.close()
  })
  const authority = createAuthority()
  ca = authority.cert
  const { cert, key: privateKey } = certificateFiles(authority.issue('127.0.0.1'), 'file')
  secure = await freePort()
  processor = await startProcessor(each(unchanged), { lifetime: 'file' })
  running = await routing(
    [
      {
        name: 'processed',
        matches: [{ path: { pathPrefix: '/processed' } }],
        policies: { extProc: { host: processor.host } },
        backends: [{ host }],
      },
      {
        name: 'conditional',
        matches: [{ path: { pathPrefix: '/conditional' } }],
        policies: {
          directResponse: {
            conditional: [
              { condition: 'request.path.startsWith("/conditional/a/")', status: 403 },
              { condition: 'request.path.startsWith("/conditional/b/")', status: 404 },
            ],
          },
        },
        backends: [{ host }],
      },
      {
        name: 'guarded',
        matches: [{ path: { pathPrefix: '/guarded' } }],
        policies: {
          apiKey: { keys: [{ key }] },
          authorization: { rules: [{ deny: 'request.path == "/guarded/denied"' }] },
          localRateLimit: [{ requests: 3, unit: 'Hours' }],
        },
        backends: [{ host }],
      },
      {
        name: 'short',
        matches: [{ path: { pathPrefix: '/short' } }],
        policies: {
          timeout: { requestTimeout: '500ms' },
          retry: { attempts: 2 },
          urlRewrite: { path: { prefix: '/' } },
          requestHeaderModifier: { set: { 'x-room': '7' } },
        },
        backends: [{ host }],
      },
      { name: 'chat', gateways: ['default', 'secure'], backends: [{ host }] },
    ],
    { gateways: { secure: { port: secure, tls: { cert, key: privateKey } } } },
    { lifetime: 'file' },
  )
})

async function opened(
  url: string,
  options: ConstructorParameters<typeof WebSocket>[2] = {},
): Promise<WebSocket> {
  const socket = new WebSocket(url, ['chat.v2'], { maxPayload: 64 * 1024 * 1024, ...options })
  endAfter('test', () => socket.terminate())
  await within('the web socket opens', once(socket, 'open'))
  return socket
}

/** Sends, and waits for the response. */
async function echoed(socket: WebSocket, data: string | Buffer): Promise<Buffer> {
  const answer = once(socket, 'message')
  socket.send(data)
  const [received] = await within('the echo', answer)
  return received
}

/** The status with which an upgrade is refused. */
async function refusal(path: string, headers: Record<string, string> = {}): Promise<number | undefined> {
  const socket = new WebSocket(`ws://127.0.0.1:${running.port}${path}`, { headers })
  socket.on('error', () => {})
  const [, response] = await within('the refusal', once(socket, 'unexpected-response'))
  socket.terminate()
  return response.statusCode
}

describe('a WebSocket', () => {
  it('carries messages both ways, small and large', async () => {
    const socket = await opened(`ws://127.0.0.1:${running.port}/room?id=1`)
    expect(socket.protocol).toBe('chat.v2')
    expect(String(await echoed(socket, 'hello'))).toBe('hello')
    const large = Buffer.alloc(20 * 1024 * 1024, 'abcdefgh')
    expect((await echoed(socket, large)).equals(large)).toBe(true)
    expect(String(await echoed(socket, ''))).toBe('')
    expect(upgrades.at(-1)).toMatchObject({
      url: '/room?id=1',
      headers: { upgrade: 'websocket', 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'http' },
    })
  })

  it('is served over TLS', async () => {
    const socket = await opened(`wss://127.0.0.1:${secure}/tls`, { ca })
    expect(String(await echoed(socket, 'hello'))).toBe('hello')
    expect(upgrades.at(-1)?.headers['x-forwarded-proto']).toBe('https')
  })

  it("reports each side's end to the other", async () => {
    const first = await opened(`ws://127.0.0.1:${running.port}/`)
    const closed = once(first, 'close')
    first.send('close me')
    const [code, reason] = await within('the close of the upstream', closed)
    expect([code, String(reason)]).toEqual([4001, 'as you wish'])

    const second = await opened(`ws://127.0.0.1:${running.port}/`)
    const seen = sockets.at(-1)
    if (!seen) throw new Error('the upstream has no socket')
    const ended = once(seen, 'close')
    second.close(4002, 'mine')
    const [itsCode, itsReason] = await within('the close of the client', ended)
    expect([itsCode, String(itsReason)]).toEqual([4002, 'mine'])
  })

  it('breaks at both ends when one breaks, and is in the log with its bytes', async () => {
    const client = await opened(`ws://127.0.0.1:${running.port}/broken-client`)
    await echoed(client, 'x'.repeat(1000))
    const seen = sockets.at(-1)
    if (!seen) throw new Error('the upstream has no socket')
    const ended = once(seen, 'close')
    client.terminate()
    await within('the upstream hears of it', ended)

    const other = await opened(`ws://127.0.0.1:${running.port}/broken-upstream`)
    const closed = once(other, 'close')
    sockets.at(-1)?.terminate()
    expect((await within('the client hears of it', closed))[0]).toBe(1006)
    const line = await until('the line in the log', () =>
      running.gateway.requests().find(({ path }) => path === '/broken-client'),
    )
    expect(line).toMatchObject({ status: 101, route: 'chat' })
  })

  it('outlives the time limits of requests, and is changed on its way like any request', async () => {
    const socket = await opened(`ws://127.0.0.1:${running.port}/short/x`)
    await new Promise((resolve) => setTimeout(resolve, 800))
    expect(String(await echoed(socket, 'still here'))).toBe('still here')
    expect(upgrades.at(-1)).toMatchObject({ url: '/x', headers: { 'x-room': '7' } })
  })

  it('is refused by policies with their own status, and never reaches the upstream', async () => {
    const before = upgrades.length
    expect(await refusal('/guarded')).toBe(401)
    const credential = { authorization: `Bearer ${key}` }
    expect(await refusal('/guarded/denied', credential)).toBe(403)
    expect(upgrades.length).toBe(before)
    for (let count = 0; count < 3; count++)
      await opened(`ws://127.0.0.1:${running.port}/guarded`, { headers: credential })
    expect(upgrades.at(-1)?.headers['authorization']).toBeUndefined()
    expect(await refusal('/guarded', credential)).toBe(429)
  })

  it('passes a processor with its head, and carries messages without it', async () => {
    processor.seen.length = 0
    processor.behaviour = each((message) =>
      message.requestHeaders
        ? { requestHeaders: { response: { headerMutation: headers({ 'x-processed': 'yes' }) } } }
        : unchanged(message),
    )
    const socket = await opened(`ws://127.0.0.1:${running.port}/processed`)
    expect(upgrades.at(-1)?.headers['x-processed']).toBe('yes')
    expect(String(await echoed(socket, 'hello'))).toBe('hello')
    const kinds = processor.seen.flatMap((message) => Object.keys(message))
    expect(kinds).toContain('requestHeaders')
    expect(kinds.filter((kind) => /Body$/.test(kind))).toEqual([])
  })

  it('is refused by the immediate response of a processor', async () => {
    const before = upgrades.length
    processor.behaviour = each(() => ({ immediateResponse: { status: { code: 403 } } }))
    expect(await refusal('/processed')).toBe(403)
    expect(upgrades.length).toBe(before)
  })

  it('that the upstream refuses is refused with its answer', async () => {
    expect(await refusal('/refused')).toBe(403)
  })

  it('outlives a reload that leaves its route alone, and one that takes it away', async () => {
    const port = await freePort()
    const { gateway, port: own } = await routing([{ backends: [{ host: host }] }])
    const socket = await opened(`ws://127.0.0.1:${own}/`)
    const config = { gateways: { default: { port: own }, more: { port } }, routes: [] }
    await gateway.reload({
      ...config,
      routes: [{ gateways: 'more' }, { backends: [{ host: host }] }],
    })
    expect(String(await echoed(socket, 'one'))).toBe('one')
    await gateway.reload(config)
    expect(String(await echoed(socket, 'two'))).toBe('two')
    expect((await call(own, '/')).status).toBe(404)
  })
})

describe('an ambiguous path to a conditional policy', () => {
  it.each(['/conditional/a%2fx', '/conditional/a;v/x'])(
    'is refused over %s, with and without an upgrade',
    async (path) => {
      const before = upgrades.length
      const answer = await call(running.port, path)
      expect([answer.status, answer.text]).toEqual([
        400,
        expect.stringContaining('a condition selects another policy'),
      ])
      expect(await refusal(path)).toBe(400)
      expect(upgrades.length).toBe(before)
    },
  )

  it('of one reading is not refused', async () => {
    expect((await call(running.port, '/conditional/a/x')).status).toBe(403)
    expect((await call(running.port, '/conditional/c/x')).status).toBe(200)
  })
})

describe('another upgrade', () => {
  it('is a tunnel too, with the bytes sent right behind the request', async () => {
    const client = await rawConnect(running.port)
    client.send('GET /tunnel HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: echo/1\r\n\r\nearly ')
    await client.receives('early ')
    client.send('late')
    expect(await client.receives('late')).toMatch(/^HTTP\/1\.1 101 [\s\S]*\r\n\r\nearly late$/)
    client.socket.end()
    await client.closed()
  })

  it('to h2c is answered as an ordinary request', async () => {
    const answer = await rawExchange(
      running.port,
      'GET / HTTP/1.1\r\nhost: h\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n',
    )
    expect(answer).toMatch(/^HTTP\/1\.1 200 [\s\S]*plain answer/)
  })

  it('without the connection header is no upgrade', async () => {
    const answer = await rawExchange(running.port, 'GET / HTTP/1.1\r\nhost: h\r\nupgrade: websocket\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 200 [\s\S]*plain answer/)
  })
})
