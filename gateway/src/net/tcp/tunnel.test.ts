import { createServer, Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../../../test/support/cleanup.ts'
import { listening } from '../../../test/support/listening.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { anywhere } from '../egress/egress.ts'
import { createOpenTunnel } from './tunnel.ts'

/** A proxy that calls `answer` with the head of each request. Returns its port. */
async function proxy(answer: (socket: Socket, head: string) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', (data) => answer(socket, String(data)))
  })
  endAfter('test', () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return listening(server)
}

function open(port: number, { authorization, timeoutMs = 5_000, egress = anywhere } = defaults) {
  const tunnel = { host: '127.0.0.1', port, tls: undefined, authorization, egress: anywhere }
  const start = createOpenTunnel(tunnel, { host: 'db.internal', port: 5432, timeoutMs, egress })
  return new Promise<Socket>((resolve, reject) => {
    start((result) => {
      if (result instanceof GatewayError) {
        reject(result.cause)
        return
      }
      endAfter('test', () => {
        result.destroy()
      })
      resolve(result)
    })
  })
}

type Options = { authorization: string | undefined; timeoutMs?: number; egress?: typeof anywhere }
const defaults: Options = { authorization: undefined }

describe('a tunnel through a proxy', () => {
  it('sends CONNECT with the credential and passes bytes from the first one', async () => {
    let head = ''
    const port = await proxy((socket, text) => {
      head = text
      socket.write('HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nx-a: b\r\n\r\nfirst')
      socket.on('data', (data) => socket.write(data))
    })
    const socket = await open(port, { authorization: 'Basic abc' })
    expect(head).toBe(
      'CONNECT db.internal:5432 HTTP/1.1\r\nhost: db.internal:5432\r\nproxy-authorization: Basic abc\r\n\r\n',
    )
    const received: string[] = []
    const both = new Promise<void>((resolve) => {
      socket.on('data', (data) => {
        received.push(String(data))
        if (received.join('').endsWith('second')) resolve()
      })
    })
    socket.write('second')
    await both
    expect(received.join('')).toBe('firstsecond')
  })

  it('reads a response that arrives byte by byte', async () => {
    const port = await proxy(async (socket) => {
      socket.setNoDelay(true)
      for (const byte of 'HTTP/1.0 204 \r\n\r\n') {
        socket.write(byte)
        await new Promise(setImmediate)
      }
    })
    await expect(open(port)).resolves.toBeDefined()
  })

  it.each([
    ['a refusal', 'HTTP/1.1 407 Proxy Authentication Required\r\n\r\n', 'refused the tunnel with status 407'],
    ['another protocol', 'SSH-2.0-x\r\n\r\n', 'not HTTP/1.1'],
    ['an endless head', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}`, 'large head'],
  ])('fails on %s', async (_, response, message) => {
    const port = await proxy((socket) => socket.write(response))
    await expect(open(port)).rejects.toThrow(message)
  })

  it('fails if the proxy closes the connection or does not answer', async () => {
    const closing = await proxy((socket) => socket.end('HTTP/1.1 '))
    await expect(open(closing)).rejects.toThrow('closed the connection')
    const silent = await proxy(() => {})
    await expect(open(silent, { ...defaults, timeoutMs: 30 })).rejects.toThrow('no response of the proxy')
  })

  it('fails if the connection fails between the response and the transfer of the socket', async () => {
    const { promise: accepted, resolve } = Promise.withResolvers<Socket>()
    const unshift = Socket.prototype.unshift
    endAfter('test', () => {
      Socket.prototype.unshift = unshift
    })
    Socket.prototype.unshift = function (this: Socket, chunk: unknown) {
      unshift.call(this, chunk)
      resolve(this)
    }
    const port = await proxy((socket) => socket.write('HTTP/1.1 200 OK\r\n\r\nfirst'))
    const opened = open(port).catch((error: unknown) => error)
    const socket = await accepted
    socket.destroy(new Error('broken record'))
    expect(await opened).toMatchObject({ message: 'broken record' })
  })

  it('makes no call after it is cancelled', async () => {
    const { promise: asked, resolve } = Promise.withResolvers<Socket>()
    const port = await proxy((socket) => resolve(socket))
    const tunnel = { host: '127.0.0.1', port, tls: undefined, authorization: undefined, egress: anywhere }
    const target = { host: 'a', port: 1, timeoutMs: 5_000, egress: anywhere }
    const results: unknown[] = []
    const cancel = createOpenTunnel(tunnel, target)((result) => results.push(result))
    const socket = await asked
    const closed = new Promise((done) => socket.once('close', done))
    cancel()
    await closed
    expect(results).toEqual([])
  })
})

it('refuses a forbidden address of the destination', async () => {
  const egress = { key: 'x', refuses: () => 'forbidden' }
  const tunnel = { host: '127.0.0.1', port: 1, tls: undefined, authorization: undefined, egress: anywhere }
  const target = { host: '169.254.169.254', port: 80, timeoutMs: 1_000, egress }
  const result = await new Promise((resolve) => createOpenTunnel(tunnel, target)(resolve))
  expect(result).toBeInstanceOf(GatewayError)
})
