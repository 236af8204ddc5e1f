import { collectDefaultMetrics, Registry } from 'prom-client'
import {
  copyNative,
  countNative,
  createNativeCounts,
  type NativeCounts,
} from '../native-histogram/native-histogram.ts'
import { addSeries, type Exemplar, type FamilyType, type MetricDump, type SeriesDump } from './dump.ts'

/** Label values of one series, in the order of its family's label names. */
export type Labels = readonly string[]

export type ValueSlot = { value: number }
export type HistogramSlot = {
  counts: number[]
  sum: number
  /** The last exemplar of each bucket; undefined before the first. */
  exemplars: (Exemplar | undefined)[] | undefined
  /** Undefined if native histograms are not configured. */
  readonly native: NativeCounts | undefined
}

/** Trace of the request that a value of a histogram belongs to. */
export type ObservedTrace = {
  readonly isSampled: boolean
  readonly context: { readonly traceId: string; readonly spanId: string }
  readonly clock: { now(): number }
}

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
  /** Series may have values of further labels at the end of their own, which `extend` names. */
  readonly extensible?: true
}

/** Form of histograms: with configured buckets, with exponential ones, or with both. */
export type HistogramForm = 'classic' | 'native' | 'both'

/** Settings of the exposition. */
export type Exposition = {
  /** Names of metrics that are omitted. */
  readonly removed: ReadonlySet<string>
  /** Further labels of extensible metrics. */
  readonly labels: readonly string[]
  /** `classic` by default. */
  readonly histograms?: HistogramForm | undefined
}

/** A metric with its series: plain data. */
export type CollectedFamily = FamilyDescription & {
  readonly type: FamilyType
  /** Of the buckets of a histogram; empty for other metrics and native histograms without them. */
  readonly boundaries: readonly number[]
  readonly series: readonly SeriesDump[]
}

/** Metric families of one exposition, rendered in the order of their creation. */
export type MetricRegistry = {
  counter(description: FamilyDescription): Family<ValueSlot>
  gauge(description: FamilyDescription): Family<ValueSlot>
  /** A counter whose slots have more fields than their value. */
  counterOf<Slot extends ValueSlot>(description: FamilyDescription, create: () => Slot): Family<Slot>
  histogram(description: FamilyDescription, boundaries: readonly number[]): Family<HistogramSlot>
  /** Changes the exposition; by default it has all metrics and no further labels. */
  expose(exposition: Exposition): void
  /** Current series of all families: plain data. */
  dump(): MetricDump
  /** All families with the series of `others` added, and counters and gauges of the process. */
  collect(others?: readonly MetricDump[]): Promise<CollectedFamily[]>
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
  let exposed: Exposition = { removed: new Set(), labels: [] }
  const shown = () => families.filter(({ description: { name } }) => !exposed.removed.has(name))
  const createValue = () => ({ value: 0 })
  return {
    counter: (description) => valueFamily(families, { ...description, type: 'counter' }, createValue),
    gauge: (description) => valueFamily(families, { ...description, type: 'gauge' }, createValue),
    counterOf: (description, create) => valueFamily(families, { ...description, type: 'counter' }, create),
    histogram: (description, boundaries) =>
      histogramFamily(families, description, { boundaries, isNative: () => isNative(exposed) }),
    expose(exposition) {
      exposed = exposition
    },
    async collect(others = []) {
      ofProcess ??= processMetrics()
      const own = shown().map(({ description, boundaries, series }) => ({
        ...description,
        labels: labelsOf(description, exposed),
        ...presented(boundaries, addSeries(series(), description.name, others), exposed),
      }))
      const process = await collectProcess(ofProcess)
      return [...own, ...process.filter(({ name }) => !exposed.removed.has(name))]
    },
    dump: () => families.map(({ description: { name, type }, series }) => ({ name, type, series: series() })),
    async render(others = []) {
      ofProcess ??= processMetrics()
      const registry = new Registry()
      for (const family of shown()) register(registry, family, others, exposed)
      const text = `${await textOfProcess(ofProcess, exposed)}${await registry.metrics()}`
      return { contentType: registry.contentType, text }
    },
  }
}

function isNative({ histograms = 'classic' }: Exposition): boolean {
  return histograms !== 'classic'
}

/** Series in the configured form: beside native histograms, the only bucket is that of all values. */
function presented(
  boundaries: readonly number[],
  series: readonly SeriesDump[],
  { histograms }: Exposition,
): Pick<CollectedFamily, 'boundaries' | 'series'> {
  if (histograms !== 'native' || boundaries.length === 0) return { boundaries, series }
  const united = series.map((dump) => {
    const [sum = 0, ...counts] = dump.values
    const exemplars = dump.exemplars
      ?.filter((exemplar) => exemplar !== undefined)
      .sort((one, other) => other.at - one.at)
    return { ...dump, values: [sum, counts.reduce((all, count) => all + count, 0)], exemplars }
  })
  return { boundaries: [], series: united }
}

/** Metrics of the operating system and the runtime. Created on first use: their collection has a cost. */
function processMetrics(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, prefix: 'tollgate_' })
  return registry
}

function labelsOf({ labels, extensible }: FamilyDescription, exposed: Exposition): readonly string[] {
  return extensible === true && exposed.labels.length > 0 ? [...labels, ...exposed.labels] : labels
}

async function textOfProcess(registry: Registry, { removed }: Exposition): Promise<string> {
  if (removed.size === 0) return registry.metrics()
  const names = registry.getMetricsAsArray().flatMap(({ name }) => (removed.has(name) ? [] : [name]))
  const texts = await Promise.all(names.map((name) => registry.getSingleMetricAsString(name)))
  return texts.map((text) => `${text}\n\n`).join('')
}

/** Metrics of the process as plain data. */
async function collectProcess(registry: Registry): Promise<CollectedFamily[]> {
  const metrics = await registry.getMetricsAsJSON()
  return metrics.flatMap(({ name, help, type, values }): CollectedFamily[] => {
    const kind = String(type)
    if (kind === 'histogram') return [collectHistogram({ name, help, values })]
    if (kind !== 'counter' && kind !== 'gauge') return []
    const labels = [...new Set(values.flatMap((sample) => Object.keys(sample.labels)))]
    const series = values.map((sample) => ({
      labels: labels.map((label) => String(sample.labels[label] ?? '')),
      values: [sample.value],
    }))
    return [{ name, help, type: kind, labels, boundaries: [], series }]
  })
}

type ProcessSample = { readonly labels: object; readonly value: number; readonly metricName?: string }

/** A histogram of the process, whose buckets are cumulative samples. */
function collectHistogram({
  name,
  help,
  values,
}: {
  name: string
  help: string
  values: readonly ProcessSample[]
}): CollectedFamily {
  const samples = values.map(({ labels, value, metricName }) => {
    const { le, ...own } = labels as Record<string, string | number>
    return { le, own, value, metricName }
  })
  const labels = [...new Set(samples.flatMap(({ own }) => Object.keys(own)))]
  const boundaries = [...new Set(samples.map(({ le }) => Number(le)).filter(Number.isFinite))]
  const series = new Map<string, { labels: string[]; values: number[]; total: number }>()
  for (const { le, own, value, metricName } of samples) {
    const ownLabels = labels.map((label) => String(own[label] ?? ''))
    const key = keyOf(ownLabels)
    const found = series.get(key) ?? { labels: ownLabels, values: [0], total: 0 }
    series.set(key, found)
    if (metricName === `${name}_sum`) found.values[0] = value
    if (metricName !== `${name}_bucket` || le === undefined) continue
    found.values.push(value - found.total)
    found.total = value
  }
  const dumps = [...series.values()].map(({ total: _, ...dump }) => dump)
  return { name, help, type: 'histogram', labels, boundaries, series: dumps }
}

/**
 * Adds a value to a histogram, as exemplar of its bucket if its trace is sampled. Linear search: most values
 * are in the first few buckets.
 */
export function observe(
  slot: HistogramSlot,
  boundaries: readonly number[],
  value: number,
  trace?: ObservedTrace | undefined,
): void {
  let index = 0
  while (index < boundaries.length && value > (boundaries[index] ?? 0)) index += 1
  slot.counts[index] = (slot.counts[index] ?? 0) + 1
  slot.sum += value
  if (slot.native !== undefined) countNative(slot.native, value)
  if (trace?.isSampled !== true) return
  const { traceId, spanId } = trace.context
  slot.exemplars ??= new Array(boundaries.length + 1).fill(undefined)
  slot.exemplars[index] = { value, at: trace.clock.now(), traceId, spanId }
}

type TypedDescription = FamilyDescription & { readonly type: FamilyType }

type Sample = { metricName?: string; labels: Record<string, string>; value: number }

type RegisteredFamily = {
  readonly description: TypedDescription
  readonly boundaries: readonly number[]
  series(): SeriesDump[]
  samples(
    series: SeriesDump & { readonly boundaries: readonly number[] },
    labels: readonly string[],
  ): Sample[]
}

function valueFamily<Slot extends ValueSlot>(
  families: RegisteredFamily[],
  description: TypedDescription,
  create: () => Slot,
): Family<Slot> {
  return family(families, description, {
    boundaries: [],
    create,
    values: ({ value }) => [value],
    samples: (labels, [value = 0]) => [{ labels, value }],
  })
}

function histogramFamily(
  families: RegisteredFamily[],
  description: FamilyDescription,
  { boundaries, isNative }: { boundaries: readonly number[]; isNative(): boolean },
): Family<HistogramSlot> {
  const { name } = description
  return family<HistogramSlot>(
    families,
    { ...description, type: 'histogram' },
    {
      boundaries,
      create: () => ({
        counts: new Array(boundaries.length + 1).fill(0),
        sum: 0,
        exemplars: undefined,
        native: isNative() ? createNativeCounts() : undefined,
      }),
      values: ({ counts, sum }) => [sum, ...counts],
      details: ({ exemplars, native }) => ({
        ...(exemplars && { exemplars: [...exemplars] }),
        ...(native && { native: copyNative(native) }),
      }),
      samples: (labels, values, shown) => histogramSamples({ name, labels, boundaries: shown }, values),
    },
  )
}

type SlotForm<Slot> = {
  readonly boundaries: readonly number[]
  create(): Slot
  /** Numbers of a slot that add up over data planes. */
  values(slot: Slot): number[]
  details?(slot: Slot): Pick<SeriesDump, 'exemplars' | 'native'>
  samples(labels: Record<string, string>, values: readonly number[], boundaries: readonly number[]): Sample[]
}

function family<Slot>(
  families: RegisteredFamily[],
  description: TypedDescription,
  { boundaries, create, values, samples, details }: SlotForm<Slot>,
): Family<Slot> {
  const series = new Map<string, { readonly labels: Labels; readonly slot: Slot }>()
  families.push({
    description,
    boundaries,
    series: () =>
      [...series.values()].map(({ labels, slot }) => {
        const dump = { labels, values: values(slot) }
        return details === undefined ? dump : { ...dump, ...details(slot) }
      }),
    samples: ({ labels, values, boundaries: shown }, names) =>
      samples(namedLabels(names, labels), values, shown),
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
  { description, boundaries, series, samples }: RegisteredFamily,
  others: readonly MetricDump[],
  exposed: Exposition,
): void {
  const { name, help, type } = description
  const labels = labelsOf(description, exposed)
  const { series: shown, boundaries: shownBoundaries } = presented(
    boundaries,
    addSeries(series(), name, others),
    exposed,
  )
  const values = shown.flatMap((each) => samples({ ...each, boundaries: shownBoundaries }, labels))
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
