import { collectDefaultMetrics, Registry } from 'prom-client'
import { addSeries, type FamilyType, type MetricDump, type SeriesDump } from './dump.ts'

/** Label values of one series, in the order of its family's label names. */
export type Labels = readonly string[]

export type ValueSlot = { value: number }
export type HistogramSlot = { counts: number[]; sum: number }

/** A metric with its series, one per combination of label values. */
export type Family<Slot> = {
  /** The slot of a series, created on the first call. */
  slot(...labels: Labels): Slot
  /** Removes a series. */
  drop(...labels: Labels): void
}

export type FamilyDescription = {
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
}

/** Metric families of one exposition, rendered in the order of their creation. */
export type MetricRegistry = {
  counter(description: FamilyDescription): Family<ValueSlot>
  gauge(description: FamilyDescription): Family<ValueSlot>
  /** A counter whose slots have more fields than their value. */
  counterOf<Slot extends ValueSlot>(description: FamilyDescription, create: () => Slot): Family<Slot>
  histogram(description: FamilyDescription, boundaries: readonly number[]): Family<HistogramSlot>
  /** Current series of all families: plain data. */
  dump(): MetricDump
  /** Prometheus text format with the series of `others` added, and its content type. */
  render(others?: readonly MetricDump[]): Promise<{ contentType: string; text: string }>
}

/**
 * Owner of prom-client, which renders the metrics and measures the process. Counting does not use it, because
 * its `inc` builds a label key per call: slots are looked up once per configuration, and a request only adds
 * numbers.
 */
export function createMetricRegistry(): MetricRegistry {
  const families: RegisteredFamily[] = []
  let ofProcess: Registry | undefined
  const createValue = () => ({ value: 0 })
  return {
    counter: (description) => valueFamily(families, { ...description, type: 'counter' }, createValue),
    gauge: (description) => valueFamily(families, { ...description, type: 'gauge' }, createValue),
    counterOf: (description, create) => valueFamily(families, { ...description, type: 'counter' }, create),
    histogram: (description, boundaries) => histogramFamily(families, description, boundaries),
    dump: () => families.map(({ description: { name, type }, series }) => ({ name, type, series: series() })),
    async render(others = []) {
      ofProcess ??= processMetrics()
      const registry = new Registry()
      for (const family of families) register(registry, family, others)
      const text = `${await ofProcess.metrics()}${await registry.metrics()}`
      return { contentType: registry.contentType, text }
    },
  }
}

/** Metrics of the operating system and the runtime. Created on first use: their collection has a cost. */
function processMetrics(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, prefix: 'tollgate_' })
  return registry
}

/** Adds a value to a histogram. Linear search: most values are in the first few buckets. */
export function observe(slot: HistogramSlot, boundaries: readonly number[], value: number): void {
  let index = 0
  while (index < boundaries.length && value > (boundaries[index] ?? 0)) index += 1
  slot.counts[index] = (slot.counts[index] ?? 0) + 1
  slot.sum += value
}

type TypedDescription = FamilyDescription & { readonly type: FamilyType }

type Sample = { metricName?: string; labels: Record<string, string>; value: number }

type RegisteredFamily = {
  readonly description: TypedDescription
  series(): SeriesDump[]
  samples(series: SeriesDump): Sample[]
}

function valueFamily<Slot extends ValueSlot>(
  families: RegisteredFamily[],
  description: TypedDescription,
  create: () => Slot,
): Family<Slot> {
  return family(families, description, {
    create,
    values: ({ value }) => [value],
    samples: (labels, [value = 0]) => [{ labels, value }],
  })
}

function histogramFamily(
  families: RegisteredFamily[],
  description: FamilyDescription,
  boundaries: readonly number[],
): Family<HistogramSlot> {
  const { name } = description
  return family<HistogramSlot>(
    families,
    { ...description, type: 'histogram' },
    {
      create: () => ({ counts: new Array(boundaries.length + 1).fill(0), sum: 0 }),
      values: ({ counts, sum }) => [sum, ...counts],
      samples: (labels, values) => histogramSamples({ name, labels, boundaries }, values),
    },
  )
}

type SlotForm<Slot> = {
  create(): Slot
  /** Numbers of a slot that add up over data planes. */
  values(slot: Slot): number[]
  samples(labels: Record<string, string>, values: readonly number[]): Sample[]
}

function family<Slot>(
  families: RegisteredFamily[],
  description: TypedDescription,
  { create, values, samples }: SlotForm<Slot>,
): Family<Slot> {
  const series = new Map<string, { readonly labels: Labels; readonly slot: Slot }>()
  families.push({
    description,
    series: () => [...series.values()].map(({ labels, slot }) => ({ labels, values: values(slot) })),
    samples: ({ labels, values }) => samples(namedLabels(description.labels, labels), values),
  })
  return {
    slot(...labels) {
      const key = keyOf(labels)
      const known = series.get(key)
      if (known) return known.slot
      const created = create()
      series.set(key, { labels, slot: created })
      return created
    },
    drop(...labels) {
      series.delete(keyOf(labels))
    },
  }
}

/** Registers the samples of a family for one rendering. */
function register(
  registry: Registry,
  { description, series, samples }: RegisteredFamily,
  others: readonly MetricDump[],
): void {
  const { name, help, type } = description
  const values = addSeries(series(), name, others).flatMap(samples)
  const metric = {
    name,
    help,
    type,
    aggregator: 'sum',
    get: async () => ({ name, help, type, aggregator: 'sum', values }),
  }
  registry.registerMetric(metric as unknown as Parameters<Registry['registerMetric']>[0])
}

function keyOf(labels: Labels): string {
  return labels.join('\u0000')
}

function namedLabels(names: readonly string[], labels: Labels): Record<string, string> {
  return Object.fromEntries(names.map((name, index) => [name, labels[index] ?? '']))
}

function histogramSamples(
  {
    name,
    labels,
    boundaries,
  }: { name: string; labels: Record<string, string>; boundaries: readonly number[] },
  [sum = 0, ...counts]: readonly number[],
): Sample[] {
  let total = 0
  const buckets = counts.map((count, index) => {
    total += count
    const le = index < boundaries.length ? String(boundaries[index]) : '+Inf'
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: total }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: total },
  ]
}
