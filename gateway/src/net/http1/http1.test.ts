import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { defaultAdmission } from '../../../test/support/admission.ts'
import { systemClock } from '../../lib/clock.ts'
import { type Delivery, defaultServerLimits, type IncomingRequest } from '../http/incoming-request.ts'
import type { Reply } from '../http-client/send.ts'
import { type ListeningServer, listen } from '../listener/listener.ts'

let server: ListeningServer | undefined

afterEach(() => server?.close())

/**
 * Serves one fixed response; resolves with the bytes received by a raw client, one character per byte, and
 * the delivery result.
 */
async function exchangeWith(reply: () => Promise<Reply>): Promise<{ text: string; delivery: Delivery }> {
  const ended = Promise.withResolvers<Delivery>()
  server = await listen({
    admission: defaultAdmission(),
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    limits: defaultServerLimits,
    serve: () => ({ kind: 'http', tls: undefined, handle: () => ({ reply: reply(), end: ended.resolve }) }),
  })
  const text = await new Promise<string>((resolve) => {
    const socket = connect(server?.port ?? 0, '127.0.0.1')
    let received = ''
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => {
      received += chunk
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(received))
    socket.end('GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n')
  })
  return { text, delivery: await ended.promise }
}

describe('listen', () => {
  it('delivers a complete response and reports it', async () => {
    const { text, delivery } = await exchangeWith(async () => ({
      status: 200,
      headers: {},
      body: Buffer.from('hello'),
    }))
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nhello$/)
    expect(delivery).toMatchObject({ complete: true, status: 200, bytesSent: 5 })
  })

  it.each([256, 8 * 1024, 8 * 1024 + 1, 100_000])(
    'delivers %i bytes of every value unchanged',
    async (size) => {
      const body = Uint8Array.from({ length: size }, (_, index) => index % 256)
      const { text, delivery } = await exchangeWith(async () => ({ status: 200, headers: {}, body }))
      expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe(Buffer.from(body).toString('latin1'))
      expect(text).toContain(`content-length: ${size}\r\n`)
      expect(delivery).toMatchObject({ complete: true, bytesSent: size })
    },
  )

  it('aborts only the connection when a head is invalid', async () => {
    const { text, delivery } = await exchangeWith(async () => ({
      status: 200,
      headers: { 'x-bad': 'a\nb' },
      body: Buffer.from('hello'),
    }))
    expect(text).toBe('')
    expect(delivery).toMatchObject({ complete: false, failure: { code: 'ERR_INVALID_CHAR' } })
  })

  it('aborts the connection when the reply rejects', async () => {
    const { text, delivery } = await exchangeWith(() => Promise.reject(new Error('broken')))
    expect(text).toBe('')
    expect(delivery).toMatchObject({ complete: false, failure: { message: 'broken' } })
  })

  it('preserves duplicate hosts and credentials', async () => {
    const heads: IncomingRequest[] = []
    server = await listen({
      admission: defaultAdmission(),
      host: '127.0.0.1',
      port: 0,
      clock: systemClock,
      limits: defaultServerLimits,
      serve: () => ({
        kind: 'http',
        tls: undefined,
        handle(request) {
          heads.push(request)
          return { reply: Promise.resolve({ status: 204, headers: {}, body: undefined }), end() {} }
        },
      }),
    })
    const socket = connect(server.port, '127.0.0.1')
    socket.resume()
    const repeated = 'host: a\r\nHost: b\r\nauthorization: Bearer 1\r\nauthorization: Bearer 2\r\n'
    socket.end(`GET / HTTP/1.1\r\n${repeated}connection: close\r\n\r\n`)
    await new Promise((resolve) => socket.on('close', resolve))
    expect(heads[0]?.headers).toMatchObject({ host: 'a, b', authorization: 'Bearer 1, Bearer 2' })
  })

  it('ends a kept connection with its next response after the announcement of a drain', async () => {
    server = await listen({
      admission: defaultAdmission(),
      host: '127.0.0.1',
      port: 0,
      clock: systemClock,
      limits: defaultServerLimits,
      serve: () => ({
        kind: 'http',
        tls: undefined,
        handle: () => ({ reply: Promise.resolve({ status: 204, headers: {}, body: undefined }), end() {} }),
      }),
    })
    const socket = connect(server.port, '127.0.0.1')
    const ended = new Promise((resolve) => socket.on('close', resolve))
    const next = () =>
      new Promise<string>((resolve) => socket.once('data', (bytes) => resolve(String(bytes))))
    socket.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
    expect((await next()).toLowerCase()).toContain('connection: keep-alive')
    server.announceDrain()
    socket.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
    const last = await next()
    expect(last).toContain('204')
    expect(last.toLowerCase()).toContain('connection: close')
    await ended
  })
})
