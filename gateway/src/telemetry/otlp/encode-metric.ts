import { createMessageWriter, type MessageWriter } from '../../lib/protobuf/message-writer.ts'
import { varints, zigzag } from '../../lib/protobuf/packed.ts'
import type { Exemplars, SeriesDump } from '../metrics/dump.ts'
import type { CollectedFamily } from '../metrics/families.ts'
import {
  createNativeCounts,
  type NativeCounts,
  sortedBuckets,
  zeroThreshold,
} from '../native-histogram/native-histogram.ts'
import { writeTime } from './encode.ts'

/** Time of the measurement, and start of the counts: milliseconds since the epoch. */
export type MetricTimes = { readonly startedAt: number; readonly at: number }

/** Data points of one message, so that a batch of messages has a bounded size. */
const maxPoints = 200

const cumulative = 2

/** Names of the semantic conventions, which the Prometheus format writes with underscores and units. */
const conventionalNames: ReadonlyMap<string, readonly [name: string, unit: string]> = new Map([
  ['gen_ai_client_token_usage', ['gen_ai.client.token.usage', '{token}']],
  ['gen_ai_client_operation_duration_seconds', ['gen_ai.client.operation.duration', 's']],
  ['gen_ai_server_time_to_first_token_seconds', ['gen_ai.server.time_to_first_token', 's']],
])

const conventionalLabels: ReadonlyMap<string, string> = new Map([
  ['gen_ai_token_type', 'gen_ai.token.type'],
  ['gen_ai_operation_name', 'gen_ai.operation.name'],
  ['gen_ai_request_model', 'gen_ai.request.model'],
  ['gen_ai_provider_name', 'gen_ai.provider.name'],
])

/** Writer of all messages of this thread: encoding is synchronous. */
const writer: MessageWriter = createMessageWriter()

/**
 * Encodes a metric (`opentelemetry.proto.metrics.v1.Metric`) as cumulative sum, gauge or histogram: several
 * messages for many series, none without series.
 */
export function encodeMetric(family: CollectedFamily, times: MetricTimes): Uint8Array[] {
  const { series } = family
  const messages: Uint8Array[] = []
  for (let from = 0; from < series.length; from += maxPoints)
    messages.push(encodePart(family, series.slice(from, from + maxPoints), times))
  return messages
}

function encodePart(family: CollectedFamily, series: readonly SeriesDump[], times: MetricTimes): Uint8Array {
  const { name, help, type } = family
  const [conventional, unit] = conventionalNames.get(name) ?? [name, unitOf(name)]
  const labels = family.labels.map((label) => conventionalLabels.get(label) ?? label)
  writer.start()
  writer.text(1, conventional)
  writer.text(2, help)
  writer.text(3, unit)
  const isExponential = type === 'histogram' && family.boundaries.length === 0
  writer.begin(isExponential ? exponentialField : dataFields[type])
  for (const { labels: values, values: numbers, exemplars, native } of series) {
    writer.begin(1)
    if (isExponential) {
      writeLabels(1, labels, values)
      writeExponential(numbers, native ?? createNativeCounts(), times)
      writeExemplars(11, exemplars)
      writer.end()
      continue
    }
    if (type === 'histogram') {
      writeHistogram(numbers, family.boundaries, times)
      writeExemplars(8, exemplars)
    } else writeNumber(numbers[0] ?? 0, type, times)
    writeLabels(type === 'histogram' ? 9 : 7, labels, values)
    writer.end()
  }
  if (type !== 'gauge') writer.integer(2, cumulative)
  if (type === 'counter') writer.boolean(3, true)
  writer.end()
  return writer.finish()
}

/** Fields of the data of `Metric`. */
const dataFields = { gauge: 5, counter: 7, histogram: 9 } as const
const exponentialField = 10

/** Unit by the suffix of the name (UCUM). */
function unitOf(name: string): string {
  const plain = name.replace(/_total$/, '')
  if (plain.endsWith('_seconds')) return 's'
  if (plain.endsWith('_bytes')) return 'By'
  return plain.endsWith('_usd') ? '{USD}' : ''
}

function writeNumber(value: number, type: 'counter' | 'gauge', { startedAt, at }: MetricTimes): void {
  if (type === 'counter') writeTime(writer, 2, startedAt)
  writeTime(writer, 3, at)
  writer.double(4, value)
}

/** `values` are the sum, and the count of each bucket. */
function writeHistogram(
  [sum = 0, ...counts]: readonly number[],
  boundaries: readonly number[],
  { startedAt, at }: MetricTimes,
): void {
  writeTime(writer, 2, startedAt)
  writeTime(writer, 3, at)
  const total = counts.reduce((all, count) => all + count, 0)
  writer.fixed64(4, ...halvesOf(total))
  writer.double(5, sum)
  const packed = new DataView(new ArrayBuffer(8 * (counts.length + boundaries.length)))
  for (const [index, count] of counts.entries()) packed.setBigUint64(8 * index, BigInt(count), true)
  for (const [index, boundary] of boundaries.entries())
    packed.setFloat64(8 * (counts.length + index), boundary, true)
  const split = 8 * counts.length
  writer.bytes(6, new Uint8Array(packed.buffer, 0, split))
  writer.bytes(7, new Uint8Array(packed.buffer, split))
}

/** Writes a native histogram, whose indices are those of OTLP plus one. */
function writeExponential(
  [sum = 0, count = 0]: readonly number[],
  native: NativeCounts,
  { startedAt, at }: MetricTimes,
): void {
  writeTime(writer, 2, startedAt)
  writeTime(writer, 3, at)
  writer.fixed64(4, ...halvesOf(count))
  writer.double(5, sum)
  writer.integer(6, zigzag(native.schema))
  writer.fixed64(7, ...halvesOf(native.zero))
  const buckets = sortedBuckets(native)
  const first = buckets[0]?.[0] ?? 1
  const last = buckets.at(-1)?.[0] ?? 0
  const counts = Array.from(
    { length: last - first + 1 },
    (_, index) => native.buckets.get(first + index) ?? 0,
  )
  writer.begin(8)
  writer.integer(1, zigzag(first - 1))
  writer.bytes(2, varints(counts))
  writer.end()
  writer.double(14, zeroThreshold)
}

/** Writes values with the span of their request. */
function writeExemplars(field: number, exemplars: Exemplars = []): void {
  for (const exemplar of exemplars) {
    if (exemplar === undefined) continue
    writer.begin(field)
    writeTime(writer, 2, exemplar.at)
    writer.double(3, exemplar.value)
    writer.bytes(4, Buffer.from(exemplar.spanId, 'hex'))
    writer.bytes(5, Buffer.from(exemplar.traceId, 'hex'))
    writer.end()
  }
}

/** Lower and upper 32 bits of a safe integer. */
function halvesOf(value: number): [low: number, high: number] {
  return [value % 0x1_0000_0000, Math.floor(value / 0x1_0000_0000)]
}

/** Writes attributes; those without a value are omitted, as labels of Prometheus are absent if empty. */
function writeLabels(field: number, names: readonly string[], values: readonly string[]): void {
  for (const [index, name] of names.entries()) {
    const value = values[index] ?? ''
    if (value === '') continue
    writer.begin(field)
    writer.text(1, name)
    writer.begin(2)
    writer.text(1, value)
    writer.end()
    writer.end()
  }
}
