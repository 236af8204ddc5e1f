import { createServer, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { anywhere } from './egress/egress.ts'
import { createGrpcClient, GrpcError } from './grpc-client.ts'
import type { GrpcStreamEnd } from './grpc-stream.ts'
import { encodeFields } from './http2-client/hpack/literals.ts'

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

function frame(type: number, flags: number, streamId: number, payload: Uint8Array | string = ''): Buffer {
  const bytes = typeof payload === 'string' ? Buffer.from(payload, 'hex') : payload
  const head = Buffer.alloc(9)
  head.writeUIntBE(bytes.byteLength, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(streamId, 5)
  return Buffer.concat([head, bytes])
}

const uint32 = (value: number) => value.toString(16).padStart(8, '0')
const settings = frame(4, 0, 0)
const goAway = (lastId: number) => frame(7, 0, 0, uint32(lastId) + uint32(0))
const head = encodeFields([
  [':status', '200'],
  ['content-type', 'application/grpc'],
])
const message = Buffer.from([0, 0, 0, 0, 2, 7, 9])
const trailers = encodeFields([['grpc-status', '0']])
const answer = (id: number) =>
  Buffer.concat([frame(1, 4, id, head), frame(0, 0, id, message), frame(1, 5, id, trailers)])

type Received = { type: number; flags: number; streamId: number; payload: Buffer }

/** A server that writes bytes as it likes. `respond` receives each frame of a connection. */
async function serve(respond: (frame: Received, socket: Socket, connection: number) => void) {
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    const own = connections
    let rest = Buffer.alloc(0)
    let isOpen = false
    ends.push(() => socket.destroy())
    socket.on('error', () => {})
    socket.on('data', (bytes: Buffer) => {
      rest = Buffer.concat([rest, bytes])
      if (!isOpen && rest.length >= 24) {
        isOpen = true
        rest = rest.subarray(24)
      }
      while (isOpen && rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
        const end = 9 + rest.readUIntBE(0, 3)
        const payload = rest.subarray(9, end)
        const received = { type: rest[3] ?? 0, flags: rest[4] ?? 0, streamId: rest.readUInt32BE(5), payload }
        rest = rest.subarray(end)
        respond(received, socket, own)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => server.close())
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const grpc = createGrpcClient()
  ends.push(grpc.close)
  const method = grpc.method(targetAt(address.port), '/a.B/C')
  const call = (bytes: Uint8Array = Uint8Array.of(1), deadlineMs = 10_000) => method(bytes, { deadlineMs })
  return { call, port: address.port, connections: () => connections }
}

const targetAt = (port: number) => ({ host: '127.0.0.1', port, tls: undefined, tlsKey: '', egress: anywhere })
const isPreface = ({ type, flags }: Received) => type === 4 && flags === 0
const isEnd = ({ type, flags }: Received) => type === 0 && flags === 1

/** Sends `bytes` on the first connection after a request, and serves the next one. */
function hostile(bytes: Buffer) {
  return serve((received, socket, connection) => {
    if (isPreface(received)) socket.write(settings)
    if (isEnd(received)) socket.write(connection === 1 ? bytes : answer(received.streamId))
  })
}

const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    (error: unknown) => (error instanceof GrpcError ? error : String(error)),
  )

describe('a connection ends when the server', () => {
  it.each([
    ['sends a frame that is too large', Buffer.from('00400100000000000100', 'hex')],
    ['pushes a response', frame(5, 4, 1, uint32(2))],
    ['uses an unknown stream', frame(0, 0, 3, '00')],
    ['uses a stream of the server', frame(0, 0, 2, '00')],
    ['sends an invalid header block', frame(1, 4, 1, 'ff')],
    ['interrupts a header block', Buffer.concat([frame(1, 0, 1, head), settings])],
    ['continues no header block', frame(9, 4, 1, head)],
    ['sends endless headers', Buffer.concat([frame(1, 0, 1, head), ...Array(20).fill(frame(9, 0, 1, head))])],
    ['sends padding beyond the frame', frame(0, 8, 1, 'ff00')],
    ['enlarges a window by 0', frame(8, 0, 0, uint32(0))],
    ['enlarges a window beyond the limit', frame(8, 0, 0, uint32(0x7fffffff))],
    ['sets a window beyond the limit', frame(4, 0, 0, `0004${uint32(0xffffffff)}`)],
    ['sends settings of a stream', frame(4, 0, 1)],
    ['sends settings of a wrong size', frame(4, 0, 0, '00')],
    ['sends a ping of a wrong size', frame(6, 0, 0, '00')],
    ['sends many settings', Buffer.concat(Array(2_000).fill(settings))],
    ['sends many pings', Buffer.concat(Array(2_000).fill(frame(6, 0, 0, Buffer.alloc(8))))],
    ['sends many empty frames', Buffer.concat([frame(1, 4, 1, head), ...Array(2_000).fill(frame(0, 0, 1))])],
  ])('%s, and the next call uses another', async (_, bytes) => {
    const { call, connections } = await hostile(bytes)
    expect(await failureOf(call())).toBeInstanceOf(GrpcError)
    expect([...(await call())]).toEqual([7, 9])
    expect(connections()).toBe(2)
  })

  it('does not support HTTP/2', async () => {
    const { call } = await serve((_, socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    expect(await failureOf(call())).toMatchObject({ status: 14, message: expect.stringContaining('HTTP/2') })
  })
})

it('a stream fails when the server exceeds its window', async () => {
  const grpc = createGrpcClient()
  ends.push(grpc.close)
  const { port } = await serve((received, socket) => {
    if (isPreface(received)) socket.write(settings)
    if (received.type === 1) socket.write(Buffer.concat([frame(1, 4, 1, head), ...data]))
  })
  const data = Array<Buffer>(5).fill(frame(0, 0, 1, Buffer.alloc(16_384)))
  const open = grpc.stream(targetAt(port), '/a.B/C', { maxMessageBytes: 1_000_000 })
  const ended = Promise.withResolvers<GrpcStreamEnd>()
  const stream = await open({ onMessage() {}, onDrain() {}, onEnd: ended.resolve })
  stream.send(Uint8Array.of(1))
  expect(await ended.promise).toMatchObject({ status: 14, reason: expect.stringContaining('window') })
})

describe('a call fails, and its connection remains, when the response', () => {
  it.each([
    [
      'has another media type',
      encodeFields([
        [':status', '200'],
        ['content-type', 'text/html'],
      ]),
      2,
    ],
    ['has status 503', encodeFields([[':status', '503']]), 14],
    ['has fields over the limit', encodeFields([[':status', '200'], ...Array(2_000).fill(['a', 'b'])]), 8],
  ])('%s', async (_, block, status) => {
    const { call, connections } = await serve((received, socket) => {
      if (isPreface(received)) socket.write(settings)
      if (isEnd(received))
        socket.write(received.streamId === 1 ? frame(1, 4, 1, block) : answer(received.streamId))
    })
    expect(await failureOf(call())).toMatchObject({ status })
    expect([...(await call())]).toEqual([7, 9])
    expect(connections()).toBe(1)
  })

  it.each([
    ['has no message', Buffer.concat([frame(1, 4, 1, head), frame(1, 5, 1, trailers)])],
    [
      'has two messages',
      Buffer.concat([frame(1, 4, 1, head), frame(0, 0, 1, message), frame(0, 0, 1, message)]),
    ],
    [
      'has half a message',
      Buffer.concat([frame(1, 4, 1, head), frame(0, 0, 1, '0000000002'), frame(1, 5, 1, trailers)]),
    ],
    ['has a compressed message', Buffer.concat([frame(1, 4, 1, head), frame(0, 0, 1, '010000000107')])],
    ['has a message over the limit', Buffer.concat([frame(1, 4, 1, head), frame(0, 0, 1, '00ffffffff07')])],
    ['has data before its head', frame(0, 0, 1, message)],
    ['has no trailers', Buffer.concat([frame(1, 4, 1, head), frame(0, 1, 1, message)])],
    ['has two heads', Buffer.concat([frame(1, 4, 1, head), frame(1, 4, 1, head)])],
    ['is a reset', frame(3, 0, 1, uint32(2))],
  ])('%s', async (_, bytes) => {
    const { call, connections } = await serve((received, socket) => {
      if (isPreface(received)) socket.write(settings)
      if (isEnd(received)) socket.write(received.streamId === 1 ? bytes : answer(received.streamId))
    })
    expect(await failureOf(call())).toBeInstanceOf(GrpcError)
    expect([...(await call())]).toEqual([7, 9])
    expect(connections()).toBe(1)
  })
})

describe('calls', () => {
  it('receive responses in single bytes, and in padded frames', async () => {
    const { call } = await serve((received, socket) => {
      if (isPreface(received)) socket.write(settings)
      if (!isEnd(received)) return
      socket.setNoDelay(true)
      const bytes = Buffer.concat([
        frame(1, 0x0c | 0x20, 1, Buffer.concat([Buffer.from([2, 0, 0, 0, 0, 9]), head, Buffer.alloc(2)])),
        frame(0, 8, 1, Buffer.concat([Buffer.from([3]), message, Buffer.alloc(3)])),
        frame(1, 5, 1, trailers),
      ])
      const write = (at: number) => {
        if (at < bytes.length) socket.write(bytes.subarray(at, at + 1), () => setImmediate(write, at + 1))
      }
      write(0)
    })
    expect([...(await call())]).toEqual([7, 9])
  })

  it('fail when the connection ends at any byte of a response', async () => {
    const whole = answer(1)
    for (let length = 0; length < whole.length; length += 1) {
      const { call } = await serve((received, socket) => {
        if (isPreface(received)) socket.write(settings)
        if (isEnd(received)) socket.end(whole.subarray(0, length))
      })
      expect(await failureOf(call())).toMatchObject({ status: 14 })
    }
  })

  it('move to another connection when the server has not processed them', async () => {
    const { call, connections } = await serve((received, socket, connection) => {
      if (isPreface(received)) socket.write(settings)
      if (isEnd(received)) socket.write(connection === 1 ? goAway(0) : answer(received.streamId))
    })
    expect([...(await call())]).toEqual([7, 9])
    expect(connections()).toBe(2)
  })

  it('share a connection with late responses to cancelled ones', async () => {
    const ids: number[] = []
    const { call, connections } = await serve((received, socket) => {
      if (isPreface(received)) socket.write(settings)
      if (!isEnd(received)) return
      ids.push(received.streamId)
      if (ids.length > 1_200) socket.write(Buffer.concat(ids.map(answer)))
    })
    await Promise.all(Array.from({ length: 1_200 }, () => failureOf(call(Uint8Array.of(1), 500))))
    expect(ids).toHaveLength(1_200)
    expect([...(await call())]).toEqual([7, 9])
    expect(connections()).toBe(1)
  })

  it('fail when connections end before they permit a stream', async () => {
    const { call, connections } = await serve((received, socket) => {
      if (isPreface(received)) socket.end(frame(4, 0, 0, `0003${uint32(0)}`))
    })
    expect(await failureOf(call())).toMatchObject({ status: 14 })
    expect(connections()).toBe(1)
  })

  it('complete on a connection that the server closes behind them', async () => {
    const { call, connections } = await serve((received, socket) => {
      if (isPreface(received)) socket.write(settings)
      if (isEnd(received)) socket.write(Buffer.concat([goAway(received.streamId), answer(received.streamId)]))
    })
    for (let count = 1; count <= 2; count += 1) {
      expect([...(await call())]).toEqual([7, 9])
      expect(connections()).toBe(count)
    }
  })

  it('are repeated on refused streams, a limited number of times', async () => {
    let refusals = 0
    const { call, connections } = await serve((received, socket) => {
      if (isPreface(received)) socket.write(settings)
      if (!isEnd(received)) return
      refusals += 1
      const isRefused = refusals !== 3
      socket.write(isRefused ? frame(3, 0, received.streamId, uint32(7)) : answer(received.streamId))
    })
    expect([...(await call())]).toEqual([7, 9])
    expect(await failureOf(call())).toMatchObject({ status: 14 })
    expect([refusals, connections()]).toEqual([8, 1])
  })

  it('wait for a stream when the server permits one', async () => {
    const active = new Set<number>()
    let most = 0
    const { call, connections } = await serve((received, socket) => {
      if (isPreface(received)) socket.write(frame(4, 0, 0, `0003${uint32(1)}`))
      if (received.type === 1) most = Math.max(most, active.add(received.streamId).size)
      if (!isEnd(received)) return
      setImmediate(() => {
        active.delete(received.streamId)
        socket.write(answer(received.streamId))
      })
    })
    expect(await Promise.all(Array.from({ length: 20 }, () => call()))).toHaveLength(20)
    expect([most, connections()]).toEqual([1, 1])
  })

  it('send messages within the windows of the server', async () => {
    const chunks: Buffer[] = []
    const { call } = await serve((received, socket) => {
      if (isPreface(received)) socket.write(frame(4, 0, 0, `0004${uint32(1_000)}`))
      if (received.type !== 0) return
      expect(received.payload.length).toBeLessThanOrEqual(1_000)
      chunks.push(Buffer.from(received.payload))
      const more = uint32(received.payload.length || 1)
      socket.write(Buffer.concat([frame(8, 0, 0, more), frame(8, 0, received.streamId, more)]))
      if (isEnd(received)) socket.write(answer(received.streamId))
    })
    const sent = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251))
    await call(sent)
    expect(Buffer.concat(chunks).subarray(5).equals(sent)).toBe(true)
  })

  it('fail at their deadline before the settings of the server', async () => {
    const { call } = await serve(() => {})
    expect(await failureOf(call(Uint8Array.of(1), 50))).toMatchObject({ status: 4 })
  })

  it('refuse metadata that is not a header field', async () => {
    const grpc = createGrpcClient()
    ends.push(grpc.close)
    const call = grpc.method(targetAt(1), '/a.B/C')
    for (const metadata of [{ 'x-a': 'b\r\nc' }, { 'X-A': 'b' }, { te: 'gzip' }]) {
      const failure = await failureOf(call(new Uint8Array(), { deadlineMs: 1_000, metadata }))
      expect(failure).toMatchObject({ status: 13 })
    }
  })
})
