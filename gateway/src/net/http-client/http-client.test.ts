import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server, createSecureServer, type ServerHttp2Stream } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createCancellation } from '../../lib/cancellation.ts'
import { type Body, type BodySink, type BodySource, readAll } from '../http/body.ts'
import { createHttpClient, type HttpClient, type HttpClientOptions } from './http-client.ts'
import type { OutgoingRequest, Reply } from './send.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

describe('an HTTP client', () => {
  it('streams a request body, in chunks without a known length', async () => {
    const { origin, seen } = await echoServer()
    const body = pushedBody()
    const answer = ask({ origin, method: 'POST', body: body.source })
    await body.started
    body.write('one ')
    await until(() => seen.text === 'one ')
    body.write('two')
    body.end()
    expect(await textOf(await answer)).toBe('one two')
    expect(seen.headers['transfer-encoding']).toBe('chunked')
  })

  it('sends the known length of a streaming body', async () => {
    const { origin, seen } = await echoServer()
    const body = pushedBody()
    const answer = ask({ origin, method: 'PUT', headers: { 'content-length': '3' }, body: body.source })
    await body.started
    body.write('abc')
    body.end()
    expect(await textOf(await answer)).toBe('abc')
    expect(seen.headers['content-length']).toBe('3')
    expect(seen.headers['transfer-encoding']).toBeUndefined()
  })

  it('rejects a body longer than its content-length, so that it cannot contain another request', async () => {
    const { origin, seen } = await echoServer()
    const body = pushedBody()
    const answer = ask({ origin, method: 'POST', headers: { 'content-length': '3' }, body: body.source })
    await body.started
    body.write('abcGET / HTTP/1.1\r\n\r\n')
    body.end()
    await expect(answer).rejects.toMatchObject({ code: 'bad_request' })
    expect(seen.text).toBe('')
  })

  it('pauses the body while the upstream does not read', async () => {
    const origin = await tcpServer((socket) => socket.pause())
    const body = pushedBody()
    // Long enough for a busy machine to fill the buffers first.
    const answer = ask({ origin, method: 'POST', body: body.source, firstByteTimeoutMs: 3_000 })
    answer.catch(() => {})
    await body.started
    const chunk = Buffer.alloc(64 * 1024)
    let written = 0
    while (written < 1_000 && body.writeBytes(chunk)) {
      written += 1
      await tick()
    }
    expect(written).toBeLessThan(1_000)
    await expect(answer).rejects.toMatchObject({ code: 'upstream_timeout' })
    expect(body.cancelled()).toBe(true)
  })

  it('stops reading the body after an early response', async () => {
    const origin = await httpServer((_, response) => {
      response.writeHead(413, { connection: 'close' }).end('too much')
    })
    const body = pushedBody()
    const answer = ask({ origin, method: 'POST', body: body.source })
    await body.started
    body.write('a first piece')
    const reply = await answer
    expect(reply.status).toBe(413)
    expect(await textOf(reply)).toBe('too much')
    await until(() => body.cancelled())
  })

  it('aborts the request when its body fails', async () => {
    let aborted = false
    const origin = await httpServer((request) => {
      request.on('error', () => {
        aborted = true
      })
      request.resume()
    })
    const body = pushedBody()
    const answer = ask({ origin, method: 'POST', body: body.source })
    await body.started
    body.write('half')
    await tick()
    body.fail(new Error('gone'))
    await expect(answer).rejects.toThrow()
    await until(() => aborted)
  })

  it('aborts the upstream call when the client disconnects during its body', async () => {
    let aborted = false
    const origin = await httpServer((request) => {
      request.on('error', () => {
        aborted = true
      })
      request.resume()
    })
    const body = pushedBody()
    const cancellation = createCancellation()
    const answer = ask({ origin, method: 'POST', body: body.source, cancellation })
    await body.started
    body.write('half')
    await tick(20)
    cancellation.cancel()
    await expect(answer).rejects.toMatchObject({ code: 'request_aborted' })
    await until(() => aborted && body.cancelled())
  })

  it('does not read the body for an unreachable upstream', async () => {
    const body = pushedBody()
    const answer = ask({ origin: await closedOrigin(), method: 'POST', body: body.source })
    await expect(answer).rejects.toMatchObject({ code: 'upstream_connect' })
    expect(body.wasStarted()).toBe(false)
    expect(body.cancelled()).toBe(true)
  })

  it('reports informational responses before the final one', async () => {
    const origin = await httpServer((_, response) => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload' })
      response.end('done')
    })
    const heard: unknown[] = []
    const reply = await ask({
      origin,
      onInformational: (status, headers) => heard.push([status, headers['link']]),
    })
    expect(await textOf(reply)).toBe('done')
    expect(heard).toEqual([[103, '</style.css>; rel=preload']])
  })

  it.each([
    ['HTTP/1.1', undefined],
    ['HTTP/2', '2' as const],
  ])('gives up an upstream of %s that sends 1xx answers without end', async (_, version) => {
    let ended = false
    const flood = (write: () => unknown) => {
      const timer = setInterval(() => {
        for (let count = 0; count < 20 && !ended; count++) write()
      }, 1)
      return () => {
        ended = true
        clearInterval(timer)
      }
    }
    const plain = createTcpServer((socket) => {
      socket.once('data', () => {
        socket.on(
          'close',
          flood(() => socket.write('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n')),
        )
      })
    })
    const multiplexed = createHttp2Server()
    multiplexed.on('stream', (stream: ServerHttp2Stream) => {
      stream.on('error', () => {})
      const hint = { ':status': 103, link: '</a>' }
      stream.on(
        'close',
        flood(() => stream.destroyed || stream.additionalHeaders(hint)),
      )
    })
    const origin = await listening(version === undefined ? plain : multiplexed)
    let heard = 0
    const asked = ask({
      origin,
      onInformational: () => {
        heard += 1
      },
      ...(version === undefined ? {} : { connection: { key: 'h2', version } }),
    })
    await expect(asked).rejects.toMatchObject({ code: 'upstream_invalid' })
    expect(heard).toBe(100)
    await until(() => ended)
  })

  it('rejects calls beyond the connections to an origin and its queue, until one is over', async () => {
    const waiting: ServerResponse[] = []
    let isSlow = true
    const origin = await httpServer((_, response) => {
      if (isSlow) waiting.push(response)
      else response.end('done')
    })
    let underWay = 0
    let refused = 0
    const calls = {
      changed(by: number) {
        underWay += by
      },
      refused() {
        refused += 1
      },
    }
    const { send } = client({ maxConnections: 2, maxQueue: 1, calls })
    const asked = [1, 2, 3].map(async () => textOf(await send(outgoing({ origin }))))
    await expect(send(outgoing({ origin }))).rejects.toMatchObject({ code: 'upstream_connect' })
    expect([underWay, refused]).toEqual([3, 1])
    await until(() => waiting.length === 2)
    isSlow = false
    for (const response of waiting) response.end('done')
    expect(await Promise.all(asked)).toEqual(['done', 'done', 'done'])
    expect(waiting).toHaveLength(2)
    expect(underWay).toBe(0)
    expect(await textOf(await send(outgoing({ origin })))).toBe('done')
  })

  it('removes cancelled calls from the queue', async () => {
    const waiting: ServerResponse[] = []
    const origin = await httpServer((_, response) => waiting.push(response))
    let underWay = 0
    const calls = {
      changed(by: number) {
        underWay += by
      },
      refused() {},
    }
    const { send } = client({ maxConnections: 1, maxQueue: 2, calls })
    const first = send(outgoing({ origin }))
    const leaving = [1, 2].map(async () => {
      const cancellation = createCancellation()
      const call = send(outgoing({ origin, method: 'POST', body: Buffer.from('body'), cancellation }))
      cancellation.cancel()
      await expect(call).rejects.toMatchObject({ code: 'request_aborted' })
    })
    await Promise.all(leaving)
    expect(underWay).toBe(1)
    const next = send(outgoing({ origin }))
    await until(() => waiting.length === 1)
    waiting[0]?.end('done')
    expect(await textOf(await first)).toBe('done')
    await until(() => waiting.length === 2)
    waiting[1]?.end('next')
    expect(await textOf(await next)).toBe('next')
    expect(underWay).toBe(0)
    expect(waiting).toHaveLength(2)
  })

  it('forwards trailers of a response', async () => {
    const origin = await httpServer((_, response) => {
      response.writeHead(200, { trailer: 'x-sum' })
      response.write('body')
      response.addTrailers({ 'x-sum': '42' })
      response.end()
    })
    const reply = await ask({ origin, acceptsWhole: true })
    const { text, trailers } = await readWithTrailers(reply.body)
    expect(text).toBe('body')
    expect(trailers).toMatchObject({ 'x-sum': '42' })
  })

  it('buffers a body received in one chunk, where accepted', async () => {
    const origin = await httpServer((_, response) => response.end('small'))
    const whole = await ask({ origin, acceptsWhole: true })
    expect(Buffer.from(whole.body as Uint8Array).toString()).toBe('small')
    const source = await ask({ origin })
    expect(source.body).not.toBeInstanceOf(Uint8Array)
  })

  it('streams later chunks, also where a buffered body is accepted', async () => {
    const origin = await httpServer(async (_, response) => {
      response.write('one ')
      await tick(20)
      response.end('two')
    })
    const reply = await ask({ origin, acceptsWhole: true })
    expect(reply.body).not.toBeInstanceOf(Uint8Array)
    expect(await textOf(reply)).toBe('one two')
  })

  it('preserves the content-length of a response to HEAD', async () => {
    const origin = await httpServer((_, response) => {
      response.writeHead(200, { 'content-length': '1234' }).end()
    })
    const reply = await ask({ origin, method: 'HEAD', acceptsWhole: true })
    expect(reply.headers['content-length']).toBe('1234')
    expect(await textOf(reply)).toBe('')
  })

  it('counts the wait for a connection towards the limit for the first byte', async () => {
    const origin = await httpServer(() => {})
    const connection = { key: 'one at a time', maxConnections: 1 }
    const send = client().send
    const first = send(outgoing({ origin, connection, firstByteTimeoutMs: 400 }))
    const second = send(outgoing({ origin, connection, firstByteTimeoutMs: 100 }))
    await expect(second).rejects.toMatchObject({ code: 'upstream_timeout' })
    await expect(first).rejects.toMatchObject({ code: 'upstream_timeout' })
  })

  it('rejects a path that is invalid in HTTP', async () => {
    const { origin } = await echoServer()
    await expect(ask({ origin, path: '/a b\r\nx: y' })).rejects.toMatchObject({ code: 'bad_request' })
  })
})

describe('an upgrade', () => {
  it('becomes a tunnel in both directions', async () => {
    const server = createServer()
    server.on('upgrade', (_, socket: Socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nhello ')
      socket.pipe(socket)
    })
    const reply = await ask({ origin: await listening(server), upgrade: 'echo' })
    expect(reply.status).toBe(101)
    expect(reply.headers['upgrade']).toBe('echo')
    const tunnel = reply.tunnel
    if (!tunnel) throw new Error('no tunnel')
    let text = ''
    tunnel.on('data', (chunk) => {
      text += String(chunk)
    })
    tunnel.write('you')
    await until(() => text === 'hello you')
    tunnel.end()
    await once(tunnel, 'close')
  })

  it('is an ordinary response when declined', async () => {
    const origin = await httpServer((_, response) => response.writeHead(403).end('no'))
    const reply = await ask({ origin, upgrade: 'websocket' })
    expect(reply.tunnel).toBeUndefined()
    expect([reply.status, await textOf(reply)]).toEqual([403, 'no'])
  })

  it('closes the tunnel when the client has disconnected meanwhile', async () => {
    let closed = false
    const server = createServer()
    server.on('upgrade', async (_, socket: Socket) => {
      socket.on('error', () => {})
      socket.on('end', () => {
        closed = true
      })
      socket.resume()
      await tick(50)
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n')
    })
    const cancellation = createCancellation()
    const answer = ask({ origin: await listening(server), upgrade: 'echo', cancellation })
    await tick(20)
    cancellation.cancel()
    await expect(answer).rejects.toMatchObject({ code: 'request_aborted' })
    await until(() => closed)
  })
})

describe('a kept-alive connection', () => {
  /** Responds to the first request of each connection and closes the connection at the second. */
  async function closesAtReuse(): Promise<{ origin: string; requests(): string[] }> {
    const requests: string[] = []
    const origin = await tcpServer((socket) => {
      let count = 0
      socket.on('error', () => {})
      socket.on('data', (bytes) => {
        requests.push(String(bytes).split(' ')[0] ?? '')
        count += 1
        if (count > 1) socket.destroy()
        else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
      })
    })
    return { origin, requests: () => requests }
  }

  it.each(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])(
    'and closed at its reuse is replaced once for %s',
    async (method) => {
      const { origin, requests } = await closesAtReuse()
      const { send } = client()
      await textOf(await send(outgoing({ origin })))
      await tick(20)
      await tick(20)
      const reply = await send(outgoing({ origin, method, ...(method === 'PUT' ? { body: 'x' } : {}) }))
      expect(reply.status).toBe(200)
      expect(requests()).toEqual(['GET', method, method])
    },
  )

  it('closed at its reuse fails a POST, which may have been processed', async () => {
    const { origin, requests } = await closesAtReuse()
    const { send } = client()
    await textOf(await send(outgoing({ origin })))
    await tick(20)
    const answer = send(outgoing({ origin, method: 'POST', body: 'x' }))
    await expect(answer).rejects.toMatchObject({ code: 'upstream_reset' })
    expect(requests()).toEqual(['GET', 'POST'])
  })

  it('is not retried when it was new', async () => {
    let requests = 0
    const origin = await tcpServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', () => {
        requests += 1
        socket.destroy()
      })
    })
    await expect(ask({ origin })).rejects.toMatchObject({ code: 'upstream_reset' })
    expect(requests).toBe(1)
  })

  it('is not retried after the first byte of the response', async () => {
    let requests = 0
    const origin = await tcpServer((socket) => {
      let count = 0
      socket.on('error', () => {})
      socket.on('data', () => {
        requests += 1
        count += 1
        if (count === 1) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
        else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf', () => socket.destroy())
      })
    })
    const { send } = client()
    await textOf(await send(outgoing({ origin })))
    await tick(20)
    const reply = await send(outgoing({ origin }))
    await expect(textOf(reply)).rejects.toMatchObject({ code: 'upstream_reset' })
    expect(requests).toBe(2)
  })
})

describe('pools', () => {
  it('close when their origin is unused', async () => {
    const sockets = new Set<Socket>()
    const origin = await httpServer((request, response) => {
      sockets.add(request.socket)
      response.end('ok')
    })
    const { send } = client({ unusedPoolMs: 50 })
    await textOf(await send(outgoing({ origin })))
    await until(() => [...sockets].every((socket) => socket.destroyed))
    expect(await textOf(await send(outgoing({ origin })))).toBe('ok')
  })

  it('stay open while a response streams', async () => {
    const origin = await httpServer(async (_, response) => {
      response.write('slow ')
      await tick(300)
      response.end('end')
    })
    const { send } = client({ unusedPoolMs: 20 })
    expect(await textOf(await send(outgoing({ origin })))).toBe('slow end')
  })

  it('are bounded in number, and calls in flight at a closed one complete', async () => {
    const servers = await Promise.all(
      Array.from({ length: 5 }, () =>
        httpServer(async (_, response) => {
          response.write('part ')
          await tick(100)
          response.end('end')
        }),
      ),
    )
    const { send } = client({ maxPools: 2 })
    const texts = servers.map(async (origin) => textOf(await send(outgoing({ origin }))))
    expect(await Promise.all(texts)).toEqual(servers.map(() => 'part end'))
  })

  it('closed earlier end with the client', async () => {
    const hanging = () =>
      httpServer((_, response) => {
        response.write('begun')
      })
    const { send, close } = client({ maxPools: 1 })
    const replies = await Promise.all([hanging(), hanging(), hanging()])
      .then((origins) => origins.map((origin) => send(outgoing({ origin, idleTimeoutMs: 60_000 }))))
      .then((calls) => Promise.all(calls))
    const texts = Promise.allSettled(replies.map(textOf))
    await close()
    expect(await texts).toEqual(
      replies.map(() => ({
        status: 'rejected',
        reason: expect.objectContaining({ code: 'upstream_reset' }),
      })),
    )
  })

  it('open no more connections than a connection setting allows', async () => {
    let open = 0
    let most = 0
    const origin = await httpServer(async (_, response) => {
      open += 1
      most = Math.max(most, open)
      await tick(10)
      open -= 1
      response.end('ok')
    })
    const { send } = client()
    const connection = { key: 'two', maxConnections: 2 }
    await Promise.all(
      Array.from({ length: 10 }, async () => textOf(await send(outgoing({ origin, connection })))),
    )
    expect(most).toBe(2)
  })
})

describe('upstream TLS', () => {
  let certificates: Certificates
  beforeAll(() => {
    certificates = createCertificates()
  })
  afterAll(() => certificates.remove())

  it('trusts the configured authority only', async () => {
    const origin = await httpsServer(certificates)
    await expect(ask({ origin })).rejects.toMatchObject({ code: 'upstream_connect' })
    const reply = await ask({ origin, connection: { key: 'ca', tls: { ca: certificates.ca } } })
    expect(await textOf(reply)).toBe('secure')
  })

  it('requests and verifies the configured name, independent of the host header', async () => {
    const names: (string | false | undefined)[] = []
    const origin = await httpsServer(certificates, (name) => names.push(name))
    const { ca } = certificates
    const wrong = { key: 'wrong', tls: { ca, serverName: 'other.test' } }
    await expect(ask({ origin, connection: wrong })).rejects.toMatchObject({ code: 'upstream_connect' })
    const right = { key: 'right', tls: { ca, serverName: 'upstream.test' } }
    const { send } = client()
    for (const host of ['a.test', 'b.test']) {
      const reply = await send(outgoing({ origin, connection: right, headers: { host } }))
      expect(await textOf(reply)).toBe('secure')
    }
    expect(names).toEqual(['other.test', 'upstream.test'])
  })

  it('does not verify the name of the host header', async () => {
    const port = new URL(await httpsServer(certificates)).port
    const { ca } = certificates
    const origin = `https://localhost:${port}`
    const answer = ask({ origin, connection: { key: 'ca', tls: { ca } }, headers: { host: 'upstream.test' } })
    await expect(answer).rejects.toMatchObject({ code: 'upstream_connect' })
  })

  it('accepts other names, or any certificate, if configured', async () => {
    const port = new URL(await httpsServer(certificates)).port
    const { ca } = certificates
    const origin = `https://localhost:${port}`
    const bears = { key: 'names', tls: { ca, names: ['other.test', 'upstream.test'] } }
    expect((await ask({ origin, connection: bears })).status).toBe(200)
    const lacks = { key: 'other names', tls: { ca, names: ['other.test'] } }
    await expect(ask({ origin, connection: lacks })).rejects.toMatchObject({ code: 'upstream_connect' })
    const anyName = { key: 'any-name', tls: { ca, insecure: 'any-name' as const } }
    expect((await ask({ origin, connection: anyName })).status).toBe(200)
    const unknown = { key: 'unknown', tls: { insecure: 'any-name' as const } }
    await expect(ask({ origin, connection: unknown })).rejects.toMatchObject({ code: 'upstream_connect' })
    const any = { key: 'any', tls: { insecure: 'any' as const } }
    expect((await ask({ origin, connection: any })).status).toBe(200)
  })

  it('sends its own certificate', async () => {
    const { ca, cert, key } = certificates
    const server = createHttpsServer({ cert, key, ca, requestCert: true }, (_, response) =>
      response.end('known'),
    )
    const origin = await listening(server, 'https')
    await expect(ask({ origin, connection: { key: 'none', tls: { ca } } })).rejects.toThrow()
    const reply = await ask({ origin, connection: { key: 'own', tls: { ca, cert, key } } })
    expect(await textOf(reply)).toBe('known')
  })

  it('uses HTTP/2 if configured, and upgrades over HTTP/1.1', async () => {
    const { ca, cert, key } = certificates
    const server = createSecureServer({ cert, key, allowHTTP1: true }, (request, response) =>
      response.end(request.httpVersion),
    )
    const origin = await listening(server, 'https')
    const http2 = { key: 'h2', version: '2' as const, tls: { ca } }
    expect(await textOf(await ask({ origin, connection: http2 }))).toBe('2.0')
    const http1 = { key: 'h1', tls: { ca } }
    expect(await textOf(await ask({ origin, connection: http1 }))).toBe('1.1')
    expect(await textOf(await ask({ origin, connection: http2, upgrade: 'websocket' }))).toBe('1.1')
  })
})

describe('HTTP/2 with prior knowledge', () => {
  it('transfers bodies in both directions, with many calls on one connection', async () => {
    let sessions = 0
    const server = createHttp2Server((request, response) => {
      request.pipe(response)
    })
    server.on('session', (session) => {
      sessions += 1
      closers.push(() => session.destroy())
    })
    const origin = await listening(server)
    const { send } = client()
    const connection = { key: 'h2c', version: '2' as const }
    const texts = Array.from({ length: 20 }, async (_, index) => {
      const body = pushedBody()
      const answer = send(outgoing({ origin, connection, method: 'POST', body: body.source }))
      await body.started
      body.write(`call ${index} `)
      await tick()
      body.write('end')
      body.end()
      return textOf(await answer)
    })
    expect(await Promise.all(texts)).toEqual(texts.map((_, index) => `call ${index} end`))
    expect(sessions).toBe(1)
  })

  it('forwards trailers', async () => {
    const server = createHttp2Server()
    server.on('stream', (stream: ServerHttp2Stream) => {
      stream.respond({ ':status': 200 }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end('message')
    })
    server.on('session', (session) => closers.push(() => session.destroy()))
    const origin = await listening(server)
    const reply = await ask({ origin, connection: { key: 'h2c', version: '2' }, acceptsWhole: true })
    const { text, trailers } = await readWithTrailers(reply.body)
    expect(text).toBe('message')
    expect(trailers).toMatchObject({ 'grpc-status': '0' })
  })
})

describe('failing HTTP/2', () => {
  const connection = { key: 'h2c', version: '2' as const }

  async function http2Origin(onStream: (stream: ServerHttp2Stream) => void): Promise<string> {
    const server = createHttp2Server()
    server.on('stream', (stream: ServerHttp2Stream) => {
      stream.on('error', () => {})
      onStream(stream)
    })
    server.on('session', (session) => closers.push(() => session.destroy()))
    return listening(server)
  }

  it('fails the body of an aborted response', async () => {
    const origin = await http2Origin((stream) => {
      stream.respond({ ':status': 200 })
      stream.write('half')
      setTimeout(() => stream.destroy(new Error('broken')), 20)
    })
    const reply = await ask({ origin, connection })
    await expect(textOf(reply)).rejects.toMatchObject({ code: 'upstream_reset' })
  })

  it('fails the calls of a failed connection, and opens another for the next', async () => {
    let calls = 0
    const origin = await http2Origin((stream) => {
      calls += 1
      if (calls === 1) stream.session?.destroy()
      else stream.end('ok')
    })
    const { send } = client()
    const first = send(outgoing({ origin, connection, method: 'POST' }))
    await expect(first).rejects.toMatchObject({ code: 'upstream_reset' })
    expect(await textOf(await send(outgoing({ origin, connection })))).toBe('ok')
  })

  it('closes only the stream of an aborted call', async () => {
    let closed = 0
    const origin = await http2Origin((stream) => {
      stream.on('close', () => {
        closed += 1
      })
      if (stream.readableEnded) stream.end('ok')
      stream.on('end', () => {
        if (stream.writable && calls.shift() === 'answered') setTimeout(() => stream.end('ok'), 100)
      })
      stream.resume()
    })
    const calls = ['hangs', 'answered']
    const { send } = client()
    const cancellation = createCancellation()
    const given = send(outgoing({ origin, connection, cancellation }))
    await tick(50)
    const kept = send(outgoing({ origin, connection }))
    await tick(50)
    cancellation.cancel()
    await expect(given).rejects.toMatchObject({ code: 'request_aborted' })
    expect(await textOf(await kept)).toBe('ok')
    await until(() => closed === 2)
  })

  it('applies the backpressure of a slow reader to the upstream', async () => {
    let written = 0
    const chunk = Buffer.alloc(64 * 1024)
    const origin = await http2Origin((stream) => {
      stream.respond({ ':status': 200 })
      function fill() {
        while (written < 100_000_000) {
          written += chunk.length
          if (!stream.write(chunk)) return
        }
      }
      stream.on('drain', fill)
      fill()
    })
    const reply = await ask({ origin, connection })
    if (reply.body === undefined || reply.body instanceof Uint8Array) throw new Error('no stream')
    reply.body.start({ write: () => false, end() {}, fail() {} })
    await tick(300)
    expect(written).toBeLessThan(20_000_000)
    reply.body.cancel()
  })

  it('fails with a server that supports HTTP/1.1 only', async () => {
    const origin = await httpServer((_, response) => response.end('ok'))
    await expect(ask({ origin, connection, firstByteTimeoutMs: 1_000 })).rejects.toMatchObject({
      code: expect.stringMatching(/^upstream_/),
    })
  })
})

const defaults: HttpClientOptions = {
  connectTimeoutMs: 2_000,
  keepAliveMs: 10_000,
  firstByteTimeoutMs: 5_000,
  idleTimeoutMs: 5_000,
}

function client(options: Partial<HttpClientOptions> = {}): HttpClient {
  const created = createHttpClient({ ...defaults, ...options })
  closers.push(() => created.close())
  return created
}

function outgoing(request: Partial<OutgoingRequest> & { origin: string }): OutgoingRequest {
  return { path: '/', method: 'GET', headers: {}, body: undefined, ...request }
}

function ask(request: Partial<OutgoingRequest> & { origin: string }): Promise<Reply> {
  return client().send(outgoing(request))
}

async function textOf(reply: Reply): Promise<string> {
  return String(await readAll(reply.body, 1_000_000, 'upstream_too_large'))
}

function readWithTrailers(body: Body): Promise<{ text: string; trailers: unknown }> {
  return new Promise((resolve, reject) => {
    if (body === undefined || body instanceof Uint8Array) throw new Error('the body does not stream')
    let text = ''
    body.start({
      write(chunk) {
        text += Buffer.from(chunk).toString()
        return true
      },
      end: (trailers) => resolve({ text, trailers }),
      fail: reject,
    })
  })
}

/** A body written by the test. */
function pushedBody() {
  const started = Promise.withResolvers<void>()
  let sink: BodySink | undefined
  let cancelled = false
  const source: BodySource = {
    start(reader) {
      sink = reader
      started.resolve()
    },
    resume() {},
    cancel() {
      cancelled = true
    },
  }
  return {
    source,
    started: started.promise,
    wasStarted: () => sink !== undefined,
    cancelled: () => cancelled,
    write: (text: string) => sink?.write(Buffer.from(text)),
    writeBytes: (bytes: Uint8Array) => sink?.write(bytes) === true,
    end: () => sink?.end(),
    fail: (error: Error) => sink?.fail(error),
  }
}

async function listening(server: Server, scheme: 'http' | 'https' = 'http'): Promise<string> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function httpServer(listener: RequestListener): Promise<string> {
  return listening(createServer(listener))
}

function tcpServer(listener: (socket: Socket) => void): Promise<string> {
  return listening(createTcpServer(listener))
}

async function echoServer() {
  const seen: { text: string; headers: Record<string, unknown> } = { text: '', headers: {} }
  const origin = await httpServer((request, response) => {
    seen.headers = request.headers
    request.on('data', (chunk) => {
      seen.text += String(chunk)
    })
    request.on('end', () => response.end(seen.text))
    request.on('error', () => {})
  })
  return { origin, seen }
}

function httpsServer(
  { cert, key }: Certificates,
  onName: (name: string | false | undefined) => void = () => {},
): Promise<string> {
  const server = createHttpsServer(
    {
      cert,
      key,
      SNICallback(name, callback) {
        onName(name)
        callback(null)
      },
    },
    (_, response) => response.end('secure'),
  )
  return listening(server, 'https')
}

async function closedOrigin(): Promise<string> {
  const server = createTcpServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `http://127.0.0.1:${port}`
}

type Certificates = { ca: string; cert: string; key: string; remove(): void }

/** A self-signed certificate, its own authority, for `upstream.test` and 127.0.0.1. */
function createCertificates(): Certificates {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-tls-'))
  const [key, cert, settings] = ['key.pem', 'cert.pem', 'settings'].map((file) => join(folder, file))
  if (key === undefined || cert === undefined || settings === undefined) throw new Error('unreachable')
  writeFileSync(settings, '[req]\ndistinguished_name=name\n[name]\n')
  const subject = ['-subj', '/CN=upstream.test', '-addext', 'subjectAltName=DNS:upstream.test,IP:127.0.0.1']
  const algorithm = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const output = ['-keyout', key, '-out', cert, '-days', '2', '-config', settings]
  execFileSync('openssl', ['req', '-x509', ...algorithm, ...output, ...subject], { stdio: 'ignore' })
  const text = readFileSync(cert, 'utf8')
  return {
    ca: text,
    cert: text,
    key: readFileSync(key, 'utf8'),
    remove: () => rmSync(folder, { recursive: true }),
  }
}

function tick(ms = 1): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}

async function until(holds: () => boolean, limitMs = 3_000): Promise<void> {
  const end = performance.now() + limitMs
  while (!holds()) {
    if (performance.now() > end) throw new Error('waited too long')
    await tick(5)
  }
}
