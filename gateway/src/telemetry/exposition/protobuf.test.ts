import { expect, it } from 'vitest'
import { type FieldValue, readMessage } from '../../lib/protobuf/message-reader.ts'
import type { HistogramForm } from '../metrics/families.ts'
import { createMetrics } from '../metrics/metrics.ts'
import { renderMetrics } from './exposition.ts'

const accept = 'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited'
const trace = {
  isSampled: true,
  context: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) },
  clock: { now: () => 1_700_000_000_500 },
}

/** Families of an exposition by name, as their metrics. */
async function familiesOf(histograms: HistogramForm | undefined) {
  const metrics = createMetrics()
  metrics.expose({ removed: new Set(), labels: [], histograms })
  const route = metrics.route('a')
  route.done(200, 700, undefined, undefined, trace)
  for (const durationMs of [700, 760, 100]) route.done(200, durationMs, undefined)
  const { contentType, body } = await renderMetrics(metrics, accept)
  expect(contentType).toContain('encoding=delimited')
  const families = new Map<string, { type: number; metrics: Uint8Array[] }>()
  for (let at = 0; at < body.byteLength; ) {
    let length = 0
    for (let shift = 0; ; shift += 7) {
      const byte = body[at++] ?? 0
      length += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) break
    }
    const fields = fieldsOf(body.subarray(at, at + length))
    at += length
    families.set(fields.get(1)?.[0]?.text() ?? '', {
      type: fields.get(3)?.[0]?.integer() ?? 0,
      metrics: (fields.get(4) ?? []).map((metric) => metric.bytes()),
    })
  }
  return families
}

/** Fields of a message with copies of their values: a value is valid during its callback only. */
function fieldsOf(message: Uint8Array): Map<number, FieldValue[]> {
  const fields = new Map<number, FieldValue[]>()
  readMessage(message, (field, value) => {
    const attempt = <T>(read: () => T) => {
      try {
        const result = read()
        return () => result
      } catch {
        return () => {
          throw new Error(`field ${field} has another type`)
        }
      }
    }
    const copy = {
      text: attempt(value.text),
      bytes: attempt(value.bytes),
      integer: attempt(value.integer),
      boolean: attempt(value.boolean),
      double: attempt(value.double),
    }
    fields.set(field, [...(fields.get(field) ?? []), copy])
  })
  return fields
}

async function durationOf(histograms: HistogramForm | undefined) {
  const families = await familiesOf(histograms)
  const family = families.get('tollgate_request_duration_seconds')
  expect(family).toMatchObject({ type: 4, metrics: [expect.anything()] })
  const histogram = fieldsOf(family?.metrics[0] ?? new Uint8Array()).get(7)?.[0]
  return fieldsOf(histogram?.bytes() ?? new Uint8Array())
}

it('a counter has its name, type and value', async () => {
  const family = (await familiesOf(undefined)).get('tollgate_requests_total')
  expect(family?.type).toBe(0)
  const counter = fieldsOf(family?.metrics[0] ?? new Uint8Array()).get(3)?.[0]
  expect(
    fieldsOf(counter?.bytes() ?? new Uint8Array())
      .get(1)?.[0]
      ?.double(),
  ).toBe(4)
})

it('a classic histogram has cumulative buckets with exemplars, and no native ones', async () => {
  const histogram = await durationOf(undefined)
  expect(histogram.get(1)?.[0]?.integer()).toBe(4)
  expect(histogram.get(2)?.[0]?.double()).toBeCloseTo(2.26)
  const buckets = (histogram.get(3) ?? []).map((bucket) => fieldsOf(bucket.bytes()))
  expect(buckets).toHaveLength(15)
  const slow = buckets.find((bucket) => bucket.get(2)?.[0]?.double() === 1)
  expect(slow?.get(1)?.[0]?.integer()).toBe(4)
  const exemplar = fieldsOf(slow?.get(3)?.[0]?.bytes() ?? new Uint8Array())
  expect(exemplar.get(2)?.[0]?.double()).toBe(0.7)
  expect(exemplar.get(1)).toHaveLength(2)
  for (const field of [5, 6, 12, 13, 16]) expect(histogram.has(field)).toBe(false)
})

it.each(['native', 'both'] as const)(
  'a histogram of form %s has spans and differences of counts',
  async (form) => {
    const histogram = await durationOf(form)
    expect(histogram.get(3) ?? []).toHaveLength(form === 'both' ? 15 : 0)
    expect(histogram.get(5)?.[0]?.integer()).toBe(6)
    expect(histogram.get(6)?.[0]?.double()).toBe(2 ** -128)
    const spans = (histogram.get(12) ?? []).map((span) => fieldsOf(span.bytes()))
    const encoded = spans.map((span) => [span.get(1)?.[0]?.integer(), span.get(2)?.[0]?.integer()])
    // Offsets -26 and 21, in zigzag encoding.
    expect(encoded).toEqual([
      [51, 1],
      [42, 2],
    ])
    // 1, +1, -1.
    expect([...(histogram.get(13)?.[0]?.bytes() ?? [])]).toEqual([2, 2, 1])
    expect(histogram.get(16)).toHaveLength(1)
  },
)

it('the text formats of native histograms have the bucket of all values only', async () => {
  const metrics = createMetrics()
  metrics.expose({ removed: new Set(), labels: [], histograms: 'native' })
  metrics.route('a').done(200, 700, undefined, undefined, trace)
  const name = 'tollgate_request_duration_seconds_bucket'
  for (const type of ['text/plain', 'application/openmetrics-text']) {
    const lines = String((await renderMetrics(metrics, type)).body).split('\n')
    const buckets = lines.filter((line) => line.startsWith(name))
    expect(buckets).toEqual([expect.stringContaining(`${name}{route="a",le="+Inf"} 1`)])
    expect(buckets[0]?.includes('trace_id')).toBe(type !== 'text/plain')
  }
})
