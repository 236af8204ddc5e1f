import { withSharedWorkBudget } from '../../cel/work-budget.ts'
import type { Clock } from '../../lib/clock.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import type { Delivery } from '../../net/http/incoming-request.ts'
import { type Attribute, encodeSpan, type SpanEvent } from '../../telemetry/otlp/encode.ts'
import type { Exporter } from '../../telemetry/otlp/exporter.ts'
import { readTraceContext, type TraceIds } from '../../telemetry/tracing/trace-context.ts'
import type { Exchange } from '../exchange.ts'
import type { RetainedFacts } from '../facts/retained-facts.ts'
import type { ConfiguredAccessLog } from './configured-access-log.ts'
import { type EndVariables, variablesAtEnd, withoutCredentials } from './end-variables.ts'
import { admits, attributeValue, type TelemetryExpression } from './expressions.ts'
import type { Sample } from './sampling.ts'
import { serverAttributes, spanName } from './span-attributes.ts'
import type { TelemetryField } from './telemetry-fields.ts'
import type { CallSpan, RequestTrace } from './trace.ts'

/** Telemetry of the requests of a listener. */
export type RequestTelemetry = {
  readonly tracing: Tracing | undefined
  /** Undefined for lines with all fields of all requests. */
  readonly accessLog: ConfiguredAccessLog | undefined
  /** Returns the labels of a request, evaluated at the first call; undefined without any. */
  readonly labels: ((exchange: Exchange) => () => readonly string[]) | undefined
  /** Facts that expressions read of every request, and of those whose spans are recorded. */
  readonly retains: { readonly always: RetainedFacts; readonly sampled: RetainedFacts }
}

/** Tracing of requests, compiled from `frontendPolicies.tracing` or `config.tracing`. */
export type Tracing = {
  /** Starts the trace of a request; undefined if it is not sampled and has no context to forward. */
  start(exchange: Exchange): RequestTrace | undefined
  /** Exports the spans of a finished request. */
  end(exchange: Exchange, delivery: Delivery, endedAt: number): void
}

export type TracingOptions = {
  /** Names of headers whose values are hashed, in lower case. */
  readonly sensitive: ReadonlySet<string>
  /** Decides on requests without `traceparent`. */
  readonly randomSample: Sample
  /** Decides on requests with `traceparent`. */
  readonly clientSample: Sample
  readonly filter: TelemetryExpression | undefined
  /** Attributes of the server span; `span.name` is its name. */
  readonly added: readonly TelemetryField[]
  readonly removed: ReadonlySet<string>
  readonly exporter: Pick<Exporter, 'add'>
  readonly ids: TraceIds
  readonly clock: Clock
}

/** Creates the tracing of a configuration. */
export function createTracing(options: TracingOptions): Tracing {
  const { randomSample, clientSample, ids, clock } = options
  return {
    start({ facts }) {
      const parent =
        facts.request.headers['traceparent'] === undefined
          ? undefined
          : readTraceContext(facts.request.headers)
      const isSampled = parent === undefined ? randomSample(facts) : clientSample(facts)
      if (!isSampled && parent === undefined) return undefined
      const context =
        parent !== undefined && !isSampled
          ? parent
          : {
              traceId: parent?.traceId ?? ids.traceId(),
              spanId: ids.spanId(),
              isSampled: true,
              traceState: parent?.traceState,
            }
      return { context, parentSpanId: parent?.spanId, isSampled, calls: [], ids, clock }
    },
    end(exchange, delivery, endedAt) {
      const { trace } = exchange
      if (trace?.isSampled !== true) return
      withSharedWorkBudget(() => exportSpans(exchange, trace, { delivery, endedAt }, options))
    },
  }
}

/** Result of a request. `endedAt` is `Clock.monotonic()`. */
type Ended = { readonly delivery: Delivery; readonly endedAt: number }

function exportSpans(exchange: Exchange, trace: RequestTrace, ended: Ended, options: TracingOptions): void {
  const { filter, added, exporter, clock } = options
  const { delivery, endedAt } = ended
  const isEvaluated = filter !== undefined || added.length > 0
  const variables = isEvaluated ? variablesAtEnd(exchange, delivery) : undefined
  if (variables !== undefined && !admits(filter, variables)) return
  const { context, parentSpanId } = trace
  const epoch = clock.now() - clock.monotonic()
  const described = describeServer(exchange, delivery, variables, options)
  exporter.add(
    encodeSpan({
      ...{ traceId: context.traceId, spanId: context.spanId, traceState: context.traceState },
      ...{ parentSpanId, isParentRemote: true, kind: 'server' },
      ...described,
      startedAt: epoch + exchange.startedAt,
      endedAt: epoch + endedAt,
      events: eventsOf(delivery, epoch),
      error: errorOf(exchange, delivery),
    }),
  )
  for (const call of trace.calls) exporter.add(encodeCall(call, context.spanId, { epoch, endedAt }))
}

function encodeCall(
  { context, name, attributes, error, startedAt, endedAt }: CallSpan,
  parentSpanId: string,
  request: { readonly epoch: number; readonly endedAt: number },
): Uint8Array {
  const { traceId, spanId, traceState } = context
  return encodeSpan({
    ...{ traceId, spanId, traceState, parentSpanId, isParentRemote: false, kind: 'client' },
    ...{ name, attributes, events: [], error },
    startedAt: request.epoch + startedAt,
    endedAt: request.epoch + (endedAt ?? request.endedAt),
  })
}

/** Name and attributes of the server span, with those of the configuration. */
function describeServer(
  exchange: Exchange,
  delivery: Delivery,
  variables: EndVariables | undefined,
  { added, removed, sensitive }: TracingOptions,
): { name: string; attributes: Attribute[] } {
  let name = spanName(exchange)
  const given = serverAttributes(exchange, delivery)
  const error = errorTypeOf(exchange, delivery)
  if (error !== undefined) given.push(['error.type', error])
  const attributes = removed.size === 0 ? given : given.filter(([key]) => !removed.has(key))
  if (variables === undefined || added.length === 0) return { name, attributes }
  const values = withoutCredentials(variables, sensitive)
  for (const field of added) {
    field.evaluate(values, (key, evaluated) => {
      const value = attributeValue(evaluated)
      if (value === undefined) return
      if (key === 'span.name') name = String(value)
      else attributes.push([key, value])
    })
  }
  return { name, attributes }
}

/** Events of the server span: the first byte of the body. */
function eventsOf({ firstByteAt }: Delivery, epoch: number): SpanEvent[] {
  return firstByteAt === undefined
    ? []
    : [{ name: 'tollgate.first_byte', at: epoch + firstByteAt, attributes: [] }]
}

/** `error.type`: our code, or the status of a server error (RFC 9110 section 15.6). */
function errorTypeOf({ log }: Exchange, { status }: Delivery): string | undefined {
  if (status !== undefined && status < 500 && log.failure === undefined) return undefined
  return log.errorCode ?? codeOf(log.failure) ?? (status === undefined ? 'client_closed' : String(status))
}

/** Error text of the server span: only of server errors, as the HTTP conventions require. */
function errorOf({ log }: Exchange, { status }: Delivery): string | undefined {
  if (status !== undefined && status < 500 && log.failure === undefined) return undefined
  return log.failure instanceof GatewayError ? log.failure.message : ''
}

function codeOf(failure: unknown): string | undefined {
  return failure instanceof GatewayError ? failure.code : undefined
}
