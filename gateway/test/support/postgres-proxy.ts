import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { endAfter } from './cleanup.ts'

/** A proxy between a client and Postgres that can inject faults. */
export type PostgresProxy = {
  /** The address of a database, by way of the proxy. */
  through(url: string): string
  /** As a connection pooler does. */
  dropNotifications: boolean
  /**
   * Takes connections and bytes, and passes nothing on: a server that hangs, or a network that drops packets.
   */
  hangs: boolean
  /** Hangs once a client sends this text. */
  hangsAt: string | undefined
  /** Answers that the server has completed: one for each round trip. */
  roundTrips: number
  /** Time that each chunk from the server waits. */
  delayMs: number
  /** Breaks all connections. */
  cut(): void
}

const notification = 'A'.charCodeAt(0)
const readyForQuery = 'Z'.charCodeAt(0)

export async function startPostgresProxy(port: number): Promise<PostgresProxy> {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    const filter = createFilter((bytes) => {
      if (bytes[0] === readyForQuery) proxy.roundTrips += 1
      if (proxy.delayMs === 0) client.write(bytes)
      else setTimeout(() => client.write(bytes), proxy.delayMs)
    })
    client.on('data', (bytes: Buffer) => {
      if (proxy.hangsAt !== undefined && bytes.includes(proxy.hangsAt)) proxy.hangs = true
      if (!proxy.hangs) upstream.write(bytes)
    })
    upstream.on('data', (bytes: Buffer) => proxy.hangs || filter(bytes, proxy.dropNotifications))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const ownPort = address !== null && typeof address === 'object' ? address.port : 0
  const proxy: PostgresProxy = {
    through: (url) => url.replace(`:${port}/`, `:${ownPort}/`),
    dropNotifications: false,
    hangs: false,
    hangsAt: undefined,
    roundTrips: 0,
    delayMs: 0,
    cut() {
      for (const socket of sockets) socket.destroy()
    },
  }
  endAfter('test', () => {
    server.close()
    proxy.cut()
  })
  return proxy
}

/** Messages of the server are a letter, a length that counts itself, and a body. */
function createFilter(pass: (bytes: Buffer) => void): (bytes: Buffer, dropNotifications: boolean) => void {
  let rest = Buffer.alloc(0)
  return (bytes, dropNotifications) => {
    rest = Buffer.concat([rest, bytes])
    while (rest.length >= 5) {
      const end = 1 + rest.readUInt32BE(1)
      if (rest.length < end) return
      if (!dropNotifications || rest[0] !== notification) pass(rest.subarray(0, end))
      rest = rest.subarray(end)
    }
  }
}
