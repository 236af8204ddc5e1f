import { readMessage } from '../../lib/protobuf/message-reader.ts'
import { messageOf } from '../../lib/thrown.ts'
import { type GrpcCall, GrpcError } from '../../net/grpc-client.ts'
import { readAll } from '../../net/http/body.ts'
import { firstHeader, type Headers } from '../../net/http/headers.ts'
import type { OutgoingRequest, Send } from '../../net/http-client/send.ts'
import type { ExportResult, SendExport } from './exporter.ts'

/** The signals of OTLP, with the path of HTTP requests and the gRPC method of each. */
export const signals = {
  traces: { path: '/v1/traces', method: '/opentelemetry.proto.collector.trace.v1.TraceService/Export' },
  logs: { path: '/v1/logs', method: '/opentelemetry.proto.collector.logs.v1.LogsService/Export' },
  metrics: { path: '/v1/metrics', method: '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export' },
} as const

export type Signal = keyof typeof signals

const timeoutMs = 10_000
const maxResponseBytes = 64 * 1024

/** Sets the credential of the gateway on a request in place. */
export type AuthorizeExport = (request: { headers: Headers; path: string }) => Promise<void> | undefined

/** OTLP over HTTP with protobuf bodies. */
export function httpExport(
  send: Send,
  request: Pick<OutgoingRequest, 'origin' | 'path' | 'connection' | 'headers'>,
  authorize: AuthorizeExport,
): SendExport {
  return async (message) => {
    const outgoing: OutgoingRequest = {
      ...request,
      method: 'POST',
      headers: { ...request.headers, 'content-type': 'application/x-protobuf' },
      body: message,
      firstByteTimeoutMs: timeoutMs,
      idleTimeoutMs: timeoutMs,
      repeatable: true,
    }
    await authorize(outgoing)
    const reply = await send(outgoing)
    // The status decides. The body may be large or broken.
    const body = await readAll(reply.body, maxResponseBytes, 'upstream_too_large').catch(() => undefined)
    const { status, headers } = reply
    if (status >= 200 && status < 300) return accepted(body)
    const reason = `status ${status}`
    if (status === 429 || status === 502 || status === 503 || status === 504)
      return { kind: 'unavailable', reason, afterMs: retryAfterMs(headers) }
    return { kind: 'refused', reason }
  }
}

/** Statuses of the OTLP specification that permit a repetition. */
const retryableStatuses: ReadonlySet<number> = new Set([1, 4, 8, 10, 11, 14, 15])

/** OTLP over gRPC. */
export function grpcExport(call: GrpcCall, headers: Headers, authorize: AuthorizeExport): SendExport {
  return async (message) => {
    const request = { headers: { ...headers }, path: '' }
    await authorize(request)
    try {
      return accepted(await call(message, { deadlineMs: timeoutMs, metadata: request.headers }))
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error
      const reason = `gRPC status ${error.status}: ${messageOf(error)}`
      return { kind: retryableStatuses.has(error.status) ? 'unavailable' : 'refused', reason }
    }
  }
}

/** Reads `partial_success` of a response. Other bodies count as complete success. */
function accepted(body: Uint8Array | undefined): ExportResult {
  if (body === undefined || body.byteLength === 0) return { kind: 'accepted', rejected: 0 }
  try {
    return readResponse(body)
  } catch {
    return { kind: 'accepted', rejected: 0 }
  }
}

function readResponse(body: Uint8Array): ExportResult {
  let rejected = 0
  let reason: string | undefined
  readMessage(body, (field, value) => {
    if (field !== 1) return
    readMessage(value.bytes(), (inner, detail) => {
      if (inner === 1) rejected = detail.integer()
      else if (inner === 2) reason = detail.text()
    })
  })
  return { kind: 'accepted', rejected: Math.max(0, rejected), reason }
}

function retryAfterMs(headers: Headers): number | undefined {
  const seconds = Number(firstHeader(headers, 'retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : undefined
}
