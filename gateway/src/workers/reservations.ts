import { type AddressInfo, createServer } from 'node:net'
import { describeListenError } from '../data-plane/open-server.ts'
import type { AddressRequest } from './messages/plane-protocol.ts'

/**
 * Checks that addresses are free before several data planes listen on them. With `SO_REUSEPORT` the system
 * would accept a port in use by another gateway, and divide its connections.
 */
export type Reservations = {
  /** Starts a preparation. `open` are the addresses in use by the data planes. */
  begin(open: readonly string[]): void
  /** The port to listen on; that assigned by the system for port 0. Rejects if the address is not free. */
  reserve(address: AddressRequest): Promise<number>
}

export function createReservations(): Reservations {
  const ports = new Map<string, Promise<number>>()
  return {
    begin(open) {
      for (const key of ports.keys()) if (!open.includes(key)) ports.delete(key)
    },
    reserve(address) {
      const key = `${address.host}:${address.port}`
      const known = ports.get(key)
      if (known !== undefined) return known
      const port = freePort(address)
      ports.set(key, port)
      return port
    },
  }
}

/** Binds an address without `SO_REUSEPORT`, which fails if any other socket has it, and closes it. */
function freePort(address: AddressRequest): Promise<number> {
  const { host, port } = address
  const server = createServer((socket) => socket.destroy())
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(describeListenError(error, address)))
    server.listen({ host: host === '::' ? undefined : host, port }, () => {
      const { port: assigned } = server.address() as AddressInfo
      server.close(() => resolve(assigned))
    })
  })
}
