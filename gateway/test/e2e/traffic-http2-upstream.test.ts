import { once } from 'node:events'
import { connect as connectHttp2, createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { call, http2Client } from '../support/http-call.ts'
import { listening } from '../support/listening.ts'
import { sharedRouting } from '../support/traffic.ts'
import { until, within } from '../support/wait.ts'

const routing = sharedRouting()

/** The port of a gateway that forwards everything to the server over HTTP/2. */
async function before(server: Http2Server): Promise<number> {
  const host = `127.0.0.1:${await listening(server)}`
  endAfter('test', () => {
    server.close()
  })
  const { port } = await routing([{ backends: [{ host, policies: { http: { version: 'HTTP/2' } } }] }])
  return port
}

describe('a request to an HTTP/2 upstream', () => {
  it('gets there and back from clients of either version', async () => {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        response.writeHead(200, { 'x-version': request.httpVersion, 'x-got': Buffer.concat(chunks).length })
        response.addTrailers({ 'x-sum': 'two' })
        response.write('over HTTP/2 ')
        setTimeout(() => response.end('in parts'), 50)
      })
    })
    const port = await before(server)
    const first = await call(port, '/h2', {
      method: 'POST',
      body: 'x'.repeat(50_000),
      headers: { te: 'trailers' },
    })
    expect(first).toMatchObject({
      status: 200,
      text: 'over HTTP/2 in parts',
      headers: { 'x-version': '2.0', 'x-got': '50000' },
      trailers: { 'x-sum': 'two' },
    })
    const { ask } = http2Client(port)
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ask('/h2', { method: 'POST', body: 'x' })),
    )
    for (const answer of answers) expect(answer).toMatchObject({ status: 200, headers: { 'x-got': '1' } })
  })

  it('goes on in both directions at once between HTTP/2 clients and upstreams, as gRPC does', async () => {
    const calls = createServer()
    calls.on('stream', (stream: ServerHttp2Stream, headers) => {
      stream.on('error', () => {})
      if (headers[':path'] === '/refused') {
        stream.respond({ ':status': 200, 'grpc-status': '7', 'grpc-message': 'no' }, { endStream: true })
        return
      }
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.on('data', (chunk) => stream.write(`<${chunk}>`))
      stream.on('end', () => stream.end())
    })
    const port = await before(calls)
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    endAfter('test', () => session.destroy())
    const fields = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' }
    const stream = session.request({ ...fields, ':path': '/chat' })
    let received = ''
    let trailers: Record<string, unknown> = {}
    stream.on('data', (chunk) => {
      received += chunk
    })
    stream.on('trailers', (sent) => {
      trailers = sent
    })
    for (const message of ['one', 'two', 'three']) {
      stream.write(message)
      await until('the answer to the message', () => received.endsWith(`<${message}>`))
    }
    stream.end()
    await within('the end', once(stream, 'close'))
    expect(trailers).toMatchObject({ 'grpc-status': '0' })
    const refused = await http2Client(port).ask('/refused', {
      method: 'POST',
      headers: fields,
      body: 'x',
    })
    expect(refused).toMatchObject({ text: '', headers: { 'grpc-status': '7', 'grpc-message': 'no' } })
  })

  it('is retried where it was refused unread, with any method', async () => {
    let sessions = 0
    const turning = createServer((_, response) => response.end('served'))
    turning.on('session', (session) => {
      sessions += 1
      // The last stream it looked at is none (RFC 9113 section 6.8).
      if (sessions < 5) session.goaway(0, 0)
    })
    turning.on('stream', (stream) => stream.on('error', () => {}))
    const port = await before(turning)
    expect(await call(port, '/', { method: 'POST', body: 'order' })).toMatchObject({ text: 'served' })
    expect(sessions).toBe(5)
  })
})
