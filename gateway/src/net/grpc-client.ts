import { formatHostPort } from '../lib/address/host-port.ts'
import type { EgressPolicy } from './egress/egress.ts'
import { startCall } from './grpc/call.ts'
import { createRequestHead, type Metadata } from './grpc/request-head.ts'
import { startStream } from './grpc/stream.ts'
import type { GrpcStreamOptions, OpenGrpcStream } from './grpc-stream.ts'
import type { Headers } from './http/headers.ts'
import type { ProxyTunnel, UpstreamTls } from './http-client/send.ts'
import { createHttp2Client, type Http2Client } from './http2-client/http2-client.ts'

/** A gRPC server. Equal targets share a connection. */
export type GrpcTarget = {
  readonly host: string
  readonly port: number
  /** Unix domain socket that is connected to instead of host and port. */
  readonly socketPath?: string | undefined
  readonly tls: UpstreamTls | undefined
  /** HTTP proxy that the connection passes. */
  readonly tunnel?: ProxyTunnel | undefined
  /** Represents all of `tls` and `tunnel`. */
  readonly tlsKey: string
  /** Policy on the addresses of the connection. */
  readonly egress: EgressPolicy
}

export type GrpcCallOptions = {
  readonly deadlineMs: number
  /** Metadata of the call in lower case. */
  readonly metadata?: Headers | undefined
}

/** Unary call with encoded messages. Rejects with a `GrpcError`. */
export type GrpcCall = (message: Uint8Array, options: GrpcCallOptions) => Promise<Uint8Array>

/** Failure of a call. */
export class GrpcError extends Error {
  /** gRPC status code: 4 deadline exceeded, 14 unavailable. */
  readonly status: number

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'GrpcError'
    this.status = status
  }
}

export type GrpcClient = {
  /** Returns the unary call of a method path (`/package.Service/Method`). Connects on the first call. */
  method(target: GrpcTarget, path: string): GrpcCall
  /** Returns the bidirectional stream of a method path. Streams do not share the connection of calls. */
  stream(target: GrpcTarget, path: string, options: GrpcStreamOptions): OpenGrpcStream
  /** Makes `drain` wait for work with calls still to make. */
  trackPending(work: Promise<unknown>): void
  /** Resolves when no tracked work is pending. */
  drain(): Promise<void>
  /** Closes every connection and fails its calls. */
  close(): void
}

/** Keep-alive probes detect dead connections during calls. */
const callKeepAliveMs = 10_000

/**
 * Streams may be idle for minutes. Servers of the Go library close connections with several probes in less
 * than 5 minutes without data.
 */
const streamKeepAliveMs = 330_000

/** Creates a client: one connection per target across reloads, with bounded back-off. */
export function createGrpcClient(): GrpcClient {
  const client = createHttp2Client()
  const tracked = new Set<Promise<unknown>>()
  return {
    method(target, path) {
      const head = headOf(target, path)
      const origin = originsOf(client, target, callKeepAliveMs)
      return (message, { deadlineMs, metadata }) =>
        new Promise((resolve, reject) => {
          startCall({
            origin,
            head,
            message,
            metadata: metadata === undefined ? none : linesOf(metadata),
            deadlineMs,
            done(result) {
              if (result.kind === 'ok') resolve(result.message)
              else reject(new GrpcError(result.status, result.reason, { cause: result.cause }))
            },
          })
        })
    },
    stream(target, path, { maxMessageBytes }) {
      const head = headOf(target, path)
      const origin = originsOf(client, target, streamKeepAliveMs)
      return (handler, metadata = none) =>
        startStream({ origin: origin(), head, metadata, maxMessageBytes }, handler)
    },
    trackPending(work) {
      tracked.add(work)
      const release = () => tracked.delete(work)
      work.then(release, release)
    },
    async drain() {
      while (tracked.size > 0) await Promise.allSettled(tracked)
    },
    close: client.close,
  }
}

const none: Metadata = []

function headOf({ host, port, socketPath, tls }: GrpcTarget, path: string) {
  const authority = socketPath === undefined ? formatHostPort({ host, port }) : host
  return createRequestHead(path, tls?.serverName ?? authority, tls !== undefined)
}

/** Returns the origin of a target, which the client may create again after a time without calls. */
function originsOf(client: Http2Client, target: GrpcTarget, keepAliveMs: number) {
  const { host, port, socketPath, tls, tlsKey, egress, tunnel } = target
  const key = `${host} ${port} ${tlsKey} ${egress.key} ${keepAliveMs} ${socketPath ?? ''}`
  const isSecure = tls !== undefined
  const connection = { isSecure, tls, egress, tunnel, lookup: undefined, keepAliveMs }
  const http2Target = { host, port, socketPath, ...connection }
  return () => client.origin(key, http2Target)
}

function linesOf(metadata: Headers): Metadata {
  return Object.entries(metadata).flatMap(([name, value]) =>
    [value].flat().map((line) => [name, line] as const),
  )
}
