import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import type { Gateway } from '../support/gateway.ts'
import { call, http2Client } from '../support/http-call.ts'
import { listening } from '../support/listening.ts'
import { rawConnect, rawExchange } from '../support/raw-http.ts'
import { routing } from '../support/traffic.ts'
import { until, within } from '../support/wait.ts'

const megabyte = Buffer.alloc(1024 * 1024, 'streaming ')

let gateway: Gateway
let port = 0
let behave: (request: IncomingMessage, response: ServerResponse) => void
let seen: IncomingMessage | undefined
let upstream: Server

beforeAll(async () => {
  upstream = createServer((request, response) => {
    seen = request
    behave(request, response)
  })
  upstream.on('checkContinue', (request, response) => {
    seen = request
    behave(request, response)
  })
  const upstreamPort = await listening(upstream)
  endAfter('file', () => {
    upstream.closeAllConnections()
    upstream.close()
  })
  const running = await routing(
    [
      {
        matches: [{ path: { pathPrefix: '/closed' } }],
        policies: { directResponse: { status: 403, body: 'closed' } },
      },
      { backends: [{ host: `127.0.0.1:${upstreamPort}` }] },
    ],
    {},
    { lifetime: 'file' },
  )
  gateway = running.gateway
  port = running.port
})

beforeEach(() => {
  behave = (_, response) => response.end('answer')
})

function residentMegabytes(): number {
  const status = readFileSync(`/proc/${gateway.child.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024
}

/** Megabytes that arrived, and their digest. */
async function drain(stream: IncomingMessage): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of stream) hash.update(chunk)
  return hash.digest('hex')
}

function digestOf(megabytes: number): string {
  const hash = createHash('sha256')
  for (let count = 0; count < megabytes; count++) hash.update(megabyte)
  return hash.digest('hex')
}

/** Writes as fast as the other side reads; counts the bytes read. */
function pour(target: NodeJS.WritableStream, megabytes: number): { sent: number } {
  const progress = { sent: 0 }
  const more = () => {
    while (progress.sent < megabytes) {
      progress.sent += 1
      if (!target.write(megabyte)) {
        target.once('drain', more)
        return
      }
    }
    target.end()
  }
  more()
  return progress
}

describe('a large body', () => {
  it('of 200 MB each way arrives complete, without being buffered', async () => {
    behave = (incoming, response) => {
      response.writeHead(200, { 'content-type': 'application/octet-stream' })
      incoming.pipe(response)
    }
    const before = residentMegabytes()
    let most = 0
    const sampling = setInterval(() => {
      most = Math.max(most, residentMegabytes())
    }, 50)
    const outgoing = request({ host: '127.0.0.1', port, path: '/echo', method: 'POST', agent: false })
    const answered = once(outgoing, 'response')
    pour(outgoing, 200)
    const [answer] = await within('the head', answered)
    expect(await within('the body', drain(answer), 25_000)).toBe(digestOf(200))
    clearInterval(sampling)
    expect(most - before).toBeLessThan(160)
  })

  it('waits at its source while its reader takes nothing', async () => {
    let progress = { sent: 0 }
    behave = (_, response) => {
      progress = pour(response, 200)
    }
    const incoming = request({ host: '127.0.0.1', port, path: '/', agent: false }).end()
    const [answer] = await within('the head', once(incoming, 'response'))
    await stalled(() => progress.sent)
    expect(progress.sent).toBeLessThan(60)
    expect(await within('the body', drain(answer), 25_000)).toBe(digestOf(200))

    const release = Promise.withResolvers<void>()
    let received: Promise<string> | undefined
    behave = async (body, response) => {
      body.pause()
      await release.promise
      received = drain(body)
      response.end(await received)
    }
    const outgoing = request({ host: '127.0.0.1', port, method: 'PUT', path: '/', agent: false })
    const answered = once(outgoing, 'response')
    const upload = pour(outgoing, 200)
    await stalled(() => upload.sent)
    expect(upload.sent).toBeLessThan(60)
    release.resolve()
    const [done] = await within('the answer', answered, 25_000)
    done.resume()
    expect(await received).toBe(digestOf(200))
  })
})

/** Resolves when a count no longer rises. */
async function stalled(count: () => number): Promise<void> {
  let last = -1
  let same = 0
  await until('the writer waits', () => {
    same = count() === last && last > 0 ? same + 1 : 0
    last = count()
    return same > 10
  })
}

describe('a body in parts', () => {
  it('is passed on as it comes, both ways', async () => {
    behave = (incoming, response) => {
      response.flushHeaders()
      incoming.on('data', (chunk) => response.write(`<${chunk}>`))
      incoming.on('end', () => response.end())
    }
    const client = await rawConnect(port)
    client.send('POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n')
    await client.receives('<one>')
    client.send('3\r\ntwo\r\n')
    await client.receives('<two>')
    client.send('0\r\n\r\n')
    await client.receives('0\r\n\r\n')
  })

  it('that breaks off does not look complete, in either version', async () => {
    behave = (_, response) => {
      response.write('half')
      setTimeout(() => response.destroy(), 50)
    }
    await expect(call(port, '/')).rejects.toThrow(/aborted|hang up|reset/i)
    await expect(http2Client(port).ask('/')).rejects.toThrow(/reset|internal/i)
    behave = (_, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('half')
      setTimeout(() => response.destroy(), 50)
    }
    await expect(call(port, '/')).rejects.toThrow(/aborted|hang up|reset/i)
  })

  it('ends at the upstream when the client leaves', async () => {
    const left = Promise.withResolvers<void>()
    behave = (_, response) => {
      response.write('first')
      response.on('close', () => left.resolve())
    }
    const outgoing = request({ host: '127.0.0.1', port, agent: false }).end()
    outgoing.on('error', () => {})
    await once(outgoing, 'response')
    outgoing.destroy()
    await within('the upstream hears of it', left.promise)
  })
})

describe('an answer', () => {
  it('has its trailers in either version, where the client reads them', async () => {
    behave = (_, response) => {
      response.writeHead(200, { trailer: 'x-sum' })
      response.write('body')
      response.addTrailers({ 'x-sum': 'four' })
      response.end()
    }
    const first = await call(port, '/', { headers: { te: 'trailers' } })
    expect(first).toMatchObject({ text: 'body', trailers: { 'x-sum': 'four' } })
    const second = await http2Client(port).ask('/', { headers: { te: 'trailers' } })
    expect(second).toMatchObject({ text: 'body', trailers: { 'x-sum': 'four' } })
    expect(seen?.headers['te']).toBe('trailers')
  })

  it('may come after hints', async () => {
    behave = (_, response) => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' })
      setTimeout(() => response.end('after hints'), 50)
    }
    const first = await call(port, '/')
    expect(first.text).toBe('after hints')
    expect(first.hints).toMatchObject([{ status: 103, headers: { link: expect.stringContaining('style') } }])
    const second = await http2Client(port).ask('/')
    expect(second.hints).toMatchObject([{ ':status': 103, link: expect.stringContaining('style') }])
  })

  it('to HEAD, and with 204 or 304, has no body and keeps its connection', async () => {
    behave = ({ url = '', method }, response) => {
      if (url === '/204') response.writeHead(204).end()
      else if (url === '/304') response.writeHead(304, { etag: '"a"' }).end()
      else
        response
          .writeHead(200, { 'content-length': 6, etag: '"a"' })
          .end(method === 'HEAD' ? undefined : 'answer')
    }
    const raw = await rawConnect(port)
    for (const [method, path] of [
      ['HEAD', '/'],
      ['GET', '/204'],
      ['GET', '/304'],
    ])
      raw.send(`${method} ${path} HTTP/1.1\r\nhost: h\r\n\r\n`)
    raw.send('GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n')
    const heads = (await raw.closed()).split('HTTP/1.1 ').slice(1)
    expect(heads.map((head) => head.slice(0, 3))).toEqual(['200', '204', '304', '200'])
    expect(heads[0]).toMatch(/content-length: 6[\s\S]*\r\n\r\n$/i)
    expect(heads[1]).not.toMatch(/content-length|transfer-encoding/i)
    expect(heads[2]).toMatch(/etag: "a"[\s\S]*\r\n\r\n$/)
    expect(heads[3]).toMatch(/answer$/)
    const { ask } = http2Client(port)
    expect(await ask('/', { method: 'HEAD' })).toMatchObject({
      status: 200,
      text: '',
      headers: { etag: '"a"' },
    })
    expect((await ask('/204')).status).toBe(204)
    expect((await ask('/304')).status).toBe(304)
  })

  it('has a head of up to 64 KiB, and is 502 beyond that', async () => {
    behave = ({ url = '' }, response) => {
      const cookies = Array.from(
        { length: Number(url.slice(1)) },
        (_, index) => `c${index}=${'x'.repeat(1000)}`,
      )
      response.writeHead(200, { 'set-cookie': cookies }).end('cookies')
    }
    const raw = (path: string) =>
      rawExchange(port, `GET ${path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n`)
    const large = await raw('/60')
    expect(large).toMatch(/^HTTP\/1\.1 200 [\s\S]*cookies$/)
    expect(large.match(/set-cookie: c/gi)).toHaveLength(60)
    expect(await raw('/70')).toMatch(/^HTTP\/1\.1 502 [\s\S]*too large$/)
    expect((await call(port, '/1')).text).toBe('cookies')
  })

  it('of HTTP/1.0 clients is no chunked one', async () => {
    behave = (_, response) => {
      response.write('in ')
      response.end('parts')
    }
    const answer = await rawExchange(port, 'GET / HTTP/1.0\r\nhost: h\r\n\r\n')
    expect(answer).not.toMatch(/transfer-encoding/i)
    expect(answer).toMatch(/\r\n\r\nin parts$/)
  })
})

describe('a request', () => {
  it('with Expect: 100-continue receives one 100, and then sends its body', async () => {
    behave = async (body, response) => {
      body.setEncoding('utf8')
      let text = ''
      for await (const chunk of body) text += chunk
      response.end(`got ${text}`)
    }
    const client = await rawConnect(port)
    client.send('POST / HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n')
    await client.receives('HTTP/1.1 100 Continue\r\n\r\n')
    client.send('body')
    const received = await client.receives('got body')
    expect(received.match(/100 Continue/g)).toHaveLength(1)
  })

  it('that is answered without its body being read is answered all the same, in either version', async () => {
    const body = 'x'.repeat(2_000_000)
    expect(await call(port, '/closed', { method: 'POST', body })).toMatchObject({
      status: 403,
      text: 'closed',
    })
    expect((await http2Client(port).ask('/closed', { method: 'POST', body })).status).toBe(403)
    const waiting = await rawExchange(
      port,
      'PUT /closed HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n',
    )
    expect(waiting).toMatch(/^HTTP\/1\.1 403/)
    // As servers should: bytes still in flight are discarded (RFC 9112 section 9.6).
    behave = (incoming, response) => {
      response.writeHead(413).end('too much for me')
      incoming.resume()
    }
    expect(await call(port, '/', { method: 'POST', body })).toMatchObject({
      status: 413,
      text: 'too much for me',
    })
  })

  it('of a slow client waits for it, and for no other', async () => {
    behave = (body, response) => body.pipe(response)
    const slow = await rawConnect(port)
    slow.send('POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 20\r\n\r\n')
    for (let count = 0; count < 20; count++) {
      slow.send('s')
      expect((await call(port, '/', { method: 'POST', body: 'quick' })).text).toBe('quick')
    }
    const [, answer = ''] = (await slow.closed()).split('\r\n\r\n')
    expect(answer.match(/s/g)).toHaveLength(20)
  })

  it('keeps its trailers to itself, and its body whole', async () => {
    behave = async (body, response) => {
      let size = 0
      for await (const chunk of body) size += chunk.length
      response.end(String(size))
    }
    const answer = await rawExchange(
      port,
      'POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ntransfer-encoding: chunked\r\ntrailer: x-t\r\n\r\n4\r\nbody\r\n0\r\nx-t: 1\r\n\r\n',
    )
    expect(answer).toMatch(/4$|\r\n4\r\n0/)
  })

  it('of a client that resets its stream ends at the upstream', async () => {
    const left = Promise.withResolvers<void>()
    const arrived = Promise.withResolvers<void>()
    behave = (body) => {
      body.resume()
      body.on('close', () => left.resolve())
      arrived.resolve()
    }
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    endAfter('test', () => session.destroy())
    const stream = session.request({ ':path': '/', ':method': 'POST' })
    stream.on('error', () => {})
    stream.write('begun')
    await within('it arrives', arrived.promise)
    stream.close(8)
    await within('the upstream hears of it', left.promise)
  })
})
