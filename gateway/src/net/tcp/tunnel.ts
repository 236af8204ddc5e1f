import type { Socket } from 'node:net'
import { formatHostPort } from '../../lib/address/host-port.ts'
import { longestTimerMs } from '../../lib/duration.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { messageOf } from '../../lib/thrown.ts'
import { type EgressPolicy, refusedLiteral } from '../egress/egress.ts'
import type { ProxyTunnel } from '../http-client/send.ts'
import { createDialTls, type DialTls, dial } from './dial.ts'

/** Destination behind a proxy. The proxy resolves its name. */
export type TunnelTarget = {
  readonly host: string
  readonly port: number
  /** Longest wait for the connection to the proxy and its response. */
  readonly timeoutMs: number
  /** Policy on an address in place of a name. */
  readonly egress: EgressPolicy
}

/** Opens a tunnel. Calls `done` once, never before this returns; the result cancels the attempt. */
export type OpenTunnel = (done: (result: Socket | GatewayError) => void) => () => void

/** Longest head of a response to CONNECT. */
const maxHeadBytes = 16 * 1024

/**
 * Creates the function that opens connections to a destination through an HTTP proxy, by CONNECT (RFC 9110
 * section 9.3.6). The socket permits half-open. Every failure is an `upstream_connect` error.
 */
export function createOpenTunnel(tunnel: ProxyTunnel, target: TunnelTarget): OpenTunnel {
  const { host, port, timeoutMs, egress } = target
  const head = Buffer.from(requestHead(formatHostPort({ host, port }), tunnel.authorization), 'latin1')
  let tls: DialTls | undefined
  return (done) => {
    const forbidden = refusedLiteral(egress, host, port)
    const unusable = forbidden ?? prepareTls()
    if (unusable !== undefined) {
      const answer = setImmediate(() => done(failed(unusable)))
      return () => clearImmediate(answer)
    }
    let cancel = dial(
      {
        host: tunnel.host,
        port: tunnel.port,
        tls,
        timeoutMs,
        egress: tunnel.egress,
        ...(tunnel.probes === undefined ? {} : { probes: tunnel.probes }),
      },
      (dialled) => {
        if (dialled instanceof GatewayError) done(dialled)
        else cancel = connectThrough(dialled, { head, timeoutMs }, done)
      },
    )
    return () => cancel()
  }

  /** Parses the certificates of the proxy once. */
  function prepareTls(): Error | undefined {
    try {
      tls ??= tunnel.tls && createDialTls(tunnel.tls)
      return undefined
    } catch (error) {
      return new Error(`a certificate for the proxy cannot be used: ${messageOf(error)}`, { cause: error })
    }
  }
}

function requestHead(authority: string, authorization: string | undefined): string {
  const credential = authorization === undefined ? '' : `proxy-authorization: ${authorization}\r\n`
  return `CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${credential}\r\n`
}

/** Sends CONNECT and reads the response up to its head. Later bytes are those of the destination. */
function connectThrough(
  socket: Socket,
  { head, timeoutMs }: { head: Buffer; timeoutMs: number },
  done: (result: Socket | GatewayError) => void,
): () => void {
  let received: Buffer = Buffer.alloc(0)
  let cancelAccepted: (() => void) | undefined
  const timer = setTimeout(
    () => fail(new Error(`no response of the proxy within ${timeoutMs} ms`)),
    Math.min(timeoutMs, longestTimerMs),
  )
  // Listeners of `data` would start a flow that no later listener receives from its first byte.
  socket.on('readable', read).on('error', fail).on('end', ended).on('close', ended)
  socket.write(head)

  function read(): void {
    const chunk: unknown = socket.read()
    if (!(chunk instanceof Uint8Array)) return
    received = Buffer.concat([received, chunk])
    const response = parseHead(received)
    if (response.kind === 'head') accept(response)
    else if (response.kind === 'invalid') fail(new Error('the response of the proxy is not HTTP/1.1'))
    else if (received.length > maxHeadBytes) fail(new Error('the response of the proxy has a large head'))
  }

  function accept({ status, length }: { status: number; length: number }): void {
    if (status < 200 || status > 299) {
      fail(new Error(`the proxy refused the tunnel with status ${status}`))
      return
    }
    release()
    // The owner of the socket has no listener for errors until `done` returns.
    let failure: Error | undefined
    const keep = (error: Error): void => {
      failure ??= error
    }
    socket.on('error', keep)
    const rest = received.subarray(length)
    if (rest.length > 0) socket.unshift(rest)
    // The stream has no flow again after the next tick.
    const answer = setImmediate(() => {
      if (socket.destroyed) failure ??= new Error('the proxy closed the connection')
      if (failure !== undefined) {
        socket.destroy()
        done(failed(failure))
        return
      }
      done(socket)
      socket.off('error', keep)
    })
    cancelAccepted = () => clearImmediate(answer)
  }

  function ended(): void {
    fail(new Error('the proxy closed the connection'))
  }

  function fail(error: Error): void {
    cancel()
    done(failed(error))
  }

  function release(): void {
    clearTimeout(timer)
    socket.off('readable', read).off('error', fail).off('end', ended).off('close', ended)
  }

  function cancel(): void {
    release()
    cancelAccepted?.()
    // A socket without a listener for errors would end the process.
    socket.on('error', () => {})
    socket.destroy()
  }

  return cancel
}

type ResponseHead =
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'invalid' }
  | { readonly kind: 'head'; readonly status: number; readonly length: number }

/** Parses the head of the final response, behind informational ones. */
function parseHead(bytes: Buffer): ResponseHead {
  let from = 0
  for (;;) {
    const end = bytes.indexOf('\r\n\r\n', from)
    if (end < 0) return { kind: 'incomplete' }
    const [, status] = /^HTTP\/1\.[01] (\d{3})(?:[ \r]|$)/.exec(bytes.toString('latin1', from, end)) ?? []
    if (status === undefined) return { kind: 'invalid' }
    from = end + 4
    if (!status.startsWith('1')) return { kind: 'head', status: Number(status), length: from }
  }
}

function failed(cause: Error): GatewayError {
  return new GatewayError('upstream_connect', 'upstream call failed: connect', { cause })
}
