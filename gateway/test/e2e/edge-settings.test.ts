import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { Reply } from '../../src/net/http-client/send.ts'
import { endAfter } from '../support/cleanup.ts'
import { type Answer, startEdge } from '../support/edge.ts'

const ok: Reply = { status: 200, headers: {}, body: Buffer.from('ok') }
const none = { http1: {}, http2: {} }

/** Handler whose responses wait until `release`. */
function waiting(): { answer: Answer; release(): void } {
  const { promise, resolve } = Promise.withResolvers<Reply>()
  return { answer: () => promise, release: () => resolve(ok) }
}

function open(port: number, text: string | Buffer = ''): { socket: Socket; text(): string } {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  endAfter('test', () => {
    socket.destroy()
  })
  let received = ''
  socket.on('data', (bytes) => {
    received += bytes
  })
  socket.write(text)
  return { socket, text: () => received }
}

const get = 'GET / HTTP/1.1\r\nhost: a.test\r\n\r\n'

describe('the age of HTTP/1 connections', () => {
  it('closes idle connections', async () => {
    const { port } = await startEdge(() => ok, { settings: { ...none, maxDurationMs: 50 } })
    const { socket, text } = open(port, get)
    await once(socket, 'close')
    expect(text()).toMatch(/^HTTP\/1\.1 200 [\s\S]*ok$/)
  })

  it('ends with the pending request', async () => {
    const { answer, release } = waiting()
    const edge = await startEdge(answer, { settings: { ...none, maxDurationMs: 50 } })
    const idle = open(edge.port)
    const busy = open(edge.port, get)
    await once(idle.socket, 'close')
    // Both have the same age, at most a moment apart.
    setTimeout(release, 50)
    await once(busy.socket, 'close')
    expect(busy.text()).toMatch(/^HTTP\/1\.1 200 [\s\S]*connection: close[\s\S]*ok$/i)
  })
})

describe('settings of HTTP/1', () => {
  it('limit the header lines of a request', async () => {
    const settings = { ...none, http1: { maxHeaders: 2 } }
    const { port, requests } = await startEdge(() => ok, { settings })
    const many = open(port, get.replace('\r\n\r\n', '\r\na: 1\r\nb: 1\r\n\r\n'))
    await once(many.socket, 'end')
    expect(many.text()).toMatch(/^HTTP\/1\.1 431 /)
    const few = open(port, get.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'))
    await once(few.socket, 'end')
    expect(few.text()).toMatch(/^HTTP\/1\.1 200 /)
    expect(requests).toHaveLength(1)
  })

  it('limit the time without requests', async () => {
    const { port } = await startEdge(() => ok, { settings: { ...none, http1: { idleMs: 1 } } })
    const { socket, text } = open(port, get)
    await once(socket, 'close')
    expect(text()).toContain('200')
  })
})

describe('settings of HTTP/2', () => {
  it('are announced to clients', async () => {
    const http2 = { windowSize: 100_000, connectionWindowSize: 200_000, maxFrameSize: 20_000 }
    const { port } = await startEdge(() => ok, { settings: { ...none, http2 } })
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    endAfter('test', () => session.destroy())
    await once(session, 'remoteSettings')
    expect(session.remoteSettings).toMatchObject({ initialWindowSize: 100_000, maxFrameSize: 20_000 })
    await new Promise((done) => session.ping(done))
    expect(session.state.remoteWindowSize).toBe(200_000)
  })

  it('limit the header of a request', async () => {
    const { port } = await startEdge(() => ok, { settings: { ...none, http2: { maxHeaderBytes: 2_000 } } })
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    endAfter('test', () => session.destroy())
    const status = (length: number) => {
      const stream = session.request({ ':path': '/', 'x-long': 'a'.repeat(length) })
      return new Promise((resolve) => {
        stream.on('response', (head) => resolve(head[':status']))
        stream.on('error', () => resolve('reset'))
      })
    }
    expect(await status(1_000)).toBe(200)
    expect([431, 'reset']).toContain(await status(3_000))
  })

  it('end a connection at its age, with its pending stream', async () => {
    const { answer, release } = waiting()
    const { port } = await startEdge(answer, { settings: { ...none, maxDurationMs: 50 } })
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    const response = once(session.request({ ':path': '/' }), 'response')
    await once(session, 'goaway')
    release()
    expect((await response)[0]).toMatchObject({ ':status': 200 })
    if (!session.closed) await once(session, 'close')
  })

  it('end a connection with a stream whose client answers no ping', async () => {
    const { answer } = waiting()
    const http2 = { pingIntervalMs: 20, pingTimeoutMs: 50 }
    const { port, requests } = await startEdge(answer, { settings: { ...none, http2 } })
    const settingsFrame = Buffer.from('000000040000000000', 'hex')
    const fields = Buffer.concat([Buffer.from('828684', 'hex'), Buffer.from('4101', 'hex'), Buffer.from('a')])
    const head = Buffer.concat([Buffer.of(0, 0, fields.length, 1, 5, 0, 0, 0, 1), fields])
    const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    const { socket } = open(port, Buffer.concat([preface, settingsFrame, head]))
    await once(socket, 'close')
    expect(requests).toHaveLength(1)
    // A client that answers remains connected.
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    endAfter('test', () => session.destroy())
    session.request({ ':path': '/' }).on('error', () => {})
    for (let count = 0; count < 8; count += 1) await once(session, 'ping')
    expect(session.destroyed).toBe(false)
  })
})
