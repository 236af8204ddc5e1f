import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { longestTimerMs } from '../../lib/duration.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import type { ProxyTunnel } from '../http-client/send.ts'
import { configureSocket, type DialTarget, type DialTls, dial, tlsOptions } from './dial.ts'
import { createOpenTunnel } from './tunnel.ts'

/** Destination of a connection, directly or through a proxy. */
export type ConnectTarget = DialTarget & { readonly tunnel?: ProxyTunnel | undefined }

/**
 * Opens a connection that permits half-open, as `dial`; TLS to the destination is inside of the tunnel. Calls
 * `done` once, never before this returns, and not after the returned function is called.
 */
export function connect(target: ConnectTarget, done: (result: Socket | GatewayError) => void): () => void {
  const { tunnel, tls } = target
  if (tunnel === undefined) return dial(target, done)
  let cancel = createOpenTunnel(
    tunnel,
    target,
  )((opened) => {
    if (opened instanceof GatewayError) return done(opened)
    configureSocket(opened, target.probes)
    if (tls === undefined) done(opened)
    else cancel = secure(opened, { ...target, tls }, done)
  })
  return () => cancel()
}

function secure(
  socket: Socket,
  { tls, host, timeoutMs }: { tls: DialTls; host: string; timeoutMs: number },
  done: (result: Socket | GatewayError) => void,
): () => void {
  const secured = connectTls({ socket, host, ...tlsOptions(tls, host) })
  secured.allowHalfOpen = true
  const timer = setTimeout(
    () => fail(new Error(`no TLS within ${timeoutMs} ms`)),
    Math.min(timeoutMs, longestTimerMs),
  )
  secured.once('secureConnect', open).once('error', fail).once('close', closed)

  function open(): void {
    release()
    done(secured)
  }

  function closed(): void {
    fail(new Error('the connection was closed during the TLS handshake'))
  }

  function fail(cause: Error): void {
    cancel()
    done(new GatewayError('upstream_connect', 'upstream call failed: connect', { cause }))
  }

  function release(): void {
    clearTimeout(timer)
    secured.off('secureConnect', open).off('error', fail).off('close', closed)
  }

  function cancel(): void {
    release()
    // A socket without a listener for errors would end the process.
    secured.on('error', () => {})
    secured.destroy()
  }

  return cancel
}
