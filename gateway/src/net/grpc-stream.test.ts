import { createServer, type ServerHttp2Stream } from 'node:http2'
import { afterEach, describe, expect, it } from 'vitest'
import { anywhere } from './egress/egress.ts'
import { createGrpcClient } from './grpc-client.ts'
import type { GrpcStream, GrpcStreamEnd } from './grpc-stream.ts'

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

/** A server of raw HTTP/2: the test answers each stream. */
async function serve(
  onStream: (stream: ServerHttp2Stream, headers: Record<string, unknown>) => void,
  initialWindowSize = 65_535,
) {
  let connections = 0
  const server = createServer({ settings: { initialWindowSize } })
  server.on('session', (session) => {
    connections += 1
    session.setLocalWindowSize(Math.max(65_535, initialWindowSize))
    ends.push(() => session.destroy())
  })
  server.on('stream', (stream: ServerHttp2Stream, headers: Record<string, unknown>) => {
    stream.on('error', () => {})
    onStream(stream, headers)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => server.close())
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { port: address.port, connections: () => connections }
}

function begin(stream: ServerHttp2Stream, status = 0) {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': String(status) }))
}

function frame(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.byteLength, 1)
  return Buffer.concat([head, message])
}

/** Opens a stream and records its events; `next` resolves at the next one. */
async function open(
  port: number,
  metadata?: readonly (readonly [string, string])[],
  maxMessageBytes = 100_000,
) {
  const grpc = createGrpcClient()
  ends.push(grpc.close)
  const target = { host: '127.0.0.1', port, tls: undefined, tlsKey: '', egress: anywhere }
  const messages: number[][] = []
  let drains = 0
  let end: GrpcStreamEnd | undefined
  let wake = () => {}
  const notify = () => wake()
  const stream: GrpcStream = await grpc.stream(target, '/a.B/C', { maxMessageBytes })(
    {
      onMessage(message) {
        messages.push([...message.subarray(0, 4)])
        notify()
      },
      onDrain() {
        drains += 1
        notify()
      },
      onEnd(received) {
        end = received
        notify()
      },
    },
    metadata,
  )
  ends.push(() => stream.cancel())
  async function until(isReached: () => boolean) {
    while (!isReached()) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  return { stream, messages, until, drains: () => drains, end: () => end }
}

describe('streams', () => {
  it('exchange messages in both directions and end with the status of the server', async () => {
    const { port } = await serve((stream) => {
      begin(stream)
      stream.on('data', (part: Buffer) => stream.write(part))
      stream.on('end', () => stream.end())
    })
    const { stream, messages, until, end } = await open(port)
    for (const value of [1, 2, 3]) {
      stream.send(Uint8Array.of(value))
      stream.read()
      await until(() => messages.length === value)
    }
    stream.halfClose()
    stream.read()
    await until(() => end() !== undefined)
    expect([messages, end()]).toEqual([[[1], [2], [3]], { kind: 'ok' }])
  })

  it('send metadata and share a connection', async () => {
    const seen: unknown[] = []
    const { port, connections } = await serve((stream, headers) => {
      seen.push(headers['x-team'])
      begin(stream, 7)
      stream.end()
    })
    const grpc = createGrpcClient()
    ends.push(grpc.close)
    const target = { host: '127.0.0.1', port, tls: undefined, tlsKey: '', egress: anywhere }
    const opened = grpc.stream(target, '/a.B/C', { maxMessageBytes: 1_000 })
    for (const team of ['a', 'b']) {
      const end = await new Promise<GrpcStreamEnd>((resolve) => {
        const handler = { onMessage() {}, onDrain() {}, onEnd: resolve }
        void Promise.resolve(opened(handler, [['x-team', team]])).then((stream) => stream.read())
      })
      expect(end).toMatchObject({ kind: 'failed', status: 7 })
    }
    expect([seen, connections()]).toEqual([['a', 'b'], 1])
  })

  it('deliver one message for each read', async () => {
    const { port } = await serve((stream) => {
      begin(stream)
      for (let index = 0; index < 5; index++) stream.write(frame(Uint8Array.of(index)))
    })
    const { stream, messages, until } = await open(port)
    stream.read()
    await until(() => messages.length === 1)
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate)
    expect(messages).toEqual([[0]])
    stream.read()
    await until(() => messages.length === 2)
    expect(messages).toEqual([[0], [1]])
  })

  it('report a server that does not read, and its next read', async () => {
    const opened = Promise.withResolvers<ServerHttp2Stream>()
    const { port } = await serve((stream) => {
      opened.resolve(stream)
      begin(stream)
    })
    const { stream, until, drains } = await open(port)
    const served = await opened.promise
    const message = new Uint8Array(32 * 1024)
    let sent = 0
    while (stream.send(message)) {
      sent += 1
      if (sent > 1_000) throw new Error('no back pressure')
      await new Promise(setImmediate)
    }
    // Window of the stream, buffer for repetitions, and one message over the limit.
    expect(sent * message.byteLength).toBeLessThan(1024 * 1024)
    expect(drains()).toBe(0)
    served.resume()
    await until(() => drains() === 1)
  })

  it('report the next read when the bytes of a repetition leave at once', async () => {
    const refused = Promise.withResolvers<ServerHttp2Stream>()
    let streams = 0
    const { port } = await serve((stream) => {
      streams += 1
      if (streams === 1) refused.resolve(stream)
      else begin(stream)
      stream.resume()
    }, 1024 * 1024)
    const { stream, until, drains } = await open(port)
    stream.send(Uint8Array.of(1))
    const first = await refused.promise
    first.close(7)
    await new Promise((resolve) => first.once('close', resolve))
    let isFull = false
    while (!isFull) {
      await new Promise(setImmediate)
      if (streams > 1) throw new Error('the repetition precedes the messages')
      isFull = !stream.send(new Uint8Array(16_000))
    }
    await until(() => drains() === 1)
  })

  it('fail on a message over the limit', async () => {
    const { port } = await serve((stream) => {
      begin(stream)
      stream.write(frame(new Uint8Array(5_000)))
    })
    const { stream, messages, until, end } = await open(port, [], 1_000)
    stream.read()
    await until(() => end() !== undefined)
    expect([messages, end()]).toMatchObject([[], { kind: 'failed', status: 8 }])
  })

  it('fail without a server, and when it disconnects', async () => {
    const { port } = await serve((stream) => stream.session?.destroy())
    const broken = await open(port)
    broken.stream.send(Uint8Array.of(1))
    broken.stream.read()
    await broken.until(() => broken.end() !== undefined)
    expect(broken.end()).toMatchObject({ kind: 'failed' })
    const missing = await open(1)
    missing.stream.send(Uint8Array.of(1))
    missing.stream.read()
    await missing.until(() => missing.end() !== undefined)
    expect(missing.end()).toMatchObject({ kind: 'failed', status: 14 })
  })

  it('reset the stream of the server when cancelled, without an end', async () => {
    const reset = Promise.withResolvers<number>()
    const served = Promise.withResolvers<void>()
    const { port } = await serve((stream) => {
      begin(stream)
      served.resolve()
      stream.on('close', () => reset.resolve(stream.rstCode))
    })
    const { stream, end } = await open(port)
    stream.send(Uint8Array.of(1))
    stream.read()
    await served.promise
    stream.cancel()
    expect(await reset.promise).toBe(8)
    expect(end()).toBeUndefined()
  })
})
