import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { describe, expect, it } from 'vitest'
import type { Reply } from '../../src/net/http-client/send.ts'
import { endAfter } from '../support/cleanup.ts'
import { bodyText, bodyWithTrailers, pushedBody, startEdge, text } from '../support/edge.ts'
import { rawConnect } from '../support/raw-http.ts'
import { until } from '../support/wait.ts'

const { NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants

function open(port: number): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${port}`)
  session.on('error', () => {})
  endAfter('test', () => session.destroy())
  return session
}

type Answered = {
  head: IncomingHttpHeaders
  body: string
  trailers: IncomingHttpHeaders | undefined
  hints: IncomingHttpHeaders[]
  code: number
}

function answered(stream: ClientHttp2Stream): Promise<Answered> {
  return new Promise((resolve) => {
    const answer: Answered = { head: {}, body: '', trailers: undefined, hints: [], code: 0 }
    stream.setEncoding('utf8')
    stream.on('response', (head) => {
      answer.head = head
    })
    stream.on('headers', (hint) => answer.hints.push(hint))
    stream.on('trailers', (trailers) => {
      answer.trailers = trailers
    })
    stream.on('data', (chunk) => {
      answer.body += chunk
    })
    stream.on('error', () => {})
    stream.on('close', () => resolve({ ...answer, code: stream.rstCode ?? 0 }))
  })
}

function get(port: number, headers: OutgoingHttpHeaders = {}): Promise<Answered> {
  return answered(open(port).request({ ':path': '/', ...headers }))
}

describe('an HTTP/2 request', () => {
  it('reaches the pipeline as HTTP/1 requests do', async () => {
    const { port, requests, deliveries } = await startEdge(() => text('hello', { 'x-answer': '1' }))
    const { head, body } = await get(port, { ':path': '/a?b=c', 'x-one': '1', cookie: ['a=1', 'b=2'] })
    expect(head).toMatchObject({ ':status': 200, 'x-answer': '1', 'content-length': '5' })
    expect(body).toBe('hello')
    expect(requests[0]).toMatchObject({
      method: 'GET',
      target: '/a?b=c',
      version: '2.0',
      connection: { scheme: 'http', serverName: undefined, address: '127.0.0.1', localPort: port },
      body: undefined,
      headers: { host: `127.0.0.1:${port}`, 'x-one': '1', cookie: 'a=1; b=2' },
    })
    expect(Object.keys(requests[0]?.headers ?? {}).filter((name) => name.startsWith(':'))).toEqual([])
    await until('the exchange ends', () => deliveries.length === 1)
    expect(deliveries[0]).toMatchObject({ complete: true, status: 200, bytesSent: 5 })
  })

  it('carries its body and trailers, and the answer its own', async () => {
    const { port, deliveries } = await startEdge(async ({ body }) => {
      const received = await bodyWithTrailers(body)
      const answer = pushedBody()
      answer.start = (sink) => {
        sink.write(Buffer.from(JSON.stringify(received)))
        sink.end({ 'x-sum': '7', 'content-length': '1' })
      }
      return { status: 200, headers: { 'transfer-encoding': 'chunked', connection: 'close' }, body: answer }
    })
    const stream = open(port).request(
      { ':method': 'POST', ':path': '/', te: 'trailers' },
      { waitForTrailers: true },
    )
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-check': '9', authorization: 'stolen' }))
    stream.end('abc')
    const { head, body, trailers } = await answered(stream)
    expect(JSON.parse(body)).toEqual({ text: 'abc', trailers: { 'x-check': '9' } })
    expect(Object.entries(trailers ?? {})).toEqual([['x-sum', '7']])
    expect(head).not.toHaveProperty('connection')
    expect(head).not.toHaveProperty('transfer-encoding')
    await until('the exchange ends', () => deliveries.length === 1)
    expect(deliveries[0]?.complete).toBe(true)
  })

  it('gets no trailers it does not read', async () => {
    const { port } = await startEdge(() => {
      const body = pushedBody()
      body.start = (sink) => sink.end({ 'x-sum': '7' })
      return { status: 200, headers: {}, body }
    })
    expect((await get(port)).trailers).toBeUndefined()
  })

  it('receives informational responses before the final one, and 100 only when the body is read', async () => {
    const { port } = await startEdge(async ({ informational, body }) => {
      informational?.(103, { link: '</a>', connection: 'close' })
      informational?.(103, { 'x-bad': 'a\0b\0' })
      return text(await bodyText(body))
    })
    const stream = open(port).request({ ':method': 'POST', ':path': '/', expect: '100-continue' })
    stream.on('continue', () => stream.end('continued'))
    const { body, hints } = await answered(stream)
    expect(body).toBe('continued')
    expect(hints.map((hint) => [hint[':status'], hint['link']])).toContainEqual([103, '</a>'])
    expect(JSON.stringify(hints)).not.toContain('x-bad')
  })

  it('for a head gets no body', async () => {
    const { port, deliveries } = await startEdge(() => text('hello'))
    const { head, body } = await get(port, { ':method': 'HEAD' })
    expect([head['content-length'], body]).toEqual(['5', ''])
    await until('the exchange ends', () => deliveries.length === 1)
    expect(deliveries[0]?.complete).toBe(true)
  })

  it('that is reset cancels the work begun for it', async () => {
    const answer = pushedBody()
    const { port, requests, deliveries } = await startEdge(() => ({ status: 200, headers: {}, body: answer }))
    const stream = open(port).request({ ':path': '/' })
    stream.on('error', () => {})
    await new Promise((resolve) => stream.once('response', resolve))
    stream.close(NGHTTP2_CANCEL)
    await until('the exchange ends', () => deliveries.length === 1)
    expect([answer.cancelled, requests[0]?.cancellation.cancelled]).toEqual([true, true])
    expect(deliveries[0]?.complete).toBe(false)
  })

  it.each([
    ['with an error', NGHTTP2_CANCEL],
    ['without one', NGHTTP2_NO_ERROR],
  ])('that is reset %s within its body does not look complete', async (_, code) => {
    const outcome = Promise.withResolvers<unknown>()
    const { port, requests } = await startEdge(async ({ body }) => {
      bodyText(body).then(outcome.resolve, outcome.resolve)
      return new Promise<Reply>(() => {})
    })
    const raw = await rawHttp2(port)
    raw.request(1, posting, { open: true })
    raw.frame(0, 0, 1, Buffer.from('half of i'))
    await until('the request arrives', () => requests.length === 1)
    raw.frame(3, 0, 1, Buffer.from([0, 0, 0, code]))
    expect(await outcome.promise).toMatchObject({ code: 'request_aborted' })
  })

  it('that is answered early stops the upload with NO_ERROR', async () => {
    const { port, deliveries } = await startEdge(() => ({ ...text('too large'), status: 413 }))
    const stream = open(port).request({ ':method': 'POST', ':path': '/' })
    stream.write('some of it')
    const { head, body, code } = await answered(stream)
    expect([head[':status'], body, code]).toEqual([413, 'too large', NGHTTP2_NO_ERROR])
    await until('the exchange ends', () => deliveries.length === 1)
    expect(deliveries[0]?.complete).toBe(true)
  })

  it('whose body takes too long is given up', async () => {
    const { port } = await startEdge(async ({ body }) => text(await bodyText(body)), {
      limits: { requestTimeoutMs: 200, headersTimeoutMs: 200 },
    })
    const stream = open(port).request({ ':method': 'POST', ':path': '/' })
    stream.write('some of it')
    expect((await answered(stream)).code).toBe(NGHTTP2_INTERNAL_ERROR)
  })

  it('that sends faster than it is read is slowed down', async () => {
    let received = 0
    const { port } = await startEdge(({ body }) => {
      body?.start({
        write(chunk) {
          received += chunk.byteLength
          return false
        },
        end() {},
        fail() {},
      })
      return new Promise<Reply>(() => {})
    })
    const stream = open(port).request({ ':method': 'POST', ':path': '/' })
    stream.on('error', () => {})
    stream.write(Buffer.alloc(10_000_000))
    await until('a part arrives', () => received > 0)
    await new Promise((resolve) => setTimeout(resolve, 400))
    expect(received).toBeLessThan(200_000)
  })
})

describe('an HTTP/2 answer', () => {
  it('waits for a client that reads slowly, and gives one up that reads nothing', async () => {
    const answer = pushedBody()
    const { port, deliveries } = await startEdge(() => ({ status: 200, headers: {}, body: answer }), {
      limits: { stalledReaderMs: 300 },
    })
    const stream = open(port).request({ ':path': '/' })
    stream.on('error', () => {})
    await until('the answer begins', () => answer.sink)
    const piece = Buffer.alloc(64 * 1024)
    while (answer.sink?.write(piece));
    await until('the exchange ends', () => deliveries.length === 1)
    expect(answer.cancelled).toBe(true)
    expect(deliveries[0]?.complete).toBe(false)
  })

  it('goes on when the client reads again', async () => {
    const answer = pushedBody()
    const { port } = await startEdge(() => ({ status: 200, headers: {}, body: answer }))
    const stream = open(port).request({ ':path': '/' })
    const sink = await until('the answer begins', () => answer.sink)
    while (sink.write(Buffer.alloc(64 * 1024)));
    expect(answer.resumed).toBe(0)
    stream.resume()
    await until('the source is resumed', () => answer.resumed > 0)
    const done = answered(stream)
    sink.end()
    expect((await done).code).toBe(NGHTTP2_NO_ERROR)
  })

  it('that waits often for its client leaves nothing behind of each wait', async () => {
    const warnings: Error[] = []
    const note = (warning: Error) => void warnings.push(warning)
    process.on('warning', note)
    endAfter('test', () => void process.off('warning', note))
    const answer = pushedBody()
    const { port } = await startEdge(() => ({ status: 200, headers: {}, body: answer }))
    const stream = open(port).request({ ':path': '/' })
    stream.resume()
    const sink = await until('the answer begins', () => answer.sink)
    for (let wait = 1; wait <= 15; wait++) {
      while (sink.write(Buffer.alloc(64 * 1024)));
      await until('the source is resumed', () => answer.resumed >= wait)
    }
    const done = answered(stream)
    sink.end()
    expect((await done).code).toBe(NGHTTP2_NO_ERROR)
    expect(warnings).toEqual([])
  })

  it('that breaks off does not look complete', async () => {
    const { port, deliveries } = await startEdge(() => {
      const body = pushedBody()
      body.start = (sink) => {
        sink.write(Buffer.from('half'))
        setTimeout(() => sink.fail(new Error('broken')), 20)
      }
      return { status: 200, headers: {}, body }
    })
    expect((await get(port)).code).toBe(NGHTTP2_INTERNAL_ERROR)
    await until('the exchange ends', () => deliveries.length === 1)
    expect(deliveries[0]?.complete).toBe(false)
  })

  it.each([
    ['a NUL, which would begin another field', { 'x-bad': 'a\0\0x-injected\0b' }],
    ['a line break', { 'x-bad': 'a\r\nx-injected: b' }],
    ['a name that is none', { 'x bad': 'a' }],
  ])('with %s is not sent', async (_, headers) => {
    const { port, deliveries } = await startEdge(() => text('hello', headers as Record<string, string>))
    const { head, code } = await get(port)
    expect(head).toEqual({})
    expect(code).toBe(NGHTTP2_INTERNAL_ERROR)
    await until('the exchange ends', () => deliveries.length === 1)
    expect(deliveries[0]).toMatchObject({ complete: false, failure: expect.any(Error) })
  })

  it('that fails altogether ends its stream and no other', async () => {
    const { port, deliveries } = await startEdge(({ target }) => {
      if (target === '/bad') throw new Error('broken')
      return text('hello')
    })
    const session = open(port)
    const bad = answered(session.request({ ':path': '/bad' }))
    const good = answered(session.request({ ':path': '/good' }))
    expect([(await bad).code, (await good).body]).toEqual([NGHTTP2_INTERNAL_ERROR, 'hello'])
    await until('the exchanges end', () => deliveries.length === 2)
    expect(deliveries.some(({ failure }) => failure instanceof Error)).toBe(true)
  })

  it('of several values keeps them apart', async () => {
    const { port } = await startEdge(() => text('hello', { 'set-cookie': ['a=1', 'b=2'] }))
    expect((await get(port)).head['set-cookie']).toEqual(['a=1', 'b=2'])
  })
})

describe('an HTTP/2 request that would mean two things', () => {
  it.each([
    ['another host than authority', { ':authority': 'a.test', host: 'b.test' }, 400],
    ['user information', { ':authority': 'user@a.test' }, 400],
    ['CONNECT', { ':method': 'CONNECT', ':authority': 'a.test:22' }, 405],
    ['a space in the target', { ':path': '/a HTTP/1.1\r\nx: y' }, 400],
    ['a long target', { ':path': `/${'a'.repeat(20_000)}` }, 414],
  ])('by %s is refused', async (_, headers, status) => {
    const { port, requests } = await startEdge(() => text('hello'))
    const all: OutgoingHttpHeaders = { ...headers }
    const stream = open(port).request(all[':method'] === 'CONNECT' ? all : { ':path': '/', ...all })
    const answer = await answered(stream)
    // The library itself resets streams that are malformed at its level.
    expect(answer.head[':status'] ?? status).toBe(status)
    expect(requests).toEqual([])
  })

  it('keeps both of two credentials, so that neither is believed', async () => {
    const { port, requests } = await startEdge(() => text('hello'))
    const raw = await rawHttp2(port)
    raw.request(1, [
      ...pseudo,
      ['authorization', 'Bearer 1'],
      ['authorization', 'Bearer 2'],
      ['constructor', 'x'],
      ['__proto__', 'x'],
    ])
    await until('the request arrives', () => requests.length === 1)
    expect(requests[0]?.headers['authorization']).toBe('Bearer 1, Bearer 2')
    expect(Object.hasOwn(requests[0]?.headers ?? {}, 'constructor')).toBe(true)
    expect(requests[0]?.headers['constructor']).toBe('x')
  })

  it.each([
    ['connection', ['connection', 'x-private']],
    ['transfer-encoding', ['transfer-encoding', 'chunked']],
    ['upgrade', ['upgrade', 'websocket']],
    ['two paths', [':path', '/admin']],
  ] as const)('by %s is not forwarded', async (_, field) => {
    const { port, requests } = await startEdge(() => text('hello'))
    const raw = await rawHttp2(port)
    raw.request(1, [...pseudo, field])
    raw.request(3, [...pseudo, ['x-good', '1']])
    await until('the good one arrives', () => requests.length > 0 || raw.closed())
    expect(requests.map(({ headers }) => headers['x-good'] ?? 'bad').filter((good) => good !== '1')).toEqual(
      [],
    )
  })

  it.each([
    ['a line break in its value', ['x-a', 'b\r\nx-c: d']],
    ['a NUL in its value', ['x-a', 'b\0c']],
    ['a capital in its name', ['X-A', 'b']],
  ] as const)('by %s loses that field at least', async (_, field) => {
    const { port, requests } = await startEdge(() => text('hello'))
    const raw = await rawHttp2(port)
    raw.request(1, [...pseudo, field])
    raw.request(3, [...pseudo, ['x-good', '1']])
    await until(
      'the good one arrives',
      () => requests.some(({ headers }) => headers['x-good']) || raw.closed(),
    )
    expect(
      requests.flatMap(({ headers }) => Object.keys(headers)).filter((name) => /^x-[ac]/i.test(name)),
    ).toEqual([])
  })

  it.each([
    ['longer', '2'],
    ['shorter', '9'],
  ])('by a body %s than its length does not look complete', async (_, length) => {
    const outcome = Promise.withResolvers<unknown>()
    const { port, requests } = await startEdge(async ({ body }) => {
      bodyText(body).then(outcome.resolve, outcome.resolve)
      return new Promise<Reply>(() => {})
    })
    const raw = await rawHttp2(port)
    raw.request(1, [...posting, ['content-length', length]], { open: true })
    await until('the request arrives', () => requests.length === 1)
    raw.frame(0, 1, 1, Buffer.from('hello'))
    expect(await outcome.promise).toMatchObject({ code: 'request_aborted' })
  })
})

describe('an HTTP/2 connection', () => {
  it('with more headers than the limit serves none of that request', async () => {
    const { port, requests } = await startEdge(() => text('hello'), { limits: { maxHeaderBytes: 2000 } })
    const { head, code } = await get(port, { 'x-long': 'a'.repeat(3000) })
    // Until the client has acknowledged the limit, it receives an error; after that the library resets the
    // stream.
    const told = String(head[':status'] ?? `reset ${code}`)
    expect(['431', `reset ${constants.NGHTTP2_ENHANCE_YOUR_CALM}`]).toContain(told)
    expect(requests).toEqual([])
  })

  it('has only so many streams at once', async () => {
    const { port, requests } = await startEdge(() => new Promise<Reply>(() => {}))
    const raw = await rawHttp2(port)
    for (let id = 1; id < 400; id += 2) raw.request(id, pseudo)
    await until('streams are opened', () => requests.length >= 100)
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(requests.length).toBe(100)
  })

  it('that opens streams only to reset them is closed', async () => {
    const { port, requests } = await startEdge(() => new Promise<Reply>(() => {}))
    const raw = await rawHttp2(port)
    for (let id = 1; id < 8000 && !raw.closed(); id += 2) {
      raw.request(id, pseudo)
      raw.frame(3, 0, id, Buffer.from([0, 0, 0, 8]))
      if (id % 500 === 1) await new Promise((resolve) => setImmediate(resolve))
    }
    await until('it is closed', raw.closed)
    expect(requests.length).toBeLessThan(2000)
  })

  it.each([
    ['settings', 4, 0],
    ['pings', 6, 8],
  ])('flooded with %s whose answers it does not read is closed', async (_, type, bytes) => {
    const { port } = await startEdge(() => text('hello'))
    const raw = await rawHttp2(port)
    raw.connection.socket.pause()
    const flood = Buffer.concat(
      Array.from({ length: 20_000 }, () => frameOf(type, 0, 0, Buffer.alloc(bytes))),
    )
    for (let round = 0; round < 50 && !raw.closed(); round++) {
      raw.connection.socket.write(flood)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    raw.connection.socket.resume()
    await until('it is closed', raw.closed)
  })

  it('that the client ends takes its streams with it', async () => {
    const { port, requests, deliveries } = await startEdge(() => new Promise<Reply>(() => {}))
    const raw = await rawHttp2(port)
    raw.request(1, pseudo)
    await until('the request arrives', () => requests.length === 1)
    raw.connection.socket.end()
    await until('it is cancelled', () => requests[0]?.cancellation.cancelled)
    await until('the connection is closed', raw.closed)
    expect(deliveries).toEqual([])
  })

  it('that does nothing is closed after a while', async () => {
    const { port } = await startEdge(() => text('hello'), { limits: { keepAliveMs: 200 } })
    const session = open(port)
    const stream = session.request({ ':path': '/' })
    await answered(stream)
    await until('it is closed', () => session.closed || session.destroyed)
  })

  it('finishes its streams in a drain, and opens no more', async () => {
    const answer = Promise.withResolvers<Reply>()
    const { port, server, requests } = await startEdge(() => answer.promise)
    const session = open(port)
    const goaways: number[] = []
    session.on('goaway', (code) => goaways.push(code))
    const stream = answered(session.request({ ':path': '/' }))
    await until('the request arrives', () => requests.length === 1)
    const drained = server.drain()
    await until('it is told', () => goaways.length > 0)
    answer.resolve(text('finished'))
    expect((await stream).body).toBe('finished')
    await drained
    expect(goaways).toEqual(goaways.map(() => NGHTTP2_NO_ERROR))
  })

  it('ends at once when the server closes', async () => {
    const { port, server, requests, deliveries } = await startEdge(() => new Promise<Reply>(() => {}))
    const stream = answered(open(port).request({ ':path': '/' }))
    await until('the request arrives', () => requests.length === 1)
    server.close()
    await stream
    await until('it is cancelled', () => requests[0]?.cancellation.cancelled)
    expect(deliveries).toEqual([])
  })
})

type Field = readonly [name: string, value: string]

const pseudo: readonly Field[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':path', '/'],
  [':authority', 'h.test'],
]

const posting: readonly Field[] = [[':method', 'POST'], ...pseudo.slice(1)]

function frameOf(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** RFC 7541 section 6.2.2: literals without indexing, as plain strings shorter than 127 bytes. */
function fieldBlock(fields: readonly Field[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([name, value]) => [
      Buffer.from([0, name.length]),
      Buffer.from(name, 'latin1'),
      Buffer.from([value.length]),
      Buffer.from(value, 'latin1'),
    ]),
  )
}

/** Frames that no well-behaved client can be made to send. */
async function rawHttp2(port: number) {
  const connection = await rawConnect(port)
  let closed = false
  connection.socket.on('close', () => {
    closed = true
  })
  connection.socket.on('end', () => {
    closed = true
  })
  connection.send('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  const frame = (type: number, flags: number, stream: number, payload: Uint8Array) =>
    connection.send(frameOf(type, flags, stream, payload))
  frame(4, 0, 0, Buffer.alloc(0))
  return {
    connection,
    frame,
    closed: () => closed || connection.socket.destroyed,
    request: (stream: number, fields: readonly Field[], { open = false } = {}) =>
      frame(1, open ? 4 : 5, stream, fieldBlock(fields)),
  }
}
