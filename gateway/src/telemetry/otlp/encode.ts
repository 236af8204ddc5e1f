import { createMessageWriter, type MessageWriter } from '../../lib/protobuf/message-writer.ts'

/** Value of an attribute. Integers are encoded as int64, other numbers as double. */
export type AttributeValue = string | number | boolean | readonly string[]

export type Attribute = readonly [name: string, value: AttributeValue]

/** Kind of a span (`Span.SpanKind`). */
export const spanKinds = { internal: 1, server: 2, client: 3 } as const

/** An ended span. Ids are lower-case hexadecimal; times are milliseconds since the epoch. */
export type Span = {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  /** Whether the parent belongs to another process. */
  readonly isParentRemote: boolean
  readonly traceState: string | undefined
  readonly name: string
  readonly kind: keyof typeof spanKinds
  readonly startedAt: number
  readonly endedAt: number
  readonly attributes: readonly Attribute[]
  readonly events: readonly SpanEvent[]
  /** Message of an error; undefined without an error. */
  readonly error: string | undefined
}

export type SpanEvent = {
  readonly name: string
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly attributes: readonly Attribute[]
}

/** A log record at level INFO. */
export type LogRecord = {
  readonly at: number
  readonly body: string
  readonly attributes: readonly Attribute[]
  readonly traceId: string | undefined
  readonly spanId: string | undefined
}

/** Attributes of the process, and the instrumentation scope. */
export type Envelope = {
  readonly resource: readonly Attribute[]
  readonly scope: { readonly name: string; readonly version: string }
}

/** Limit of attributes of one item. Further ones are counted as dropped. */
const maxAttributes = 128
/** Limit of the characters of one text. */
const maxTextLength = 32 * 1024

const statusError = 2
const severityInfo = 9
/** `SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK` and `SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK`. */
const hasIsRemote = 0x100
const isRemote = 0x200
const sampledFlag = 1

/** Writer of all messages of this thread: encoding is synchronous. */
const writer: MessageWriter = createMessageWriter()

/** Encodes a span (`opentelemetry.proto.trace.v1.Span`). */
export function encodeSpan(span: Span): Uint8Array {
  writer.start()
  writer.bytes(1, Buffer.from(span.traceId, 'hex'))
  writer.bytes(2, Buffer.from(span.spanId, 'hex'))
  if (span.traceState !== undefined) writer.text(3, span.traceState)
  if (span.parentSpanId !== undefined) writer.bytes(4, Buffer.from(span.parentSpanId, 'hex'))
  writer.text(5, bounded(span.name))
  writer.integer(6, spanKinds[span.kind])
  writeTime(writer, 7, span.startedAt)
  writeTime(writer, 8, Math.max(span.startedAt, span.endedAt))
  writeAttributes(writer, { field: 9, droppedField: 10 }, span.attributes)
  for (const event of span.events) {
    writer.begin(11)
    writeTime(writer, 1, event.at)
    writer.text(2, bounded(event.name))
    writeAttributes(writer, { field: 3, droppedField: 4 }, event.attributes)
    writer.end()
  }
  if (span.error !== undefined) {
    writer.begin(15)
    writer.text(2, bounded(span.error))
    writer.integer(3, statusError)
    writer.end()
  }
  const remote = span.isParentRemote && span.parentSpanId !== undefined ? isRemote : 0
  writer.fixed32(16, sampledFlag | hasIsRemote | remote)
  return writer.finish()
}

/** Encodes a log record (`opentelemetry.proto.logs.v1.LogRecord`). */
export function encodeLogRecord({ at, body, attributes, traceId, spanId }: LogRecord): Uint8Array {
  writer.start()
  writeTime(writer, 1, at)
  writer.integer(2, severityInfo)
  writer.text(3, 'INFO')
  writer.begin(5)
  writeValue(writer, body)
  writer.end()
  writeAttributes(writer, { field: 6, droppedField: 7 }, attributes)
  if (traceId !== undefined && spanId !== undefined) {
    writer.fixed32(8, sampledFlag)
    writer.bytes(9, Buffer.from(traceId, 'hex'))
    writer.bytes(10, Buffer.from(spanId, 'hex'))
  }
  writeTime(writer, 11, at)
  return writer.finish()
}

/**
 * Returns the encoder of export requests. Those of traces, logs and metrics have the same form: a resource,
 * a scope, and items.
 */
export function batchEncoder(envelope: Envelope): (items: readonly Uint8Array[]) => Uint8Array {
  writer.start()
  writeAttributes(writer, { field: 1, droppedField: 2 }, envelope.resource)
  const resource = writer.finish()
  writer.text(1, envelope.scope.name)
  writer.text(2, envelope.scope.version)
  const scope = writer.finish()
  return (items) => {
    writer.start()
    writer.begin(1)
    writer.bytes(1, resource)
    writer.begin(2)
    writer.bytes(1, scope)
    for (const item of items) writer.bytes(2, item)
    writer.end()
    writer.end()
    return writer.finish()
  }
}

/** Writes a time in nanoseconds since the epoch as fixed64. */
export function writeTime(to: MessageWriter, field: number, milliseconds: number): void {
  const microseconds = Math.max(0, Math.round(milliseconds * 1000))
  // Nanoseconds exceed the exact integers of a number, so both halves are computed from microseconds.
  const high = Math.floor(microseconds / 0x1_0000_0000)
  const low = (microseconds % 0x1_0000_0000) * 1000
  to.fixed64(field, low % 0x1_0000_0000, high * 1000 + Math.floor(low / 0x1_0000_0000))
}

/** Writes repeated `KeyValue` fields, and the number of dropped ones. */
function writeAttributes(
  to: MessageWriter,
  { field, droppedField }: { field: number; droppedField: number },
  attributes: readonly Attribute[],
): void {
  const count = Math.min(attributes.length, maxAttributes)
  for (let index = 0; index < count; index++) {
    const attribute = attributes[index]
    if (attribute === undefined) continue
    to.begin(field)
    to.text(1, attribute[0])
    to.begin(2)
    writeValue(to, attribute[1])
    to.end()
    to.end()
  }
  to.integer(droppedField, attributes.length - count)
}

/** Fields of `AnyValue` with the default value of their type, which the writer omits. */
const emptyText = Uint8Array.of(0x0a, 0)
const isFalse = Uint8Array.of(0x10, 0)
const zero = Uint8Array.of(0x18, 0)

function writeValue(to: MessageWriter, value: AttributeValue): void {
  if (typeof value === 'string') {
    if (value === '') to.encoded(emptyText)
    else to.text(1, bounded(value))
  } else if (typeof value === 'boolean') {
    if (value) to.boolean(2, true)
    else to.encoded(isFalse)
  } else if (typeof value === 'number') writeNumber(to, value)
  else {
    to.begin(5)
    for (const text of value) {
      to.begin(1)
      writeValue(to, text)
      to.end()
    }
    to.end()
  }
}

function writeNumber(to: MessageWriter, value: number): void {
  if (!Number.isSafeInteger(value)) to.double(4, value)
  else if (value === 0) to.encoded(zero)
  else to.integer(3, value)
}

function bounded(text: string): string {
  return text.length > maxTextLength ? `${text.slice(0, maxTextLength)}…` : text
}
