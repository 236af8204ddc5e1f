/**
 * Strict decoder of OTLP export requests, written from the public numbers of opentelemetry-proto 1.x and
 * independent of the gateway's encoder: unknown fields, wrong wire types and invalid UTF-8 are errors.
 */

type Type =
  | 'string'
  | 'bytes'
  | 'bool'
  | 'int64'
  | 'uint32'
  | 'sint32'
  | 'enum'
  | 'fixed64'
  | 'fixed32'
  | 'double'
  | MessageName
type Field = { readonly name: string; readonly type: Type; readonly repeated?: true }
type MessageName = keyof typeof messages

const messages = {
  ExportTraceServiceRequest: { 1: { name: 'resourceSpans', type: 'ResourceSpans', repeated: true } },
  ResourceSpans: {
    1: { name: 'resource', type: 'Resource' },
    2: { name: 'scopeSpans', type: 'ScopeSpans', repeated: true },
    3: { name: 'schemaUrl', type: 'string' },
  },
  Resource: {
    1: { name: 'attributes', type: 'KeyValue', repeated: true },
    2: { name: 'droppedAttributesCount', type: 'uint32' },
  },
  ScopeSpans: {
    1: { name: 'scope', type: 'InstrumentationScope' },
    2: { name: 'spans', type: 'Span', repeated: true },
    3: { name: 'schemaUrl', type: 'string' },
  },
  InstrumentationScope: {
    1: { name: 'name', type: 'string' },
    2: { name: 'version', type: 'string' },
    3: { name: 'attributes', type: 'KeyValue', repeated: true },
    4: { name: 'droppedAttributesCount', type: 'uint32' },
  },
  Span: {
    1: { name: 'traceId', type: 'bytes' },
    2: { name: 'spanId', type: 'bytes' },
    3: { name: 'traceState', type: 'string' },
    4: { name: 'parentSpanId', type: 'bytes' },
    5: { name: 'name', type: 'string' },
    6: { name: 'kind', type: 'enum' },
    7: { name: 'startTimeUnixNano', type: 'fixed64' },
    8: { name: 'endTimeUnixNano', type: 'fixed64' },
    9: { name: 'attributes', type: 'KeyValue', repeated: true },
    10: { name: 'droppedAttributesCount', type: 'uint32' },
    11: { name: 'events', type: 'Event', repeated: true },
    12: { name: 'droppedEventsCount', type: 'uint32' },
    13: { name: 'links', type: 'Link', repeated: true },
    14: { name: 'droppedLinksCount', type: 'uint32' },
    15: { name: 'status', type: 'Status' },
    16: { name: 'flags', type: 'fixed32' },
  },
  Event: {
    1: { name: 'timeUnixNano', type: 'fixed64' },
    2: { name: 'name', type: 'string' },
    3: { name: 'attributes', type: 'KeyValue', repeated: true },
    4: { name: 'droppedAttributesCount', type: 'uint32' },
  },
  Link: { 1: { name: 'traceId', type: 'bytes' }, 2: { name: 'spanId', type: 'bytes' } },
  Status: { 2: { name: 'message', type: 'string' }, 3: { name: 'code', type: 'enum' } },
  KeyValue: { 1: { name: 'key', type: 'string' }, 2: { name: 'value', type: 'AnyValue' } },
  AnyValue: {
    1: { name: 'stringValue', type: 'string' },
    2: { name: 'boolValue', type: 'bool' },
    3: { name: 'intValue', type: 'int64' },
    4: { name: 'doubleValue', type: 'double' },
    5: { name: 'arrayValue', type: 'ArrayValue' },
    6: { name: 'kvlistValue', type: 'KeyValueList' },
    7: { name: 'bytesValue', type: 'bytes' },
  },
  ArrayValue: { 1: { name: 'values', type: 'AnyValue', repeated: true } },
  KeyValueList: { 1: { name: 'values', type: 'KeyValue', repeated: true } },
  ExportLogsServiceRequest: { 1: { name: 'resourceLogs', type: 'ResourceLogs', repeated: true } },
  ResourceLogs: {
    1: { name: 'resource', type: 'Resource' },
    2: { name: 'scopeLogs', type: 'ScopeLogs', repeated: true },
    3: { name: 'schemaUrl', type: 'string' },
  },
  ScopeLogs: {
    1: { name: 'scope', type: 'InstrumentationScope' },
    2: { name: 'logRecords', type: 'LogRecord', repeated: true },
    3: { name: 'schemaUrl', type: 'string' },
  },
  LogRecord: {
    1: { name: 'timeUnixNano', type: 'fixed64' },
    2: { name: 'severityNumber', type: 'enum' },
    3: { name: 'severityText', type: 'string' },
    5: { name: 'body', type: 'AnyValue' },
    6: { name: 'attributes', type: 'KeyValue', repeated: true },
    7: { name: 'droppedAttributesCount', type: 'uint32' },
    8: { name: 'flags', type: 'fixed32' },
    9: { name: 'traceId', type: 'bytes' },
    10: { name: 'spanId', type: 'bytes' },
    11: { name: 'observedTimeUnixNano', type: 'fixed64' },
    12: { name: 'eventName', type: 'string' },
  },
  ExportMetricsServiceRequest: { 1: { name: 'resourceMetrics', type: 'ResourceMetrics', repeated: true } },
  ResourceMetrics: {
    1: { name: 'resource', type: 'Resource' },
    2: { name: 'scopeMetrics', type: 'ScopeMetrics', repeated: true },
    3: { name: 'schemaUrl', type: 'string' },
  },
  ScopeMetrics: {
    1: { name: 'scope', type: 'InstrumentationScope' },
    2: { name: 'metrics', type: 'Metric', repeated: true },
    3: { name: 'schemaUrl', type: 'string' },
  },
  Metric: {
    1: { name: 'name', type: 'string' },
    2: { name: 'description', type: 'string' },
    3: { name: 'unit', type: 'string' },
    5: { name: 'gauge', type: 'Gauge' },
    7: { name: 'sum', type: 'Sum' },
    9: { name: 'histogram', type: 'Histogram' },
    10: { name: 'exponentialHistogram', type: 'ExponentialHistogram' },
  },
  Gauge: { 1: { name: 'dataPoints', type: 'NumberDataPoint', repeated: true } },
  Sum: {
    1: { name: 'dataPoints', type: 'NumberDataPoint', repeated: true },
    2: { name: 'aggregationTemporality', type: 'enum' },
    3: { name: 'isMonotonic', type: 'bool' },
  },
  Histogram: {
    1: { name: 'dataPoints', type: 'HistogramDataPoint', repeated: true },
    2: { name: 'aggregationTemporality', type: 'enum' },
  },
  ExponentialHistogram: {
    1: { name: 'dataPoints', type: 'ExponentialDataPoint', repeated: true },
    2: { name: 'aggregationTemporality', type: 'enum' },
  },
  ExponentialDataPoint: {
    1: { name: 'attributes', type: 'KeyValue', repeated: true },
    2: { name: 'startTimeUnixNano', type: 'fixed64' },
    3: { name: 'timeUnixNano', type: 'fixed64' },
    4: { name: 'count', type: 'fixed64' },
    5: { name: 'sum', type: 'double' },
    6: { name: 'scale', type: 'sint32' },
    7: { name: 'zeroCount', type: 'fixed64' },
    8: { name: 'positive', type: 'Buckets' },
    11: { name: 'exemplars', type: 'Exemplar', repeated: true },
    14: { name: 'zeroThreshold', type: 'double' },
  },
  Buckets: {
    1: { name: 'offset', type: 'sint32' },
    // Packed integers.
    2: { name: 'bucketCounts', type: 'bytes' },
  },
  NumberDataPoint: {
    2: { name: 'startTimeUnixNano', type: 'fixed64' },
    3: { name: 'timeUnixNano', type: 'fixed64' },
    4: { name: 'asDouble', type: 'double' },
    6: { name: 'asInt', type: 'fixed64' },
    7: { name: 'attributes', type: 'KeyValue', repeated: true },
  },
  HistogramDataPoint: {
    2: { name: 'startTimeUnixNano', type: 'fixed64' },
    3: { name: 'timeUnixNano', type: 'fixed64' },
    4: { name: 'count', type: 'fixed64' },
    5: { name: 'sum', type: 'double' },
    6: { name: 'bucketCounts', type: 'fixed64', repeated: true },
    7: { name: 'explicitBounds', type: 'double', repeated: true },
    8: { name: 'exemplars', type: 'Exemplar', repeated: true },
    9: { name: 'attributes', type: 'KeyValue', repeated: true },
  },
  Exemplar: {
    2: { name: 'timeUnixNano', type: 'fixed64' },
    3: { name: 'asDouble', type: 'double' },
    4: { name: 'spanId', type: 'bytes' },
    5: { name: 'traceId', type: 'bytes' },
    6: { name: 'asInt', type: 'fixed64' },
    7: { name: 'filteredAttributes', type: 'KeyValue', repeated: true },
  },
} as const satisfies Record<string, Record<number, { name: string; type: string; repeated?: true }>>

export type DecodedSpan = {
  readonly resource: Record<string, unknown>
  readonly scope: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly traceState: string | undefined
  readonly name: string
  readonly kind: number
  readonly start: bigint
  readonly end: bigint
  readonly attributes: Record<string, unknown>
  readonly events: readonly string[]
  readonly error: string | undefined
}

export type DecodedLog = {
  readonly resource: Record<string, unknown>
  readonly body: unknown
  readonly at: bigint
  readonly traceId: string | undefined
  readonly spanId: string | undefined
  readonly attributes: Record<string, unknown>
}

export type DecodedMetric = {
  readonly name: string
  readonly kind: 'gauge' | 'sum' | 'histogram' | 'exponentialHistogram'
  readonly points: readonly {
    readonly attributes: Record<string, unknown>
    readonly [field: string]: unknown
  }[]
}

/** Decodes an `ExportTraceServiceRequest`; throws if it violates the schema. */
export function decodeSpans(bytes: Buffer): DecodedSpan[] {
  const request = decodeMessage('ExportTraceServiceRequest', bytes)
  return listOf(request['resourceSpans']).flatMap(({ resource, scopeSpans }) =>
    listOf(scopeSpans).flatMap(({ scope, spans }) =>
      listOf(spans).map((span) =>
        toSpan(span, attributesOf(recordOf(resource)), String(recordOf(scope)['name'])),
      ),
    ),
  )
}

/** Decodes an `ExportLogsServiceRequest`; throws if it violates the schema. */
export function decodeLogs(bytes: Buffer): DecodedLog[] {
  const request = decodeMessage('ExportLogsServiceRequest', bytes)
  return listOf(request['resourceLogs']).flatMap(({ resource, scopeLogs }) =>
    listOf(scopeLogs).flatMap(({ logRecords }) =>
      listOf(logRecords).map((record) => ({
        resource: attributesOf(recordOf(resource)),
        body: plainValue(recordOf(record['body'])),
        at: record['timeUnixNano'] as bigint,
        traceId: optionalId(record['traceId'], 16),
        spanId: optionalId(record['spanId'], 8),
        attributes: attributesOf(record),
      })),
    ),
  )
}

/** Decodes an `ExportMetricsServiceRequest`; throws if it violates the schema. */
export function decodeMetrics(bytes: Buffer): DecodedMetric[] {
  const request = decodeMessage('ExportMetricsServiceRequest', bytes)
  return listOf(request['resourceMetrics']).flatMap(({ scopeMetrics }) =>
    listOf(scopeMetrics).flatMap(({ metrics }) => listOf(metrics).map(toMetric)),
  )
}

function toMetric(metric: Decoded): DecodedMetric {
  const kind = (['gauge', 'sum', 'histogram', 'exponentialHistogram'] as const).find(
    (name) => metric[name] !== undefined,
  )
  if (kind === undefined) throw new Error(`metric ${String(metric['name'])} has no data`)
  const data = recordOf(metric[kind])
  if (kind !== 'gauge' && data['aggregationTemporality'] !== 2) throw new Error('sums must be cumulative')
  return {
    name: String(metric['name']),
    kind,
    points: listOf(data['dataPoints']).map((point) => ({ ...point, attributes: attributesOf(point) })),
  }
}

function toSpan(span: Decoded, resource: Record<string, unknown>, scope: string): DecodedSpan {
  const start = span['startTimeUnixNano'] as bigint
  const end = span['endTimeUnixNano'] as bigint
  if (start === 0n || end < start) throw new Error('a span must have a start, and an end after it')
  if (typeof span['name'] !== 'string' || span['name'] === '') throw new Error('a span must have a name')
  const status = span['status'] === undefined ? undefined : recordOf(span['status'])
  const traceId = optionalId(span['traceId'], 16)
  const spanId = optionalId(span['spanId'], 8)
  if (traceId === undefined || spanId === undefined) throw new Error('a span must have ids')
  return {
    ...{ resource, scope, traceId, spanId, start, end, name: span['name'] },
    parentSpanId: optionalId(span['parentSpanId'], 8),
    traceState: span['traceState'] as string | undefined,
    kind: Number(span['kind']),
    attributes: attributesOf(span),
    events: listOf(span['events']).map(({ name }) => String(name)),
    error: status?.['code'] === 2 ? String(status['message'] ?? '') : undefined,
  }
}

function optionalId(value: unknown, bytes: number): string | undefined {
  if (value === undefined) return undefined
  const id = value as Buffer
  if (id.byteLength !== bytes || id.every((byte) => byte === 0))
    throw new Error(`invalid id ${id.toString('hex')}`)
  return id.toString('hex')
}

function attributesOf(holder: Decoded): Record<string, unknown> {
  const attributes: Record<string, unknown> = {}
  for (const { key, value } of listOf(holder['attributes'])) {
    if (typeof key !== 'string' || key === '') throw new Error('an attribute must have a key')
    if (Object.hasOwn(attributes, key)) throw new Error(`attribute ${key} occurs twice`)
    attributes[key] = plainValue(recordOf(value))
  }
  return attributes
}

function plainValue(value: Decoded): unknown {
  const entries = Object.entries(value)
  const [entry] = entries
  if (entries.length !== 1 || entry === undefined) throw new Error('a value must have one variant')
  if (entry[0] === 'arrayValue') return listOf(recordOf(entry[1])['values']).map(plainValue)
  return typeof entry[1] === 'bigint' ? Number(entry[1]) : entry[1]
}

type Decoded = { [name: string]: unknown }

function listOf(value: unknown): Decoded[] {
  return (value ?? []) as Decoded[]
}

function recordOf(value: unknown): Decoded {
  return (value ?? {}) as Decoded
}

function decodeMessage(message: MessageName, bytes: Buffer): Decoded {
  const fields: Record<number, Field> = messages[message]
  const decoded: Decoded = {}
  let at = 0

  function varint(): bigint {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at]
      if (byte === undefined) throw new Error(`${message}: truncated varint`)
      at += 1
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    throw new Error(`${message}: varint is too long`)
  }

  function take(length: number): Buffer {
    if (at + length > bytes.byteLength) throw new Error(`${message}: truncated`)
    at += length
    return bytes.subarray(at - length, at)
  }

  while (at < bytes.byteLength) {
    const tag = Number(varint())
    const field = fields[tag >> 3]
    if (field === undefined) throw new Error(`${message}: unknown field ${tag >> 3}`)
    const { name, type, repeated } = field
    const values = readValues(type, tag & 7, { varint, take })
    if (repeated) decoded[name] = [...listOf(decoded[name]), ...(values as Decoded[])]
    else if (decoded[name] !== undefined) throw new Error(`${message}.${name} occurs twice`)
    else decoded[name] = values[0]
  }
  return decoded
}

type Reader = { varint(): bigint; take(length: number): Buffer }

const wireTypes: Partial<Record<Type, number>> = {
  ...{ bool: 0, int64: 0, uint32: 0, sint32: 0, enum: 0, fixed64: 1, double: 1, fixed32: 5 },
}

function readValues(type: Type, wire: number, reader: Reader): unknown[] {
  const expected = wireTypes[type] ?? 2
  if (wire === 2 && expected === 1) {
    const packed = reader.take(Number(reader.varint()))
    return Array.from({ length: packed.byteLength / 8 }, (_, index) =>
      type === 'double' ? packed.readDoubleLE(index * 8) : packed.readBigUInt64LE(index * 8),
    )
  }
  if (wire !== expected) throw new Error(`${type} has wire type ${wire}`)
  switch (type) {
    case 'bool':
      return [reader.varint() === 1n]
    case 'int64':
      return [BigInt.asIntN(64, reader.varint())]
    case 'sint32': {
      const encoded = Number(reader.varint())
      return [encoded % 2 === 0 ? encoded / 2 : -(encoded + 1) / 2]
    }
    case 'uint32':
    case 'enum':
      return [Number(reader.varint())]
    case 'fixed64':
      return [reader.take(8).readBigUInt64LE()]
    case 'double':
      return [reader.take(8).readDoubleLE()]
    case 'fixed32':
      return [reader.take(4).readUInt32LE()]
    default:
      return [readDelimited(type, reader.take(Number(reader.varint())))]
  }
}

function readDelimited(type: Type, bytes: Buffer): unknown {
  if (type === 'bytes') return bytes
  if (type === 'string') return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  return decodeMessage(type as MessageName, bytes)
}
