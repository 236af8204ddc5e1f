import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import {
  type ConnectionOptions,
  connect as connectTls,
  createServer as createTlsServer,
  type TlsOptions,
} from 'node:tls'
import { endAfter } from './cleanup.ts'

/** A TCP server of a test; it ends with the test. */
export type TcpServer = {
  readonly port: number
  /** `127.0.0.1:port`, as backends are configured. */
  readonly host: string
  /** Connections so far, the latest last. */
  readonly sockets: Socket[]
  /** Stops listening and drops its connections. */
  close(): Promise<void>
}

export function tcpServer(onConnection: (socket: Socket) => void): Promise<TcpServer> {
  return serving(createServer({ allowHalfOpen: true }), 'connection', onConnection)
}

export function tlsServer(options: TlsOptions, onConnection: (socket: Socket) => void): Promise<TcpServer> {
  const server = createTlsServer({ allowHalfOpen: true, ...options })
  server.on('tlsClientError', () => {})
  return serving(server, 'secureConnection', onConnection)
}

async function serving(
  server: Server,
  event: 'connection' | 'secureConnection',
  onConnection: (socket: Socket) => void,
): Promise<TcpServer> {
  const sockets: Socket[] = []
  // Includes connections whose handshake fails, which no event reports.
  const accepted: Socket[] = []
  server.on('connection', (socket: Socket) => accepted.push(socket))
  server.on(event, (socket: Socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    onConnection(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const close = async () => {
    for (const socket of accepted) socket.destroy()
    if (!server.listening) return
    server.close()
    await once(server, 'close')
  }
  endAfter('test', close)
  return { port: address.port, host: `127.0.0.1:${address.port}`, sockets, close }
}

/** Sends its name, and ends. */
export function namedServer(name: string): Promise<TcpServer> {
  return tcpServer((socket) => socket.resume().end(name))
}

export function echoServer(): Promise<TcpServer> {
  return tcpServer((socket) => socket.pipe(socket))
}

/**
 * A connection that may stay half-open; it ends with the test. Fails where a reset comes before it is seen to
 * be there.
 */
export async function tcpConnect(port: number): Promise<Socket> {
  return ready(connect({ host: '127.0.0.1', port, allowHalfOpen: true }), 'connect')
}

export async function tlsConnect(port: number, options: ConnectionOptions): Promise<Socket> {
  const settings = { host: '127.0.0.1', port, allowHalfOpen: true, ...options }
  return ready(connectTls(settings), 'secureConnect')
}

async function ready(socket: Socket, event: 'connect' | 'secureConnect'): Promise<Socket> {
  endAfter('test', () => {
    socket.destroy()
  })
  await once(socket, event)
  socket.on('error', () => {})
  return socket
}

/** All that comes until the other side ends; fails where it breaks off instead. */
export function readToEnd(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
    })
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`broke off after: ${text.slice(0, 100)}`)))
  })
}
