import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { type LinkedPeers, linkPeers } from '../../../test/support/linked-peers.ts'
import { createPlaneMemories } from '../../../test/support/plane-memories.ts'
import { until } from '../../../test/support/wait.ts'
import { readAll } from '../http/body.ts'
import { createHttpClient, type HttpClient } from './http-client.ts'
import type { OutgoingRequest } from './send.ts'

const closers: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

/** A server that counts its open connections, and the most at the same time. */
async function countingServer(answer: (response: ServerResponse) => void) {
  const server: Server = createServer((_, response) => answer(response))
  const sockets = new Set<Socket>()
  let most = 0
  let total = 0
  server.on('connection', (socket) => {
    total += 1
    sockets.add(socket)
    // The end of another connection may be read after the start of this one.
    setTimeout(() => {
      most = Math.max(most, sockets.size)
    }, 20)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((closed) => server.close(closed))
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { origin, open: () => sockets.size, most: () => most, total: () => total }
}

type Limits = { maxConnections: number; maxQueue: number }

/** Clients of two data planes. */
function clients(limits: Limits): HttpClient[] {
  const linked: LinkedPeers = linkPeers(2)
  const created = createPlaneMemories(2).map((memory, plane) =>
    createHttpClient({
      ...{ connectTimeoutMs: 5_000, keepAliveMs: 60_000, firstByteTimeoutMs: 20_000, idleTimeoutMs: 20_000 },
      ...limits,
      memory,
      ...(linked.peers[plane] === undefined ? {} : { peers: linked.peers[plane] }),
    }),
  )
  for (const client of created) closers.push(client.close)
  closers.push(linked.close)
  return created
}

function outgoing(origin: string): OutgoingRequest {
  return { origin, path: '/', method: 'GET', headers: {}, body: undefined }
}

async function call(client: HttpClient | undefined, origin: string): Promise<string> {
  const reply = await client?.send(outgoing(origin))
  return String(await readAll(reply?.body, 1_000, 'upstream_too_large'))
}

describe('limits of upstreams over data planes', () => {
  it('reject calls beyond the connections and the queue of the process', async () => {
    const waiting: ServerResponse[] = []
    const { origin } = await countingServer((response) => waiting.push(response))
    const [one, other] = clients({ maxConnections: 1, maxQueue: 2 })
    const calls = [call(one, origin), call(other, origin), call(one, origin)]
    await expect(call(other, origin)).rejects.toMatchObject({ code: 'upstream_connect' })
    await expect(call(one, origin)).rejects.toMatchObject({ code: 'upstream_connect' })
    const answers = setInterval(() => waiting.shift()?.end('done'), 5)
    expect(await Promise.all(calls)).toEqual(['done', 'done', 'done'])
    expect(await call(other, origin)).toBe('done')
    clearInterval(answers)
  })

  it('close idle connections that another data plane needs', async () => {
    const { origin, open, total } = await countingServer((response) => response.end('done'))
    const [one, other] = clients({ maxConnections: 2, maxQueue: 10 })
    expect(await Promise.all([call(one, origin), call(one, origin)])).toEqual(['done', 'done'])
    expect(open()).toBe(2)
    expect(await Promise.all([call(other, origin), call(other, origin)])).toEqual(['done', 'done'])
    expect(await call(one, origin)).toBe('done')
    expect(total()).toBeGreaterThan(2)
    await until('the ends of idle connections are read', () => open() <= 2)
  })

  it('serve a call that waits for a connection on one of its own data plane', async () => {
    const waiting: ServerResponse[] = []
    const { origin, total } = await countingServer((response) => waiting.push(response))
    const [one, other] = clients({ maxConnections: 2, maxQueue: 10 })
    const first = call(one, origin)
    await until('the first call', () => waiting.length === 1)
    const busy = call(other, origin)
    await until('the second call', () => waiting.length === 2)
    const third = call(one, origin)
    waiting[0]?.end('first')
    expect(await first).toBe('first')
    await until('the third call', () => waiting.length === 3)
    for (const response of waiting.slice(1)) response.end('done')
    expect(await Promise.all([busy, third])).toEqual(['done', 'done'])
    expect(total()).toBe(2)
  })

  it('permit as many open connections as configured, busy and idle ones together', async () => {
    const { origin, most } = await countingServer((response) => setImmediate(() => response.end('done')))
    const both = clients({ maxConnections: 3, maxQueue: 1_000 })
    const callers = Array.from({ length: 8 }, async (_, caller) => {
      for (let round = 0; round < 15; round++) {
        expect(await call(both[(caller + round) % 2], origin)).toBe('done')
      }
    })
    await Promise.all(callers)
    await until('open connections are counted', () => most() > 1)
    expect(most()).toBeLessThanOrEqual(3)
  })

  it('release connections whose attempt failed', async () => {
    const [one, other] = clients({ maxConnections: 1, maxQueue: 10 })
    const server = await countingServer((response) => response.end('done'))
    const closed = 'http://127.0.0.1:1'
    for (const client of [one, other, one]) {
      await expect(call(client, closed)).rejects.toMatchObject({ code: 'upstream_connect' })
    }
    expect(await call(other, server.origin)).toBe('done')
  })
})
