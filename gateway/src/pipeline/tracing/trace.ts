import type { Clock } from '../../lib/clock.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { OutgoingRequest, Reply, Send } from '../../net/http-client/send.ts'
import type { Attribute } from '../../telemetry/otlp/encode.ts'
import {
  parseTraceparent,
  type TraceContext,
  type TraceIds,
  writeTraceContext,
} from '../../telemetry/tracing/trace-context.ts'

/** Trace of a request: its context, and the spans of its calls. */
export type RequestTrace = {
  /** Of the server span; of the caller if the request is not sampled. */
  readonly context: TraceContext
  /** Span of the caller; undefined for a new trace. */
  readonly parentSpanId: string | undefined
  /** The spans are recorded and exported. */
  readonly isSampled: boolean
  readonly calls: CallSpan[]
  readonly ids: TraceIds
  readonly clock: Clock
}

/** Client span of a call of an upstream. Times are `Clock.monotonic()`. */
export type CallSpan = {
  readonly context: TraceContext
  readonly name: string
  readonly startedAt: number
  /** Undefined until the end of the call: then it ends with the request. */
  endedAt: number | undefined
  readonly attributes: Attribute[]
  /** Message of the failure; undefined without one. */
  error: string | undefined
}

/** Calls of one request with a span; further ones forward the context without one. */
const maxCalls = 64

/** Starts the span of a call; undefined if the request is not sampled. */
export function startCall(
  trace: RequestTrace | undefined,
  name: string,
  attributes: Attribute[],
): CallSpan | undefined {
  if (trace?.isSampled !== true || trace.calls.length >= maxCalls) return undefined
  const span: CallSpan = {
    context: { ...trace.context, spanId: trace.ids.spanId() },
    name,
    startedAt: trace.clock.monotonic(),
    endedAt: undefined,
    attributes,
    error: undefined,
  }
  trace.calls.push(span)
  return span
}

/**
 * Continues the trace that a message states, such as `params._meta` of MCP. Without effect on requests that
 * are not sampled, and on an invalid `traceparent`.
 */
export function continueTrace(
  exchange: { trace?: RequestTrace | undefined },
  traceparent: unknown,
  traceState: unknown,
): void {
  const { trace } = exchange
  if (trace?.isSampled !== true || typeof traceparent !== 'string') return
  const parent = parseTraceparent(traceparent, typeof traceState === 'string' ? traceState : undefined)
  if (parent === undefined) return
  const { traceId, traceState: state } = parent
  const context = { ...trace.context, traceId, traceState: state }
  exchange.trace = { ...trace, context, parentSpanId: parent.spanId }
}

/**
 * Context of a call, for `traceparent` and `tracestate`: of its span, else of the request. Undefined if the
 * request has no trace.
 */
function contextOf(trace: RequestTrace | undefined, span: CallSpan | undefined): TraceContext | undefined {
  return span?.context ?? trace?.context
}

/** Sets the trace headers of a call; without a trace, the headers are unchanged. */
export function propagate(
  trace: RequestTrace | undefined,
  span: CallSpan | undefined,
  headers: Headers,
): void {
  const context = contextOf(trace, span)
  if (context !== undefined) writeTraceContext(headers, context)
}

/** Starts the span of an HTTP request to an upstream, and sets its trace headers. */
function startHttpCall(
  trace: RequestTrace,
  request: OutgoingRequest,
  more: readonly Attribute[] = [],
): CallSpan | undefined {
  const span = startCall(trace, request.method, trace.isSampled ? httpAttributes(request, more) : [])
  propagate(trace, span, request.headers)
  return span
}

/** HTTP client attributes of the semantic conventions. The query is omitted, because it may be a secret. */
function httpAttributes({ method, origin, path }: OutgoingRequest, more: readonly Attribute[]): Attribute[] {
  const scheme = origin.startsWith('https:') ? 'https' : 'http'
  const authority = origin.slice(scheme.length + 3)
  const colon = authority.lastIndexOf(':')
  const hasPort = colon > authority.lastIndexOf(']')
  const port = hasPort ? Number(authority.slice(colon + 1)) : scheme === 'https' ? 443 : 80
  const queryAt = path.indexOf('?')
  return [
    ['http.request.method', method],
    ['server.address', hasPort ? authority.slice(0, colon) : authority],
    ['server.port', port],
    ['url.full', origin + (queryAt === -1 ? path : path.slice(0, queryAt))],
    ...more,
  ]
}

/** Records the head of a response. The span ends with the request unless `endCall` is called. */
function recordStatus(span: CallSpan, status: number): void {
  span.attributes.push(['http.response.status_code', status])
  if (status < 400) return
  span.attributes.push(['error.type', String(status)])
  span.error = ''
}

/** Ends the span of a call. `failure` is the cause if it failed. */
export function endCall(trace: RequestTrace | undefined, span: CallSpan, failure?: unknown): void {
  if (trace === undefined || span.endedAt !== undefined) return
  span.endedAt = trace.clock.monotonic()
  if (failure === undefined) return
  const { code, message } = describe(failure)
  if (span.error === undefined) span.attributes.push(['error.type', code])
  span.error ??= message
}

function describe(failure: unknown): { code: string; message: string } {
  if (failure instanceof GatewayError) return { code: failure.code, message: failure.message }
  if (typeof failure === 'string') return { code: failure, message: failure }
  return { code: 'internal', message: 'internal error' }
}

/** Sends a request to an upstream with a span and the trace headers. */
export async function sendTraced(
  trace: RequestTrace,
  request: OutgoingRequest,
  send: Send,
  more: readonly Attribute[] = [],
): Promise<Reply> {
  const span = startHttpCall(trace, request, more)
  if (span === undefined) return send(request)
  try {
    const reply = await send(request)
    recordStatus(span, reply.status)
    return reply
  } catch (error) {
    endCall(trace, span, error)
    throw error
  }
}
