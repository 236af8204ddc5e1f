import { createMessageWriter, type MessageWriter } from '../../lib/protobuf/message-writer.ts'
import { varints, zigzag } from '../../lib/protobuf/packed.ts'
import type { Exemplar, SeriesDump } from '../metrics/dump.ts'
import type { CollectedFamily } from '../metrics/families.ts'
import { type NativeCounts, sortedBuckets, zeroThreshold } from '../native-histogram/native-histogram.ts'

/** Writer of all messages of this thread: encoding is synchronous. */
const writer: MessageWriter = createMessageWriter()

const metricTypes = { counter: 0, gauge: 1, histogram: 4 } as const

/**
 * Encodes metrics as messages `io.prometheus.client.MetricFamily`, each after its length
 * (https://github.com/prometheus/client_model).
 */
export function encodeFamilies(families: readonly CollectedFamily[]): Buffer {
  return Buffer.concat(
    families.flatMap((family) => {
      if (family.series.length === 0) return []
      const message = encodeFamily(family)
      return [Buffer.from(varints([message.byteLength])), message]
    }),
  )
}

function encodeFamily(family: CollectedFamily): Uint8Array {
  writer.start()
  writer.text(1, family.name)
  writer.text(2, family.help)
  writer.integer(3, metricTypes[family.type])
  for (const series of family.series) {
    writer.begin(4)
    for (const [index, name] of family.labels.entries()) writeLabel(name, series.labels[index] ?? '')
    writeValue(family, series)
    writer.end()
  }
  return writer.finish()
}

/** Fields of the data of `Metric`. */
const dataFields = { gauge: 2, counter: 3, histogram: 7 } as const

function writeValue({ type, boundaries }: CollectedFamily, series: SeriesDump): void {
  writer.begin(dataFields[type])
  if (type === 'histogram') writeHistogram(boundaries, series)
  else writer.double(1, series.values[0] ?? 0)
  writer.end()
}

function writeHistogram(
  boundaries: readonly number[],
  { values: [sum = 0, ...counts], exemplars = [], native }: SeriesDump,
): void {
  const total = counts.reduce((all, count) => all + count, 0)
  writer.integer(1, total)
  writer.double(2, sum)
  let cumulative = 0
  // The bucket up to infinity is that of all values.
  for (const [index, boundary] of boundaries.entries()) {
    cumulative += counts[index] ?? 0
    writer.begin(3)
    writer.integer(1, cumulative)
    writer.double(2, boundary)
    writeExemplar(3, exemplars[index])
    writer.end()
  }
  const last = exemplars[boundaries.length]
  if (boundaries.length > 0 && last !== undefined) {
    writer.begin(3)
    writer.integer(1, total)
    writer.double(2, Number.POSITIVE_INFINITY)
    writeExemplar(3, last)
    writer.end()
  }
  if (native === undefined) return
  writeNative(native)
  for (const exemplar of exemplars) writeExemplar(16, exemplar)
}

function writeNative(counts: NativeCounts): void {
  writer.integer(5, zigzag(counts.schema))
  writer.double(6, zeroThreshold)
  writer.integer(7, counts.zero)
  const buckets = sortedBuckets(counts)
  let end = 0
  for (const { offset, length } of spansOf(buckets.map(([index]) => index))) {
    writer.begin(12)
    writer.integer(1, zigzag(offset - end))
    writer.integer(2, length)
    writer.end()
    end = offset + length
  }
  const deltas = buckets.map(([, count], index) => zigzag(count - (buckets[index - 1]?.[1] ?? 0)))
  writer.bytes(13, varints(deltas))
}

/** Runs of consecutive indices. */
function spansOf(indices: readonly number[]): { offset: number; length: number }[] {
  const spans: { offset: number; length: number }[] = []
  for (const index of indices) {
    const last = spans.at(-1)
    if (last !== undefined && last.offset + last.length === index) last.length += 1
    else spans.push({ offset: index, length: 1 })
  }
  return spans
}

function writeExemplar(field: number, exemplar: Exemplar | undefined): void {
  if (exemplar === undefined) return
  writer.begin(field)
  writeLabel('trace_id', exemplar.traceId)
  writeLabel('span_id', exemplar.spanId)
  writer.double(2, exemplar.value)
  writer.begin(3)
  writer.integer(1, Math.floor(exemplar.at / 1000))
  writer.integer(2, Math.round((exemplar.at % 1000) * 1e6))
  writer.end()
  writer.end()
}

/** A label without a value is omitted: it is absent for Prometheus. */
function writeLabel(name: string, value: string): void {
  if (value === '') return
  writer.begin(1)
  writer.text(1, name)
  writer.text(2, value)
  writer.end()
}
