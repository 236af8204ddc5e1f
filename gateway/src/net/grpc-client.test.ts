import { createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2'
import { afterEach, describe, expect, it } from 'vitest'
import { anywhere } from './egress/egress.ts'
import { createGrpcClient, GrpcError } from './grpc-client.ts'

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

/** Echoes the message. */
async function echoServer(
  status = 0,
  words = '',
): Promise<{ server: Http2Server; port: number; connections(): number }> {
  let connections = 0
  const server = createServer()
  server.on('session', (session) => {
    connections += 1
    ends.push(() => session.destroy())
  })
  server.on('stream', (stream: ServerHttp2Stream) => {
    const parts: Buffer[] = []
    stream.on('data', (part: Buffer) => parts.push(part))
    stream.on('end', () => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () =>
        stream.sendTrailers({ 'grpc-status': String(status), 'grpc-message': words }),
      )
      stream.end(status === 0 ? Buffer.concat(parts) : undefined)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => server.close())
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { server, port: address.port, connections: () => connections }
}

function client() {
  const created = createGrpcClient()
  ends.push(created.close)
  return created
}

const at = (port: number) => ({ host: '127.0.0.1', port, tls: undefined, tlsKey: '', egress: anywhere })
const statusOf = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    (error: unknown) => (error instanceof GrpcError ? error.status : error),
  )

describe('calls', () => {
  it('return the response of the server, over one connection', async () => {
    const { port, connections } = await echoServer()
    const grpc = client()
    const calls = [grpc.method(at(port), '/a.B/C'), grpc.method(at(port), '/a.B/D')]
    const answers = await Promise.all(
      calls.map((call, index) => call(Uint8Array.of(index, 7), { deadlineMs: 5_000 })),
    )
    expect(answers.map((answer) => [...answer])).toEqual([
      [0, 7],
      [1, 7],
    ])
    expect(connections()).toBe(1)
  })

  it('fail with the status of the server', async () => {
    const { port } = await echoServer(8)
    expect(await statusOf(client().method(at(port), '/a.B/C')(new Uint8Array(), { deadlineMs: 5_000 }))).toBe(
      8,
    )
  })

  it('fail with a message of limited length', async () => {
    const { port } = await echoServer(8, 'x'.repeat(5_000))
    const call = client().method(at(port), '/a.B/C')(new Uint8Array(), { deadlineMs: 5_000 })
    await expect(call).rejects.toThrow(/^x{300}$/)
  })

  it('fail immediately without a server', async () => {
    const { server, port } = await echoServer()
    server.close()
    const startedAt = performance.now()
    const call = client().method(at(port), '/a.B/C')
    expect(await statusOf(call(new Uint8Array(), { deadlineMs: 60_000 }))).toBe(14)
    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })

  it('fail at their deadline', async () => {
    const { server, port } = await echoServer()
    server.removeAllListeners('stream')
    const call = client().method(at(port), '/a.B/C')
    expect(await statusOf(call(new Uint8Array(), { deadlineMs: 100 }))).toBe(4)
  })
})

describe('drain', () => {
  it('waits for tracked work, also later and failed work', async () => {
    const grpc = client()
    const first = Promise.withResolvers<void>()
    const second = Promise.withResolvers<void>()
    grpc.trackPending(first.promise)
    let drained = false
    const done = grpc.drain().then(() => {
      drained = true
    })
    grpc.trackPending(second.promise)
    first.reject(new Error('lost'))
    await new Promise(setImmediate)
    expect(drained).toBe(false)
    second.resolve()
    await done
    expect(drained).toBe(true)
  })
})

describe('egress policies', () => {
  const refusing = { key: 'refusing', refuses: () => 'refused by the policy' }

  it.each(['127.0.0.1', 'localhost'])(
    'end calls to %s with the reason before anything connects',
    async (host) => {
      const { port, connections } = await echoServer()
      const call = client().method({ ...at(port), host, egress: refusing }, '/a.B/C')
      await expect(call(new Uint8Array(), { deadlineMs: 5_000 })).rejects.toThrow('refused by the policy')
      expect(connections()).toBe(0)
    },
  )

  it('do not share connections', async () => {
    const { port, connections } = await echoServer()
    const grpc = client()
    const other = { ...at(port), egress: { key: 'other', refuses: () => undefined } }
    for (const target of [at(port), other]) {
      await grpc.method(target, '/a.B/C')(new Uint8Array(), { deadlineMs: 5_000 })
    }
    expect(connections()).toBe(2)
  })
})
