import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request as httpRequest, type IncomingMessage, type RequestListener } from 'node:http'
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import { defaultAdmission } from '../../../test/support/admission.ts'
import { systemClock } from '../../lib/clock.ts'
import { defaultServerLimits } from '../../net/http/incoming-request.ts'
import { createHttpClient } from '../../net/http-client/http-client.ts'
import { listen } from '../../net/listener/listener.ts'
import { createPipeline } from '../../pipeline/pipeline.ts'
import type { HttpListener, Route } from '../../pipeline/snapshot.ts'
import { createMetrics } from '../../telemetry/metrics/metrics.ts'
import type { ForwardingPolicies, RouteBackend } from './config.ts'
import { compileHttpBackend } from './http.ts'

// Real sockets on both sides: what the parts of the way do together.

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

describe('a plain HTTP route', () => {
  it('forwards a megabyte in both directions unchanged', async () => {
    const port = await gateway(await upstream((request, response) => void request.pipe(response)))
    const bytes = randomBytes(1_000_000)
    for (const headers of [{ 'content-length': bytes.length }, { 'transfer-encoding': 'chunked' }]) {
      const { response, body } = await call(port, { method: 'POST', headers }, bytes)
      expect(response.statusCode).toBe(200)
      expect(digest(body)).toBe(digest(bytes))
    }
  })

  it('streams both bodies concurrently', async () => {
    const port = await gateway(
      await upstream((request, response) => {
        response.flushHeaders()
        request.on('data', (chunk) => response.write(`<${chunk}>`))
        request.on('end', () => response.end())
      }),
    )
    const request = httpRequest({ port, host: '127.0.0.1', method: 'POST' })
    request.write('one')
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    const [first] = (await once(response, 'data')) as [Buffer]
    request.write('two')
    const [second] = (await once(response, 'data')) as [Buffer]
    expect([first, second].map(String)).toEqual(['<one>', '<two>'])
    request.end()
    response.resume()
    await once(response, 'end')
  })

  it('forwards HEAD, 204, 304 and an empty POST unchanged', async () => {
    const seen: (string | undefined)[] = []
    const port = await gateway(
      await upstream((request, response) => {
        seen.push(request.headers['content-length'])
        if (request.url === '/204') response.writeHead(204).end()
        else if (request.url === '/304') response.writeHead(304, { etag: '"1"', 'content-length': '9' }).end()
        else response.writeHead(200, { 'content-length': request.method === 'HEAD' ? '777' : '0' }).end()
      }),
    )
    const head = await call(port, { method: 'HEAD' })
    expect(head.response.headers['content-length']).toBe('777')
    const noContent = await call(port, { path: '/204' })
    expect([noContent.response.statusCode, noContent.response.headers['content-length']]).toEqual([
      204,
      undefined,
    ])
    const notModified = await call(port, { path: '/304' })
    expect([notModified.response.statusCode, notModified.response.headers.etag]).toEqual([304, '"1"'])
    const post = await call(port, { method: 'POST', headers: { 'content-length': '0' } })
    expect([post.response.statusCode, post.body.length]).toEqual([200, 0])
    expect(seen.at(-1)).toBe('0')
  })

  it('forwards informational responses and trailers', async () => {
    const port = await gateway(
      await upstream((_, response) => {
        response.writeEarlyHints({ link: '</a.css>; rel=preload' })
        response.writeHead(200, { trailer: 'x-sum' })
        response.write('body')
        response.addTrailers({ 'x-sum': '42' })
        response.end()
      }),
    )
    const request = httpRequest({ port, host: '127.0.0.1', headers: { te: 'trailers' } })
    const hints: unknown[] = []
    request.on('information', ({ statusCode, headers }) => hints.push([statusCode, headers.link]))
    request.end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    response.resume()
    await once(response, 'end')
    expect(hints).toEqual([[103, '</a.css>; rel=preload']])
    expect(response.trailers).toEqual({ 'x-sum': '42' })
  })

  it('retains separate cookie headers', async () => {
    const port = await gateway(
      await upstream((_, response) => response.writeHead(200, { 'set-cookie': ['a=1', 'b=2'] }).end('x')),
    )
    const { response } = await call(port, {})
    expect(response.headers['set-cookie']).toEqual(['a=1', 'b=2'])
  })

  it("sends the upstream's host, and the client's in x-forwarded-host", async () => {
    let headers: IncomingMessage['headers'] = {}
    const origin = await upstream((request, response) => {
      headers = request.headers
      response.end()
    })
    const port = await gateway(origin)
    await call(port, { headers: { host: 'shop.test', 'x-forwarded-for': '6.6.6.6' } })
    expect(headers).toMatchObject({
      host: origin,
      'x-forwarded-host': 'shop.test',
      'x-forwarded-proto': 'http',
      'x-forwarded-for': '127.0.0.1',
    })
  })

  it('cancels the upstream when the client disconnects', async () => {
    const { promise: left, resolve } = Promise.withResolvers<void>()
    const port = await gateway(
      await upstream((_, response) => {
        response.write('begun')
        response.on('close', () => resolve())
      }),
    )
    const request = httpRequest({ port, host: '127.0.0.1' })
    request.on('error', () => {})
    request.end()
    await once(request, 'response')
    request.destroy()
    await left
  })

  it('applies backpressure of a slow reader to the upstream', async () => {
    let written = 0
    const chunk = Buffer.alloc(64 * 1024)
    const port = await gateway(
      await upstream((_, response) => {
        function fill() {
          while (written < 200_000_000) {
            written += chunk.length
            if (!response.write(chunk)) return
          }
        }
        response.on('drain', fill)
        fill()
      }),
    )
    const socket = connect(port, '127.0.0.1')
    closers.push(() => socket.destroy())
    socket.pause()
    socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    await pause(500)
    expect(written).toBeLessThan(50_000_000)
  })

  it('aborts with the upstream, so that a truncated response does not appear complete', async () => {
    const origin = await rawUpstream((socket) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf')
        setTimeout(() => socket.destroy(), 20)
      })
    })
    await expect(call(await gateway(origin), {})).rejects.toThrow()
  })

  it.each([
    ['closes without an answer', (socket: Socket) => socket.destroy(), 502],
    ['answers with something else', (socket: Socket) => socket.end('SSH-2.0-OpenSSH\r\n'), 502],
    [
      'contradicts itself about the length',
      (socket: Socket) =>
        socket.end('HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'),
      502,
    ],
    [
      'says two lengths',
      (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'),
      502,
    ],
    [
      'changes the protocol unasked',
      (socket: Socket) =>
        socket.end('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
      502,
    ],
    ['says nothing', () => {}, 504],
  ])('replies for an upstream that %s', async (_, misbehave, status) => {
    const origin = await rawUpstream((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => misbehave(socket))
    })
    const port = await gateway(origin, { timeout: { requestTimeout: '300ms' } })
    const { response } = await call(port, { method: 'POST' })
    expect(response.statusCode).toBe(status)
  })

  it('replies 503 for a refused connection', async () => {
    const origin = await rawUpstream(() => {})
    for (const close of closers.splice(0)) await close()
    const { response, body } = await call(await gateway(origin), {})
    expect([response.statusCode, String(body)]).toEqual([503, 'upstream call failed: connect'])
  })

  it('prevents request smuggling behind a first request', async () => {
    const seen: (string | undefined)[] = []
    const port = await gateway(
      await upstream((request, response) => {
        seen.push(request.url)
        request.resume()
        response.end('ok')
      }),
    )
    const socket = connect(port, '127.0.0.1')
    closers.push(() => socket.destroy())
    const hidden = 'GET /hidden HTTP/1.1\r\nhost: a\r\n\r\n'
    socket.write(
      `POST /first HTTP/1.1\r\nhost: a\r\ncontent-length: ${hidden.length}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    )
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(String(answer)).toContain('400 Bad Request')
    expect(seen).toEqual([])
  })

  it('sends 100 Continue only after the upstream is connected', async () => {
    const port = await gateway(await upstream((request, response) => void request.pipe(response)))
    const request = httpRequest({
      port,
      host: '127.0.0.1',
      method: 'POST',
      headers: { expect: '100-continue', 'content-length': '4' },
    })
    request.flushHeaders()
    await once(request, 'continue')
    request.end('body')
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    const [chunk] = (await once(response, 'data')) as [Buffer]
    expect(String(chunk)).toBe('body')
  })
})

describe('a WebSocket', () => {
  it('is tunnelled with its subprotocol, both ways, until either side closes', async () => {
    const server = createServer()
    const sockets = new WebSocketServer({ server, handleProtocols: () => 'chat' })
    sockets.on('connection', (socket) => {
      socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
    })
    const port = await gateway(await listening(server))
    const client = new WebSocket(`ws://127.0.0.1:${port}/socket`, ['chat', 'other'])
    await once(client, 'open')
    expect(client.protocol).toBe('chat')
    const bytes = randomBytes(300_000)
    client.send(bytes)
    const [echo] = (await once(client, 'message')) as [Buffer]
    expect(digest(echo)).toBe(digest(bytes))
    client.close(4000, 'bye')
    const [code] = await once(client, 'close')
    expect(code).toBe(4000)
  })

  it('that the upstream declines receives its response', async () => {
    const port = await gateway(await upstream((_, response) => response.writeHead(401).end('who are you')))
    const client = new WebSocket(`ws://127.0.0.1:${port}/`)
    client.on('error', () => {})
    const [, response] = (await once(client, 'unexpected-response')) as [unknown, IncomingMessage]
    expect(response.statusCode).toBe(401)
    client.terminate()
  })
})

/** A gateway with one route to `host`. Returns its port. */
async function gateway(host: string, policies: ForwardingPolicies = {}): Promise<number> {
  const client = createHttpClient({
    connectTimeoutMs: 1_000,
    keepAliveMs: 10_000,
    firstByteTimeoutMs: 10_000,
    idleTimeoutMs: 10_000,
  })
  const context = { ...fixtureContext(), clock: systemClock, send: client.send }
  const entries: RouteBackend[] = [{ host }]
  const backend = compileHttpBackend(entries, context, {
    named: [],
    policies,
    compileOther: () => {
      throw new Error('not an HTTP server')
    },
  })
  const metrics = createMetrics()
  const route: Route = {
    name: 'all',
    policies: [],
    backend,
    meter: metrics.route('all'),
    errorFormat: () => 'text',
  }
  const listener: HttpListener = {
    kind: 'http',
    key: 'test',
    host: '127.0.0.1',
    port: 0,
    tls: undefined,
    match: () => ({ target: route, prefix: '/' }),
  }
  const handle = createPipeline({
    listener: () => listener,
    log: { ...context.log, writeLine() {}, flush: async () => {} },
    clock: systemClock,
    unrouted: metrics.route(''),
  })
  const server = await listen({
    admission: defaultAdmission(),
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    limits: defaultServerLimits,
    serve: () => ({ kind: 'http', tls: undefined, handle }),
  })
  closers.push(async () => {
    server.close()
    await client.close()
  })
  return server.port
}

/** Returns `host:port`. */
function upstream(listener: RequestListener): Promise<string> {
  return listening(createServer(listener))
}

function rawUpstream(listener: (socket: Socket) => void): Promise<string> {
  return listening(createTcpServer(listener))
}

async function listening(server: Server): Promise<string> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function call(
  port: number,
  options: { method?: string; path?: string; headers?: Record<string, string | number> },
  body?: Buffer,
): Promise<{ response: IncomingMessage; body: Buffer }> {
  const request = httpRequest({ port, host: '127.0.0.1', agent: false, ...options })
  request.end(body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return { response, body: Buffer.concat(chunks) }
}

function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
