import { parseHostPort } from '../../lib/address/host-port.ts'
import type { Headers } from '../http/headers.ts'
import { refuseSocket } from '../http1/refusal.ts'
import type { Origin } from './connection.ts'
import type { ConnectHandler, ConnectionHandler, ConnectRequest } from './connection-handler.ts'

/** The listener behind a CONNECT request. */
export type OpenedTunnel = {
  readonly handler: ConnectionHandler
  /** The arrival of the connection there. */
  arrival(outer: Origin): { readonly origin: Origin; serve(): ConnectionHandler | undefined }
}

/**
 * Responds to a CONNECT request (RFC 9110 section 9.3.6). Its connection continues on the listener of the
 * requested port, not at the requested address: routes decide on destinations. Undefined after a refusal.
 */
export function openTunnel(
  { target, headers, socket, head }: ConnectRequest,
  { listenerAt, refused }: ConnectHandler,
  client: string,
): OpenedTunnel | undefined {
  const address = parseHostPort(target)
  if (address === undefined || address.port === 0) {
    refuseSocket(socket, { status: 400, message: 'CONNECT requires host:port' })
    return undefined
  }
  const serve = listenerAt(address.port)
  const handler = serve?.()
  if (serve === undefined || handler === undefined || handler.kind === 'connect') {
    refused(client, address.port)
    refuseSocket(socket, { status: 403, message: 'no listener serves connections to this port' })
    return undefined
  }
  socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
  if (head.length > 0) socket.unshift(head)
  const { host, port } = address
  const tunnel = { host: host.toLowerCase(), port, headers: Object.freeze({ ...headers }) as Headers }
  return { handler, arrival: (outer) => ({ origin: { ...outer, tunnel }, serve }) }
}
