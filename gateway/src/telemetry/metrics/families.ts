import { collectDefaultMetrics, Registry } from 'prom-client'

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
  /** Prometheus text format, and its content type. */
  render(): Promise<{ contentType: string; text: string }>
}

/**
 * Owner of prom-client, which renders the metrics and measures the process. Counting does not use it, because
 * its `inc` builds a label key per call: slots are looked up once per configuration, and a request only adds
 * numbers.
 */
export function createMetricRegistry(): MetricRegistry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, prefix: 'tollgate_' })
  const createValue = () => ({ value: 0 })
  return {
    counter: (description) => valueFamily(registry, { ...description, type: 'counter' }, createValue),
    gauge: (description) => valueFamily(registry, { ...description, type: 'gauge' }, createValue),
    counterOf: (description, create) => valueFamily(registry, { ...description, type: 'counter' }, create),
    histogram: (description, boundaries) => histogramFamily(registry, description, boundaries),
    async render() {
      return { contentType: registry.contentType, text: await registry.metrics() }
    },
  }
}

/** Adds a value to a histogram. Linear search: most values are in the first few buckets. */
export function observe(slot: HistogramSlot, boundaries: readonly number[], value: number): void {
  let index = 0
  while (index < boundaries.length && value > (boundaries[index] ?? 0)) index += 1
  slot.counts[index] = (slot.counts[index] ?? 0) + 1
  slot.sum += value
}

type TypedDescription = FamilyDescription & { readonly type: 'counter' | 'gauge' | 'histogram' }

type Sample = { metricName?: string; labels: Record<string, string>; value: number }

function valueFamily<Slot extends ValueSlot>(
  registry: Registry,
  description: TypedDescription,
  create: () => Slot,
): Family<Slot> {
  return family(registry, description, {
    create,
    samples: (labels, { value }) => [{ labels, value }],
  })
}

function histogramFamily(
  registry: Registry,
  description: FamilyDescription,
  boundaries: readonly number[],
): Family<HistogramSlot> {
  const { name } = description
  return family<HistogramSlot>(
    registry,
    { ...description, type: 'histogram' },
    {
      create: () => ({ counts: new Array(boundaries.length + 1).fill(0), sum: 0 }),
      samples: (labels, slot) => histogramSamples({ name, labels, boundaries }, slot),
    },
  )
}

/** Adds a metric that prom-client renders from the slots on each scrape. */
function family<Slot>(
  registry: Registry,
  { name, help, labels: labelNames, type }: TypedDescription,
  { create, samples }: { create(): Slot; samples(labels: Record<string, string>, slot: Slot): Sample[] },
): Family<Slot> {
  const series = new Map<string, { readonly labels: Record<string, string>; readonly slot: Slot }>()
  const values = () => [...series.values()].flatMap(({ labels, slot }) => samples(labels, slot))
  const metric = {
    name,
    help,
    type,
    aggregator: 'sum',
    get: async () => ({ name, help, type, aggregator: 'sum', values: values() }),
  }
  registry.registerMetric(metric as unknown as Parameters<Registry['registerMetric']>[0])
  return {
    slot(...labels) {
      const key = keyOf(labels)
      const known = series.get(key)
      if (known) return known.slot
      const created = create()
      series.set(key, { labels: namedLabels(labelNames, labels), slot: created })
      return created
    },
    drop(...labels) {
      series.delete(keyOf(labels))
    },
  }
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
  { counts, sum }: HistogramSlot,
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
