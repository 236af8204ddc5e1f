import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls'
import { GatewayError } from '../lib/gateway-error.ts'
import type { UpstreamTls } from './send.ts'

/** Where a connection leads, and how it gets there. */
export type DialTarget = {
  /** A name or an IP address. */
  readonly host: string
  readonly port: number
  readonly tls: DialTls | undefined
  /** Longest wait for the connection: name, TCP and TLS together. */
  readonly timeoutMs: number
}

/** TLS towards an upstream, its files read and understood. */
export type DialTls = {
  readonly context: SecureContext
  readonly serverName: string | undefined
  readonly insecure: UpstreamTls['insecure']
}

/** Prepares TLS once for all connections. Throws OpenSSL's error about a certificate or key that cannot be used. */
export function createDialTls({ ca, cert, key, serverName, insecure }: UpstreamTls): DialTls {
  return { context: createSecureContext({ ca, cert, key, minVersion: 'TLSv1.2' }), serverName, insecure }
}

/** After so much silence the system asks whether the peer is still there. */
const keepAliveDelayMs = 60_000

/** What a connection that carries somebody else's protocol needs: no waiting for company, and an eye on silent peers. */
export function tune(socket: Socket): void {
  socket.setNoDelay(true)
  socket.setKeepAlive(true, keepAliveDelayMs)
}

/**
 * Opens a connection, which may stay half-open. `done` gets it, or an `upstream_connect` error, once; never before this returns.
 * The returned function gives up, after which `done` is not called any more.
 */
export function dial(target: DialTarget, done: (result: Socket | GatewayError) => void): () => void {
  const { host, port, tls, timeoutMs } = target
  const options = { host, port, allowHalfOpen: true }
  const socket = tls === undefined ? connect(options) : connectTls({ ...options, ...tlsOptions(tls, host) })
  let settled = false
  const timer = setTimeout(
    () => settle(refused(new Error(`no connection within ${timeoutMs} ms`))),
    timeoutMs,
  )

  socket.once(tls === undefined ? 'connect' : 'secureConnect', () => settle(socket))
  socket.on('error', onError)
  socket.once('close', onClose)

  function onError(error: Error) {
    settle(refused(error))
  }

  function onClose() {
    settle(refused(new Error('the connection was closed during the TLS handshake')))
  }

  function settle(result: Socket | GatewayError) {
    if (!release()) return
    if (result === socket) {
      socket.off('error', onError)
      socket.off('close', onClose)
      tune(socket)
    } else socket.destroy()
    done(result)
  }

  function release(): boolean {
    if (settled) return false
    settled = true
    clearTimeout(timer)
    return true
  }

  return () => {
    if (release()) socket.destroy()
  }
}

function tlsOptions({ context, serverName, insecure }: DialTls, host: string) {
  const name = serverName ?? (isIP(host) === 0 ? host : undefined)
  return {
    secureContext: context,
    rejectUnauthorized: insecure !== 'any',
    ...(name === undefined ? {} : { servername: name }),
    ...(insecure === 'any-name' ? { checkServerIdentity: () => undefined } : {}),
  }
}

function refused(cause: Error): GatewayError {
  return new GatewayError('upstream_connect', 'upstream call failed: connect', { cause })
}
