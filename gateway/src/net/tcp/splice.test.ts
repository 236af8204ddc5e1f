import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { reset, type SpliceOutcome, splice } from './splice.ts'

const servers: Server[] = []
const sockets: Socket[] = []

afterEach(() => {
  for (const server of servers.splice(0)) server.close()
  for (const socket of sockets.splice(0)) socket.destroy()
})

describe('splice', () => {
  it('forwards in both directions, and ends when both sides have ended', async () => {
    const { client, upstream, end, counts } = await spliced()
    client.write('question')
    expect(await read(upstream, 8)).toBe('question')
    upstream.write('answer')
    expect(await read(client, 6)).toBe('answer')
    client.end()
    upstream.end()
    expect(await end).toEqual({ kind: 'complete' })
    expect(counts).toEqual({ received: 8, sent: 6 })
  })

  it('forwards data that was unshifted before', async () => {
    const { client, upstream } = await spliced({
      async prepare(near, far) {
        far.write('peeked and more')
        await once(near, 'readable')
        const peeked = near.read()
        near.unshift(peeked)
      },
    })
    expect(await read(upstream, 15)).toBe('peeked and more')
    client.destroy()
  })

  it('delivers all data to a half-closed side', async () => {
    const { client, upstream, end } = await spliced()
    client.end('all I have to say')
    await once(upstream.resume(), 'end')
    const answer = randomBytes(3_000_000)
    const received = readAll(client)
    upstream.end(answer)
    expect((await received).equals(answer)).toBe(true)
    expect(await end).toEqual({ kind: 'complete' })
  })

  it('forwards the end of a side that ended without data before', async () => {
    const { upstream, end } = await spliced({
      async prepare(near, far) {
        far.end()
        await once(near, 'end')
      },
    })
    expect(await readAll(upstream)).toHaveLength(0)
    upstream.end()
    expect(await end).toEqual({ kind: 'complete' })
  })

  it('permits the other side to end first', async () => {
    const { client, upstream, end } = await spliced()
    upstream.end('goodbye')
    expect((await readAll(client)).toString()).toBe('goodbye')
    client.end('one more thing')
    expect((await readAll(upstream)).toString()).toBe('one more thing')
    expect(await end).toEqual({ kind: 'complete' })
  })

  it('forwards large data in both directions unchanged', async () => {
    const { client, upstream, end, counts } = await spliced()
    const up = randomBytes(20_000_000)
    const down = randomBytes(20_000_000)
    const [atUpstream, atClient] = [readAll(upstream), readAll(client)]
    client.end(up)
    upstream.end(down)
    expect(digest(await atUpstream)).toBe(digest(up))
    expect(digest(await atClient)).toBe(digest(down))
    expect(await end).toEqual({ kind: 'complete' })
    expect(counts).toEqual({ received: up.length, sent: down.length })
  })

  it('does not release a chunk retained by the other side', async () => {
    const [client, near] = await pair()
    const kept = new PassThrough({ highWaterMark: 4_000_000 })
    const options = { idleTimeoutMs: 60_000, onReceived() {}, onSent() {}, onEnd() {} }
    splice(near, kept, options)
    const sent = randomBytes(2_000_000)
    const received = readAll(client)
    client.end(sent)
    expect(digest(await received)).toBe(digest(sent))
  })

  it('stops reading while the other side is full', async () => {
    const { client, upstream, counts } = await spliced()
    upstream.pause()
    client.write(Buffer.alloc(64_000_000))
    // Buffers of the system take a few megabytes; then no more data flows.
    await vi.waitUntil(() => counts.received > 0)
    let before = -1
    while (before !== counts.received) {
      before = counts.received
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    expect(counts.received).toBeLessThan(32_000_000)
    upstream.resume()
    await vi.waitUntil(() => counts.received === 64_000_000, { timeout: 5_000 })
  })

  it('aborts the upstream when the client fails', async () => {
    const { client, upstream, end } = await spliced()
    const broken = once(upstream, 'error')
    client.resetAndDestroy()
    expect(await broken).toMatchObject([{ code: 'ECONNRESET' }])
    expect(await end).toMatchObject({ kind: 'broken', by: 'client' })
  })

  it('aborts the client when the upstream fails, so that data appears truncated', async () => {
    const { client, upstream, end } = await spliced()
    const broken = once(client, 'error')
    upstream.write('half an answ')
    expect(await read(client, 12)).toBe('half an answ')
    upstream.resetAndDestroy()
    expect(await broken).toMatchObject([{ code: 'ECONNRESET' }])
    expect(await end).toMatchObject({ kind: 'broken', by: 'upstream' })
  })

  it('aborts the other side when one side is closed locally', async () => {
    const { upstream, near, end } = await spliced()
    const broken = once(upstream, 'error')
    near.destroy()
    expect(await broken).toMatchObject([{ code: 'ECONNRESET' }])
    expect(await end).toEqual({ kind: 'broken', by: 'client', error: undefined })
  })

  it('ends once and closes both sides in any sequence of events', async () => {
    const step = fc.record({
      by: fc.constantFrom('client' as const, 'upstream' as const),
      does: fc.constantFrom('write' as const, 'write much' as const, 'end' as const, 'break' as const),
      waits: fc.constantFrom('not' as const, 'a turn' as const, 'a moment' as const),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
        const both = await spliced()
        both.client.on('error', () => {}).resume()
        both.upstream.on('error', () => {}).resume()
        for (const { by, does, waits } of steps) {
          const side = both[by]
          if (does === 'break') side.resetAndDestroy()
          else if (does === 'end') side.end()
          else if (side.writable) side.write(Buffer.alloc(does === 'write' ? 10 : 3_000_000))
          if (waits === 'a turn') await new Promise((resolve) => setImmediate(resolve))
          if (waits === 'a moment') await new Promise((resolve) => setTimeout(resolve, 3))
        }
        both.client.end()
        both.upstream.end()
        await both.end
        expect(both.near.closed).toBe(true)
        expect(both.ends()).toBe(1)
      }),
      { numRuns: 80 },
    )
  }, 20_000)

  it('ends idle connections only', async () => {
    const { client, upstream, end } = await spliced({ idleTimeoutMs: 800 })
    let ended = false
    void end.then(() => {
      ended = true
    })
    for (let sent = 0; sent < 6; sent++) {
      const [from, to] = sent % 2 === 0 ? [client, upstream] : [upstream, client]
      from.write('.')
      await read(to, 1)
      await new Promise((resolve) => setTimeout(resolve, 150))
    }
    expect(ended).toBe(false)
    client.on('error', () => {})
    upstream.on('error', () => {})
    expect(await end).toEqual({ kind: 'idle' })
  })
})

describe('reset', () => {
  it('aborts a connection', async () => {
    const [far, near] = await pair()
    const broken = once(far, 'error')
    reset(near)
    expect(await broken).toMatchObject([{ code: 'ECONNRESET' }])
  })

  it('closes a connection with a pending FIN at any moment', async () => {
    const later = [
      (act: () => void) => act(),
      process.nextTick,
      queueMicrotask,
      setImmediate,
      (act: () => void) => setTimeout(act, 5),
    ]
    for (const wait of later) {
      const [far, near] = await pair()
      const closed = once(near, 'close')
      far.on('error', () => {})
      near.end()
      wait(() => reset(near))
      await closed
    }
  })

  it('has no effect on a closed connection', async () => {
    const [far, near] = await pair()
    far.on('error', () => {})
    near.destroy()
    reset(near)
    await once(near, 'close')
    reset(near)
  })
})

type Setup = { idleTimeoutMs?: number; prepare?: (near: Socket, far: Socket) => Promise<void> }

/** A client and an upstream, as seen by their peers, and the splice between them. */
async function spliced({ idleTimeoutMs = 60_000, prepare }: Setup = {}) {
  const [client, near] = await pair()
  const [upstream, nearUpstream] = await pair()
  await prepare?.(near, client)
  const counts = { received: 0, sent: 0 }
  let ends = 0
  const end = new Promise<SpliceOutcome>((resolve) => {
    splice(near, nearUpstream, {
      idleTimeoutMs,
      onReceived(bytes) {
        counts.received += bytes
      },
      onSent(bytes) {
        counts.sent += bytes
      },
      onEnd(outcome) {
        ends += 1
        resolve(outcome)
      },
    })
  })
  return { client, upstream, near, counts, end, ends: () => ends }
}

/** Both ends of a connection. */
async function pair(): Promise<[far: Socket, near: Socket]> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const accepted = once(server, 'connection')
  const far = connect({ port: address.port, host: '127.0.0.1', allowHalfOpen: true })
  const [near] = (await accepted) as [Socket]
  sockets.push(far, near)
  return [far, near]
}

async function read(socket: Socket, bytes: number): Promise<string> {
  for (;;) {
    const chunk = socket.read(bytes)
    if (chunk !== null) return chunk.toString()
    await once(socket, 'readable')
  }
}

function readAll(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  return new Promise((resolve, reject) => {
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('end', () => resolve(Buffer.concat(chunks)))
    socket.on('error', reject)
  })
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
