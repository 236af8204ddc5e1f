import { type GrpcCall, type GrpcCallOptions, GrpcError } from '../../net/grpc-client.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { OutgoingRequest, Reply, Send } from '../../net/http-client/send.ts'
import type { Attribute } from '../../telemetry/otlp/encode.ts'
import { type CallSpan, endCall, propagate, type RequestTrace, sendTraced, startCall } from './trace.ts'

// Calls of services that decide on requests: authorization, processing, limits and guards.

/** Unary call of a service. With a trace it has a span, and `traceparent` in its metadata. */
export type ServiceCall = (
  message: Uint8Array,
  options: GrpcCallOptions & { readonly trace?: RequestTrace | undefined },
) => Promise<Uint8Array>

/** Adds traces to the call of a method path. */
export function tracedCall(path: string, call: GrpcCall): ServiceCall {
  const name = path.slice(1)
  const attributes = grpcAttributes(path)

  async function callWithSpan(
    trace: RequestTrace,
    message: Uint8Array,
    options: GrpcCallOptions,
  ): Promise<Uint8Array> {
    const span = startCall(trace, name, [...attributes])
    const metadata: Headers = { ...options.metadata }
    propagate(trace, span, metadata)
    try {
      const bytes = await call(message, { ...options, metadata })
      if (span !== undefined) endGrpc(trace, span, 0)
      return bytes
    } catch (error) {
      if (span !== undefined) endGrpc(trace, span, error instanceof GrpcError ? error.status : undefined)
      throw error
    }
  }

  return (message, options) =>
    options.trace === undefined ? call(message, options) : callWithSpan(options.trace, message, options)
}

/** Starts the span of a stream; undefined if the request is not sampled. */
export function startStream(trace: RequestTrace | undefined, path: string): CallSpan | undefined {
  return trace?.isSampled === true ? startCall(trace, path.slice(1), grpcAttributes(path)) : undefined
}

/** Metadata with the trace of a stream; none without a trace. */
export function traceMetadata(
  trace: RequestTrace | undefined,
  span: CallSpan | undefined,
): readonly (readonly [string, string])[] {
  const headers: Headers = {}
  propagate(trace, span, headers)
  return Object.entries(headers).map(([name, value]) => [name, String(value)])
}

function grpcAttributes(path: string): Attribute[] {
  const [, service = '', method = ''] = path.split('/')
  return [
    ['rpc.system', 'grpc'],
    ['rpc.service', service],
    ['rpc.method', method],
  ]
}

function endGrpc(trace: RequestTrace, span: CallSpan, status: number | undefined): void {
  if (status !== undefined) span.attributes.push(['rpc.grpc.status_code', status])
  endCall(trace, span, status === 0 ? undefined : `gRPC status ${status ?? 'unknown'}`)
}

/** Sends a request to a service. With a trace it has a span until the head of the response. */
export async function sendToService(
  trace: RequestTrace | undefined,
  request: OutgoingRequest,
  send: Send,
): Promise<Reply> {
  if (trace === undefined) return send(request)
  const before = trace.calls.length
  const reply = await sendTraced(trace, request, send)
  const span = trace.calls[before]
  if (span !== undefined) endCall(trace, span)
  return reply
}
