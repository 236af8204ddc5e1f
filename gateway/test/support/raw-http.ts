import { connect, type Socket } from 'node:net'
import { endAfter, type Lifetime } from './cleanup.ts'
import { until } from './wait.ts'

/** A bare socket, for requests that no well-behaved client can be made to send. */
export type RawConnection = {
  socket: Socket
  send(bytes: string | Uint8Array): void
  /** Everything received so far. */
  received(): string
  /** Resolves when the text has arrived. */
  receives(text: string, limitMs?: number): Promise<string>
  /** Everything received, once the other side has closed. */
  closed(limitMs?: number): Promise<string>
}

export async function rawConnect(port: number, lifetime: Lifetime = 'test'): Promise<RawConnection> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  endAfter(lifetime, () => {
    socket.destroy()
  })
  let received = ''
  let ended = false
  socket.setEncoding('latin1')
  socket.on('data', (text) => {
    received += String(text)
  })
  socket.on('end', () => {
    ended = true
  })
  socket.on('close', () => {
    ended = true
  })
  // A reset is one of the ways in which a server refuses; `closed` sees it.
  socket.on('error', () => {
    ended = true
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', () => resolve())
    socket.once('error', reject)
  })
  return {
    socket,
    send: (bytes) => {
      socket.write(bytes)
    },
    received: () => received,
    receives: (text, limitMs) =>
      until(`"${text}" arrives`, () => received.includes(text) && received, limitMs),
    async closed(limitMs) {
      await until('the server closes the connection', () => ended, limitMs)
      return received
    },
  }
}

/**
 * Sends one raw request and returns the response up to the server's close, a pause, or a timeout without any
 * byte.
 */
export async function rawExchange(
  port: number,
  request: string,
  { silenceMs = 400, patienceMs = 8000 }: { silenceMs?: number; patienceMs?: number } = {},
): Promise<string> {
  const connection = await rawConnect(port)
  connection.send(request)
  const started = Date.now()
  let last = started
  let size = 0
  await until('the server answers or closes', () => {
    const now = connection.received().length
    if (now !== size) {
      size = now
      last = Date.now()
    }
    if (connection.socket.readableEnded || connection.socket.destroyed) return true
    return (size > 0 && Date.now() - last > silenceMs) || Date.now() - started > patienceMs
  })
  connection.socket.destroy()
  return connection.received()
}

/** Status codes of the answers in a raw byte stream, in order. */
export function statusesOf(received: string): number[] {
  return [...received.matchAll(/(?:^|\n|\})HTTP\/1\.1 (\d{3})/g)].map((match) => Number(match[1]))
}
