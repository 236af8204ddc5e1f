import { longestTimerMs } from '../../lib/duration.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { createTurns } from '../../lib/scheduling/turns.ts'
import { isSource } from '../http/body.ts'
import { createPools, type PoolLimits, type PoolSettings, type Pools } from '../http-client/pools.ts'
import type { OutgoingRequest, Send, UpstreamConnection } from '../http-client/send.ts'
import type { PoolName } from '../http-client/shared-limits.ts'
import type { AdmissionMeter } from '../listener/admission.ts'
import { createCall } from './call.ts'
import { createDeadlines } from './deadlines.ts'
import { callTimeout, cannotBeForwarded } from './errors.ts'
import { createOpenSocket } from './open-socket.ts'
import { createOrigin, type Origin } from './origin.ts'
import { createRequestWriter, type RequestWriter } from './request-head.ts'
import { createUpload } from './upload.ts'

export type Http1ClientOptions = PoolLimits &
  PoolSettings & {
    /** Default limits of a request. */
    readonly firstByteTimeoutMs: number
    readonly idleTimeoutMs: number
    /** Instruments of active calls. */
    readonly calls: AdmissionMeter
  }

export type Http1Client = {
  send: Send
  /** Closes idle connections to an upstream. */
  closeIdle(name: PoolName): void
  /** Closes all connections; calls in flight fail. */
  close(): Promise<void>
}

/** Limit of the time that a server may announce for an unused connection, unless one is configured. */
const maxAnnouncedKeepAliveMs = 600_000

/** Client for HTTP/1.1 without pipelining, with protocol upgrades. */
export function createHttp1Client(options: Http1ClientOptions): Http1Client {
  const prepare = createRequestWriter()
  const pools = createPools(options, createOrigins(options))
  return {
    send: (request) => send(request, { pools, prepare, meter: options.calls }),
    closeIdle: (name) => pools.closeIdle(name),
    close: () => pools.close(),
  }
}

type Sending = { pools: Pools<Origin>; prepare: RequestWriter; meter: AdmissionMeter }

function send(request: OutgoingRequest, { pools, prepare, meter }: Sending): ReturnType<Send> {
  const { body, cancellation, firstByteTimeoutMs } = request
  const origin = pools.of(request.origin, request.connection)
  const prepared = prepare(request, origin.host)
  if (prepared.kind === 'unsendable') return reject(request, cannotBeForwarded(prepared.reason))
  if (!origin.begin()) {
    meter.refused()
    return reject(request, new GatewayError('upstream_connect', tooManyCalls))
  }
  return new Promise((resolve, reject) => {
    const upload = typeof body === 'object' && isSource(body) ? createUpload(body) : undefined
    const call = createCall(request, prepared, { upload, resolve, reject, over: origin.over })
    if (firstByteTimeoutMs !== undefined) {
      const delayMs = Math.min(firstByteTimeoutMs, longestTimerMs)
      call.timer = setTimeout(() => origin.abort(call, callTimeout()), delayMs)
    }
    cancellation?.onCancel(() => origin.abort(call, clientClosed()))
    if (!call.isOver) origin.send(call)
  })
}

const tooManyCalls = 'upstream call failed: too many calls to this upstream are under way'

function reject({ body }: OutgoingRequest, error: GatewayError): Promise<never> {
  if (typeof body === 'object' && isSource(body)) body.cancel()
  return Promise.reject(error)
}

function clientClosed(): GatewayError {
  return new GatewayError('request_aborted', 'the client closed the connection')
}

/** Creates the function that opens the pool of an origin. */
function createOrigins(options: Http1ClientOptions) {
  const deadlines = createDeadlines()
  const turns = createTurns()
  const { firstByteTimeoutMs, idleTimeoutMs, calls } = options
  return (address: string, connection: UpstreamConnection): Origin => {
    const { tls, egress = options.egress } = connection
    const { protocol, hostname, host, port } = new URL(address)
    const isSecure = protocol === 'https:'
    const keepAliveMs = connection.keepAliveMs ?? options.keepAliveMs
    const maxConnections = connection.maxConnections ?? options.maxConnections
    const share = options.shared({ origin: address, key: connection.key }, maxConnections)
    return createOrigin({
      host,
      meter: calls,
      maxConnections,
      share,
      openSocket: createOpenSocket({
        host: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname,
        port: port === '' ? (isSecure ? 443 : 80) : Number(port),
        isSecure,
        tls,
        timeoutMs: connection.connectTimeoutMs ?? options.connectTimeoutMs,
        egress,
        lookup: options.lookup,
        permits: share.permits,
        probes: connection.probes,
        alpn: tls?.alpn && withoutHttp2(tls.alpn),
        socketPath: connection.socketPath,
        tunnel: connection.tunnel,
      }),
      connection: {
        deadlines,
        turns,
        firstByteTimeoutMs,
        idleTimeoutMs,
        keepAliveMs,
        // A server may shorten a configured time, but not extend it.
        maxKeepAliveMs: connection.keepAliveMs ?? maxAnnouncedKeepAliveMs,
      },
    })
  }
}

/** The offered protocols that this client speaks. */
function withoutHttp2(offered: readonly string[]): readonly string[] {
  const protocols = offered.filter((protocol) => protocol !== 'h2')
  return protocols.length === 0 ? ['http/1.1'] : protocols
}
