import { type Dispatcher, Pool } from 'undici'
import { GatewayError } from '../lib/gateway-error.ts'
import type { BodySink, BodySource } from './body.ts'
import { isSource } from './body.ts'
import type { Headers } from './headers.ts'
import type { OutgoingRequest, Reply, Send } from './send.ts'

export type HttpClientOptions = {
  /** Longest wait for a connection, TLS included. */
  connectTimeoutMs: number
  /** How long an unused connection stays open. */
  keepAliveMs: number
  /** Defaults of the limits a request may set itself. */
  firstByteTimeoutMs: number
  idleTimeoutMs: number
}

/** The side of the gateway that calls others. Connections are pooled by origin and survive reloads. */
export type HttpClient = {
  send: Send
  /** Closes all connections; calls in flight fail. */
  close(): Promise<void>
}

/** Owner of undici. */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const pools = new Map<string, Pool>()

  function poolOf(origin: string): Pool {
    const known = pools.get(origin)
    if (known) return known
    const pool = new Pool(origin, {
      allowH2: false,
      connect: { timeout: options.connectTimeoutMs },
      keepAliveTimeout: options.keepAliveMs,
      pipelining: 1,
    })
    pools.set(origin, pool)
    return pool
  }

  return {
    send: (request) => dispatch(poolOf(request.origin), request, options),
    async close() {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()))
      pools.clear()
    },
  }
}

function dispatch(pool: Pool, request: OutgoingRequest, limits: HttpClientOptions): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const { body, cancellation } = request
    if (typeof body === 'object' && isSource(body)) {
      throw new GatewayError('internal', 'a streaming request body is not supported by this client')
    }
    let controller: Dispatcher.DispatchController | undefined
    let reply: UpstreamBody | undefined
    let done = false

    cancellation?.onCancel(() => {
      if (done) return
      const error = new GatewayError('request_aborted', 'the client closed the connection')
      settle(error)
      controller?.abort(error)
    })

    function settle(error: Error) {
      done = true
      if (reply) reply.fail(error)
      else reject(error)
    }

    pool.dispatch(
      {
        path: request.path,
        method: request.method as Dispatcher.HttpMethod,
        headers: request.headers,
        body: body ?? null,
        headersTimeout: request.firstByteTimeoutMs ?? limits.firstByteTimeoutMs,
        bodyTimeout: request.idleTimeoutMs ?? limits.idleTimeoutMs,
      },
      {
        onRequestStart(started) {
          controller = started
          if (done) started.abort(new GatewayError('request_aborted', 'the client closed the connection'))
        },
        onResponseStart(started, status, headers) {
          if (status < 200 || done) return
          reply = createUpstreamBody(started, () => {
            done = true
          })
          resolve({ status, headers: headers as Headers, body: reply })
        },
        onResponseData(_, chunk) {
          reply?.write(chunk)
        },
        onResponseEnd() {
          if (done) return
          done = true
          reply?.end()
        },
        onResponseError(_, error) {
          if (!done) settle(upstreamError(error, controller !== undefined))
        },
      },
    )
  })
}

type UpstreamBody = BodySource & BodySink

/** Bytes held for a reader that has not come yet; more pauses the connection. */
const maxEarlyBytes = 64 * 1024

/** Holds what arrives before somebody reads; the connection is paused as long as the reader is full. */
function createUpstreamBody(controller: Dispatcher.DispatchController, onCancel: () => void): UpstreamBody {
  let sink: BodySink | undefined
  let early: Uint8Array[] = []
  let earlyBytes = 0
  let ended = false
  let failure: Error | undefined
  let cancelled = false

  return {
    start(reader) {
      sink = reader
      let full = false
      for (const chunk of early) full = !reader.write(chunk) || full
      early = []
      if (cancelled) return
      if (failure) reader.fail(failure)
      else if (ended) reader.end()
      else if (full) controller.pause()
      else controller.resume()
    },
    resume: () => controller.resume(),
    cancel() {
      if (cancelled) return
      cancelled = true
      if (ended || failure) return
      onCancel()
      controller.abort(new GatewayError('request_aborted', 'the answer is no longer wanted'))
    },
    write(chunk) {
      if (cancelled) return true
      if (sink) {
        if (sink.write(chunk)) return true
        controller.pause()
        return false
      }
      early.push(chunk)
      earlyBytes += chunk.byteLength
      if (earlyBytes < maxEarlyBytes) return true
      controller.pause()
      return false
    },
    end() {
      ended = true
      if (!cancelled) sink?.end()
    },
    fail(error) {
      failure = error
      if (!cancelled) sink?.fail(error)
    },
  }
}

function upstreamError(cause: unknown, connected: boolean): GatewayError {
  if (cause instanceof GatewayError) return cause
  const code = errorCode(cause)
  if (code === 'UND_ERR_HEADERS_TIMEOUT') {
    return new GatewayError('upstream_timeout', 'upstream call timeout', { cause })
  }
  if (code === 'UND_ERR_BODY_TIMEOUT') {
    return new GatewayError('upstream_timeout', 'upstream stopped sending', { cause })
  }
  if (!connected) return new GatewayError('upstream_connect', 'upstream call failed: connect', { cause })
  return new GatewayError('upstream_reset', 'upstream call failed: connection closed', { cause })
}

function errorCode(cause: unknown): unknown {
  return typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined
}
