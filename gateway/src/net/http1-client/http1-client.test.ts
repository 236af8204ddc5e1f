import { createServer, type Server, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../../../test/support/cleanup.ts'
import { listening } from '../../../test/support/listening.ts'
import { until } from '../../../test/support/wait.ts'
import { createLocalMemory } from '../../lib/planes/memory.ts'
import { createSinglePlane } from '../../lib/planes/peers.ts'
import { anywhere } from '../egress/egress.ts'
import { type Body, type BodySink, type BodySource, isSource, readAll } from '../http/body.ts'
import type { OutgoingRequest, Reply } from '../http-client/send.ts'
import { createSharedLimits } from '../http-client/shared-limits.ts'
import { createHttp1Client, type Http1ClientOptions } from './http1-client.ts'

const hello = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello'

describe('a connection', () => {
  it('serves one request after another', async () => {
    const upstream = await server((socket) => socket.on('data', () => socket.write(hello)))
    const { send } = client()
    for (const method of ['GET', 'POST', 'DELETE']) {
      expect(await textOf(await send(request(upstream, { method })))).toBe('hello')
      // A connection serves a request only after the turn of its last response.
      await new Promise(setImmediate)
    }
    expect(upstream.connections()).toBe(1)
  })

  it.each([
    [
      'the server announces its end',
      'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello',
      {},
    ],
    ['HTTP/1.0 does not announce the contrary', 'HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello', {}],
    ['bytes follow the response', `${hello}x`, {}],
    ['a response follows the response', `${hello}${hello}`, {}],
    ['a body may follow a response without one', 'HTTP/1.1 204 \r\ncontent-length: 5\r\n\r\n', {}],
    ['the response is to HEAD', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n', { method: 'HEAD' }],
    ['the request has an unusual body', hello, { body: 'x' }],
    ['the server closes soon', 'HTTP/1.1 200 OK\r\nkeep-alive: timeout=2\r\ncontent-length: 0\r\n\r\n', {}],
    [
      'the request body is not complete',
      hello,
      { method: 'POST', body: endless(), headers: { 'content-length': '9' } },
    ],
  ])('is closed if %s', async (_, response, more: Partial<OutgoingRequest>) => {
    const upstream = await server((socket) => socket.once('data', () => socket.write(response)))
    const { send } = client()
    const reply = await send(request(upstream, more))
    expect(['hello', '']).toContain(await textOf(reply))
    await until('the connection is closed', () => upstream.closed() === 1)
  })

  it('is closed by bytes without a request, which no other request receives', async () => {
    const sockets: Socket[] = []
    const upstream = await server((socket) => {
      sockets.push(socket)
      socket.on('data', () => socket.write(hello))
    })
    const { send } = client()
    await textOf(await send(request(upstream)))
    sockets[0]?.write('HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\npoisoned')
    await until('the connection is closed', () => upstream.closed() === 1)
    expect(await textOf(await send(request(upstream)))).toBe('hello')
    expect(upstream.connections()).toBe(2)
  })

  it('closed together with its response serves no request that may not be repeated', async () => {
    const upstream = await server((socket) => socket.once('data', () => socket.end(hello)))
    const { send } = client()
    for (let count = 0; count < 20; count++) {
      expect(await textOf(await send(request(upstream, { method: 'POST', body: 'x' })))).toBe('hello')
    }
    expect(upstream.connections()).toBe(20)
  })

  it('is closed when unused for its time, or the time that the server announces', async () => {
    const keepAlive = 'HTTP/1.1 200 OK\r\nkeep-alive: max=5, timeout=3\r\ncontent-length: 0\r\n\r\n'
    for (const [response, connection] of [
      [hello, { key: 'short', keepAliveMs: 50 }],
      [keepAlive, undefined],
    ] as const) {
      const upstream = await server((socket) => socket.on('data', () => socket.write(response)))
      await textOf(await client().send(request(upstream, { connection })))
      await until('the connection is closed', () => upstream.closed() === 1)
    }
  })

  it('is not shared: each of many calls receives its own response', async () => {
    const random = seeded(7)
    const upstream = await server((socket) => unreliableEcho(socket, random))
    let active = 0
    const count = (by: number) => {
      active += by
    }
    const { send } = client({ maxConnections: 5, calls: { changed: count, refused() {} } })
    const results = await Promise.all(
      Array.from({ length: 400 }, async (_, index) => {
        const method = index % 3 === 0 ? 'POST' : 'GET'
        const text = await send(request(upstream, { method, path: `/${index}` }))
          .then(textOf)
          .catch(() => 'failed')
        return text === 'failed' || text === `/${index}` ? undefined : `${index}: ${text}`
      }),
    )
    expect(results.filter((wrong) => wrong !== undefined)).toEqual([])
    // The server detects a close later than the client.
    expect(upstream.most()).toBeLessThanOrEqual(10)
    expect(active).toBe(0)
  })
})

describe('an invalid response', () => {
  it.each([
    ['HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab', 'upstream_reset'],
    ['HTTP/1.1 200 OK\nx: y\n\n', 'upstream_reset'],
    ['220 mail.example.com ESMTP\r\n', 'upstream_reset'],
    [`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(70_000)}\r\n\r\n`, 'upstream_too_large'],
    [`HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(2_000)}\r\n`, 'upstream_too_large'],
    ['HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n', 'upstream_reset'],
    ['HTTP/1.1 103 Early\r\n\r\n'.repeat(101), 'upstream_invalid'],
  ])('fails the call: %j', async (response, code) => {
    const upstream = await server((socket) => socket.once('data', () => socket.write(response)))
    await expect(client().send(request(upstream))).rejects.toMatchObject({ code })
    await until('the connection is closed', () => upstream.closed() === 1)
  })

  it('fails a body whose head is delivered', async () => {
    const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n'
    const upstream = await server((socket) => socket.once('data', () => socket.write(`${head}x`)))
    const reply = await client().send(request(upstream))
    await expect(textOf(reply)).rejects.toMatchObject({ code: 'upstream_reset' })
    const whole = client().send(request(upstream, { acceptsWhole: true }))
    await expect(whole).rejects.toMatchObject({ code: 'upstream_reset' })
  })

  it('that ends early is never complete, whichever byte is the last', async () => {
    const responses = [
      'HTTP/1.1 200 OK\r\na: b\r\ncontent-length: 5\r\n\r\nhello',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nx: y\r\n\r\n',
    ]
    const { send } = client()
    for (const response of responses) {
      const cuts = await Promise.all(
        Array.from(response, async (_, end) => {
          const upstream = await server((socket) =>
            socket.once('data', () => socket.end(response.slice(0, end))),
          )
          return send(request(upstream, { acceptsWhole: end % 2 === 0 }))
            .then(textOf)
            .then(
              () => end,
              () => undefined,
            )
        }),
      )
      expect(cuts.filter((end) => end !== undefined)).toEqual([])
    }
  })

  it('is not a 100 that was not requested', async () => {
    const upstream = await server((socket) =>
      socket.once('data', () => socket.write(`HTTP/1.1 100 Continue\r\n\r\n${hello}`)),
    )
    expect(await textOf(await client().send(request(upstream)))).toBe('hello')
  })
})

describe('a request body', () => {
  it('shorter than declared fails the call', async () => {
    const upstream = await server((socket) => socket.resume())
    const body = pushed((sink) => {
      sink.write(Buffer.from('abc'))
      sink.end()
    })
    const call = client().send(
      request(upstream, { method: 'POST', body, headers: { 'content-length': '5' } }),
    )
    await expect(call).rejects.toMatchObject({ code: 'bad_request' })
    await until('the connection is closed', () => upstream.closed() === 1)
  })

  it.each([
    ['of no bytes has a length', [], 'content-length: 0\r\n\r\n'],
    [
      'of unknown length has chunks',
      ['abc', '', 'x'.repeat(20_000)],
      `transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n4e20\r\n${'x'.repeat(20_000)}\r\n0\r\n\r\n`,
    ],
  ])('that streams, %s', async (_, pieces, expected) => {
    let received = ''
    const upstream = await server((socket) =>
      socket.on('data', (bytes) => {
        received += String(bytes)
        if (received.endsWith(expected)) socket.write(hello)
      }),
    )
    const body = pushed((sink) => {
      for (const piece of pieces) sink.write(Buffer.from(piece))
      sink.end()
    })
    expect(await textOf(await client().send(request(upstream, { method: 'POST', body })))).toBe('hello')
    expect(received).toBe(
      `POST / HTTP/1.1\r\nhost: ${upstream.host}\r\nconnection: keep-alive\r\n${expected}`,
    )
  })

  it('that streams does not count towards the wait for the response while its sender is slow', async () => {
    const upstream = await server((socket) =>
      socket.on('data', (bytes) => String(bytes).endsWith('0\r\n\r\n') && socket.write(hello)),
    )
    const body = pushed(async (sink) => {
      sink.write(Buffer.from('abc'))
      await new Promise((resolve) => setTimeout(resolve, 600))
      sink.end()
    })
    const { send } = client({ firstByteTimeoutMs: 200 })
    expect(await textOf(await send(request(upstream, { method: 'POST', body })))).toBe('hello')
  })
})

describe('a response body', () => {
  it.each([
    ['a length', `content-length: ${12 * 70_000}\r\n\r\n`, (text: string) => text],
    [
      'chunks',
      'transfer-encoding: chunked\r\n\r\n',
      (text: string) => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`,
    ],
    ['the end of the connection', '\r\n', (text: string) => text],
  ])('with %s arrives complete at a reader that pauses, also behind a close', async (_, fields, framed) => {
    const text = 'hello world!'.repeat(70_000)
    const upstream = await server((socket) =>
      socket.once('data', () => socket.end(`HTTP/1.1 200 OK\r\n${fields}${framed(text)}`)),
    )
    const { body } = await client().send(request(upstream))
    expect(await slowly(body)).toBe(text)
  })

  it.each([
    ['before its head', '', 'upstream call timeout'],
    ['in its body', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe', 'upstream stopped sending'],
  ])('that stops %s fails the call in time', async (_, response, message) => {
    const upstream = await server((socket) => socket.once('data', () => socket.write(response)))
    const { send } = client({ firstByteTimeoutMs: 100, idleTimeoutMs: 100 })
    await expect(send(request(upstream)).then(textOf)).rejects.toMatchObject({
      code: 'upstream_timeout',
      message,
    })
    await until('the connection is closed', () => upstream.closed() === 1)
  })

  it('whose reader throws fails, and nothing else does', async () => {
    const upstream = await server((socket) => socket.on('data', () => socket.write(hello)))
    const { send } = client()
    const { body } = await send(request(upstream))
    const failed = Promise.withResolvers<Error>()
    const throwing = {
      write() {
        throw new Error('defect')
      },
      end() {},
      fail: failed.resolve,
    }
    if (!isSource(body)) throw new Error('no source')
    expect(() => body.start(throwing)).toThrow('defect')
    expect(await textOf(await send(request(upstream)))).toBe('hello')
  })
})

describe('closing the client', () => {
  it('fails waiting, queued and answered calls', async () => {
    const upstream = await server((socket) =>
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\n\r\nhe')),
    )
    const { send, close } = client({ maxConnections: 1 })
    const reply = await send(request(upstream))
    const queued = send(request(upstream)).catch((error: unknown) => error)
    const body = textOf(reply).catch((error: unknown) => error)
    await close()
    expect(await queued).toMatchObject({ code: 'upstream_connect' })
    expect(await body).toMatchObject({ code: 'upstream_reset' })
  })
})

function client(options: Partial<Http1ClientOptions> = {}) {
  const planes = { memory: createLocalMemory(), peers: createSinglePlane() }
  const created = createHttp1Client({
    connectTimeoutMs: 5_000,
    keepAliveMs: 10_000,
    firstByteTimeoutMs: 10_000,
    idleTimeoutMs: 10_000,
    maxPools: 1_000,
    unusedMs: 60_000,
    egress: anywhere,
    lookup: undefined,
    maxConnections: 100,
    shared: createSharedLimits({ ...planes, maxPools: 1_000, maxQueue: 1_000 }, () => {}),
    calls: { changed() {}, refused() {} },
    ...options,
  })
  endAfter('test', created.close)
  return created
}

function request({ origin }: { origin: string }, more: Partial<OutgoingRequest> = {}): OutgoingRequest {
  return { origin, path: '/', method: 'GET', headers: {}, body: undefined, ...more }
}

async function textOf({ body }: Reply): Promise<string> {
  return String(await readAll(body, 10_000_000, 'upstream_too_large'))
}

async function server(accept: (socket: Socket) => void) {
  const tracked = await track(createServer(accept))
  return { ...tracked, origin: `http://${tracked.host}` }
}

async function track(tcp: Server) {
  const open = new Set<Socket>()
  let connections = 0
  let most = 0
  tcp.on('connection', (socket: Socket) => {
    connections += 1
    open.add(socket)
    most = Math.max(most, open.size)
    socket.on('error', () => {})
    socket.on('close', () => open.delete(socket))
  })
  const port = await listening(tcp)
  endAfter('test', () => {
    for (const socket of open) socket.destroy()
    tcp.close()
  })
  return {
    host: `127.0.0.1:${port}`,
    connections: () => connections,
    closed: () => connections - open.size,
    most: () => most,
  }
}

/** Answers with the path of each request, and breaks, delays or ends some of its answers. */
function unreliableEcho(socket: Socket, random: () => number): void {
  let received = ''
  socket.on('data', (bytes) => {
    received += String(bytes)
    const end = received.indexOf('\r\n\r\n')
    if (end === -1) return
    const path = received.split(' ')[1] ?? ''
    received = received.slice(end + 4)
    const response = `HTTP/1.1 200 OK\r\ncontent-length: ${path.length}\r\n\r\n${path}`
    const chance = random()
    if (chance < 0.1) socket.destroy()
    else if (chance < 0.2) socket.end(response)
    else if (chance < 0.3) socket.write(`${response}HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\npoisoned`)
    else if (chance < 0.4) socket.end(response.slice(0, -1))
    else if (chance < 0.6) {
      socket.write(response.slice(0, 30))
      setTimeout(() => socket.write(response.slice(30)), 5)
    } else socket.write(response)
  })
}

function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

function pushed(run: (sink: BodySink) => unknown): BodySource {
  return {
    start: (sink) => void run(sink),
    resume() {},
    cancel() {},
  }
}

function endless(): BodySource {
  return pushed((sink) => sink.write(Buffer.from('abc')))
}

/** Reads a body in small steps: the sink is full after every piece. */
function slowly(body: Body): Promise<string> {
  if (!isSource(body)) throw new Error('no source')
  const text = Promise.withResolvers<string>()
  const pieces: Uint8Array[] = []
  body.start({
    write(bytes) {
      pieces.push(bytes)
      setImmediate(() => body.resume())
      return false
    },
    end: () => text.resolve(Buffer.concat(pieces).toString()),
    fail: text.reject,
  })
  return text.promise
}
