import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { bodyWithTrailers, pushedBody, startEdge, text } from '../support/edge.ts'
import { rawConnect, rawExchange, statusesOf } from '../support/raw-http.ts'
import { until } from '../support/wait.ts'

describe('the first bytes of a connection', () => {
  it('that come one by one are HTTP/1 all the same', async () => {
    const { port, requests } = await startEdge(() => text('hello'))
    const client = await rawConnect(port)
    for (const byte of 'PUT / HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n') {
      client.send(byte)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    expect(await client.receives('hello')).toMatch(/^HTTP\/1\.1 200/)
    expect(requests[0]).toMatchObject({
      method: 'PUT',
      version: '1.1',
      connection: { scheme: 'http' },
      upgrade: undefined,
    })
  })

  it('that never come end it with 408', async () => {
    const { port } = await startEdge(() => text('hello'), { limits: { headersTimeoutMs: 200 } })
    const client = await rawConnect(port)
    expect(statusesOf(await client.closed(3000))).toEqual([408])
  })

  it('of the preface alone wait no longer than those of a request', async () => {
    const { port } = await startEdge(() => text('hello'), { limits: { headersTimeoutMs: 200 } })
    const client = await rawConnect(port)
    client.send('PRI * HTTP/2.0\r\n')
    expect(statusesOf(await client.closed(3000))).toEqual([408])
  })

  it('that are no HTTP get 400', async () => {
    const { port } = await startEdge(() => text('hello'))
    expect(statusesOf(await rawExchange(port, '\x16\x03\x01\x00\x05hello'))).toEqual([400])
  })
})

describe('a request', () => {
  it('for h2c is answered in HTTP/1.1', async () => {
    const { port, requests } = await startEdge(() => text('hello'))
    const received = await rawExchange(
      port,
      'GET / HTTP/1.1\r\nhost: h\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n',
    )
    expect(statusesOf(received)).toEqual([200])
    expect(requests[0]?.upgrade).toBeUndefined()
  })

  it('to connect elsewhere is refused', async () => {
    const { port, requests } = await startEdge(() => text('hello'))
    const received = await rawExchange(
      port,
      'CONNECT internal:22 HTTP/1.1\r\nhost: internal:22\r\n\r\nSSH-2.0-x\r\n',
    )
    expect(statusesOf(received)).toEqual([405])
    expect(requests).toEqual([])
  })

  it('with a target beyond the limit gets 414, and others go on', async () => {
    const { port, requests } = await startEdge(() => text('hello'), { limits: { maxTargetBytes: 100 } })
    const long = await rawExchange(port, `GET /${'a'.repeat(100)} HTTP/1.1\r\nhost: h\r\n\r\n`)
    expect(statusesOf(long)).toEqual([414])
    expect(requests).toEqual([])
    expect(statusesOf(await rawExchange(port, 'GET /a HTTP/1.1\r\nhost: h\r\n\r\n'))).toEqual([200])
  })

  it.each([
    ['of HTTP/0.9', 'GET /\r\n\r\n', 505],
    ['that says it is of HTTP/2', 'GET / HTTP/2.0\r\nhost: h\r\n\r\n', 505],
    ['whose body has a coding that would be lost', chunked('1.1', 'gzip, chunked'), 501],
    ['of HTTP/1.0 in chunks', chunked('1.0', 'chunked'), 400],
    ['in chunks', chunked('1.1', 'Chunked'), 200],
    [
      'of HTTP/0.9 for another protocol',
      'GET / HTTP/0.9\r\nhost: h\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
      505,
    ],
  ])('%s is answered as it should be', async (_, sent, status) => {
    const { port, requests } = await startEdge(() => text('hello'))
    const received = await rawExchange(port, sent)
    expect(statusesOf(received)).toEqual([status])
    expect(requests).toHaveLength(status === 200 ? 1 : 0)
  })

  it('with a head beyond the limit gets 431', async () => {
    const { port, requests } = await startEdge(() => text('hello'), { limits: { maxHeaderBytes: 1000 } })
    const long = await rawExchange(port, `GET / HTTP/1.1\r\nhost: h\r\nx: ${'a'.repeat(1000)}\r\n\r\n`)
    expect(statusesOf(long)).toEqual([431])
    expect(requests).toEqual([])
  })

  it('keeps the trailers that may be trailers', async () => {
    const { port } = await startEdge(async ({ body }) => {
      const { text: received, trailers } = await bodyWithTrailers(body)
      return text(JSON.stringify({ received, trailers }))
    })
    const answer = await rawExchange(
      port,
      'POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 7\r\n' +
        'authorization: Bearer stolen\r\nhost: other\r\n\r\n',
    )
    expect(answer).toContain('{"received":"abc","trailers":{"x-sum":"7"}}')
  })

  it('whose trailers would change how long it is, is refused', async () => {
    const { port } = await startEdge(async ({ body }) => text((await bodyWithTrailers(body)).text))
    const head = 'POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n'
    const received = await rawExchange(port, `${head}3\r\nabc\r\n0\r\ncontent-length: 99\r\n\r\n`)
    expect(statusesOf(received)).toEqual([400])
  })

  it('that ends before its body does fails the reader of the body', async () => {
    const failed = Promise.withResolvers<unknown>()
    const { port } = await startEdge(async ({ body }) => {
      await bodyWithTrailers(body).catch(failed.resolve)
      return text('too late')
    })
    const client = await rawConnect(port)
    client.send('POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n3\r\nab')
    await new Promise((resolve) => setTimeout(resolve, 50))
    client.socket.destroy()
    expect(await failed.promise).toMatchObject({ code: 'request_aborted' })
  })
})

describe('an answer', () => {
  const trailing = () => {
    const body = pushedBody()
    body.start = (sink) => {
      sink.write(Buffer.from('abc'))
      sink.end({ 'x-sum': '7', 'content-length': '1' })
    }
    return { status: 200, headers: { trailer: 'x-sum' }, body }
  }

  it('has its trailers where the client reads them', async () => {
    const { port, deliveries } = await startEdge(trailing)
    const received = await rawExchange(port, 'GET / HTTP/1.1\r\nhost: h\r\nte: trailers\r\n\r\n')
    expect(received).toMatch(/trailer: x-sum\r\n[\s\S]*\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 7\r\n\r\n$/)
    expect(deliveries[0]).toMatchObject({ complete: true, bytesSent: 3 })
  })

  it('has none where the client does not', async () => {
    const { port } = await startEdge(trailing)
    const received = await rawExchange(port, 'GET / HTTP/1.1\r\nhost: h\r\n\r\n')
    expect(received).toMatch(/\r\n\r\n3\r\nabc\r\n0\r\n\r\n$/)
    expect(received).not.toContain('x-sum')
  })

  it('of known length has none', async () => {
    const { port } = await startEdge(() => {
      const reply = trailing()
      return { ...reply, headers: { ...reply.headers, 'content-length': '3' } }
    })
    const received = await rawExchange(port, 'GET / HTTP/1.1\r\nhost: h\r\nte: trailers\r\n\r\n')
    expect(received).toMatch(/\r\n\r\nabc$/)
    expect(received).not.toContain('x-sum')
  })

  it('does not look complete when its trailers cannot be written', async () => {
    const { port, deliveries } = await startEdge(() => {
      const body = pushedBody()
      body.start = (sink) => {
        sink.write(Buffer.from('abc'))
        sink.end({ 'x-sum': 'a\r\nb: c' })
      }
      return { status: 200, headers: {}, body }
    })
    const received = await rawExchange(port, 'GET / HTTP/1.1\r\nhost: h\r\nte: trailers\r\n\r\n')
    expect(received).not.toContain('\r\n0\r\n')
    expect(received).not.toContain('b: c')
    expect(deliveries[0]).toMatchObject({ complete: false })
  })

  it('may follow informational responses, without the fields they cannot carry', async () => {
    const { port } = await startEdge(({ informational }) => {
      informational?.(103, { link: ['</a>', '</b>'], connection: 'close', 'content-length': '9' })
      informational?.(101, {})
      informational?.(103, { 'x-bad': 'a\r\nb: c' })
      return text('done')
    })
    const received = await rawExchange(port, 'GET / HTTP/1.1\r\nhost: h\r\n\r\n')
    expect(received).toMatch(
      /^HTTP\/1\.1 103 Early Hints\r\nlink: <\/a>\r\nlink: <\/b>\r\n\r\nHTTP\/1\.1 200 OK\r\n/,
    )
    expect(received).not.toContain('b: c')
  })

  it('to HTTP/1.0 comes without hints', async () => {
    const { port } = await startEdge(({ informational }) => text(String(informational)))
    expect(await rawExchange(port, 'GET / HTTP/1.0\r\nhost: h\r\n\r\n')).toMatch(/undefined$/)
  })
})

describe('a drain', () => {
  it('closes silent connections, and completes the others', async () => {
    const answer = Promise.withResolvers<ReturnType<typeof text>>()
    const { port, server, requests } = await startEdge(() => answer.promise)
    const silent = await rawConnect(port)
    const busy = await rawConnect(port)
    busy.send('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
    await until('the request arrives', () => requests.length === 1)
    let drained = false
    const drain = server.drain().then(() => {
      drained = true
    })
    await silent.closed(1000)
    expect(drained).toBe(false)
    answer.resolve(text('finished'))
    expect(await busy.closed(2000)).toMatch(/connection: close\r\n[\s\S]*finished$/i)
    await drain
    await expect(
      new Promise((resolve, reject) => connect(port, '127.0.0.1', () => resolve(1)).on('error', reject)),
    ).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })
})

describe('a port', () => {
  it('changes its handler with the next connection, and retains open ones', async () => {
    const { port, serve } = await startEdge(() => text('hello'))
    const old = await rawConnect(port)
    old.send('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
    await old.receives('hello')
    serve({
      kind: 'tcp',
      tls: undefined,
      readsServerName: false,
      connect: ({ socket, connection }) => socket.end(`tcp from ${connection.address}`),
    })
    expect(await (await rawConnect(port)).closed(2000)).toBe('tcp from 127.0.0.1')
    old.send('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
    await until('the second answer', () => old.received().split('hello').length === 3)
    serve(undefined)
    expect(await (await rawConnect(port)).closed(2000)).toBe('')
  })

  it('for TCP lets one direction end before the other', async () => {
    const { port, serve } = await startEdge(() => text(''))
    serve({
      kind: 'tcp',
      tls: undefined,
      readsServerName: false,
      connect({ socket }) {
        let received = ''
        socket.on('data', (chunk) => {
          received += chunk
        })
        socket.on('end', () => setTimeout(() => socket.end(`got ${received}`), 50))
      },
    })
    const client = await rawConnect(port)
    client.socket.end('all of it')
    expect(await client.closed(2000)).toBe('got all of it')
  })
})

function chunked(version: string, coding: string): string {
  return `POST / HTTP/${version}\r\nhost: h\r\ntransfer-encoding: ${coding}\r\nconnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n`
}
