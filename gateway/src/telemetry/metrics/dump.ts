import { addNative, type NativeCounts } from '../native-histogram/native-histogram.ts'

export type FamilyType = 'counter' | 'gauge' | 'histogram'

/** A value of a histogram with the span of its request; `at` is in milliseconds since the epoch. */
export type Exemplar = {
  readonly value: number
  readonly at: number
  readonly traceId: string
  readonly spanId: string
}

/** The last exemplar of each bucket of a histogram. */
export type Exemplars = readonly (Exemplar | undefined)[]

/** One series: label values in the order of its family, and numbers that add up over data planes. */
export type SeriesDump = {
  readonly labels: readonly string[]
  readonly values: readonly number[]
  /** Absent without a sampled trace. */
  readonly exemplars?: Exemplars | undefined
  /** Counts of a native histogram; absent if they are not configured. */
  readonly native?: NativeCounts | undefined
}

/** Series of all families of a registry, as plain data. */
export type MetricDump = readonly {
  readonly name: string
  readonly type: FamilyType
  readonly series: readonly SeriesDump[]
}[]

/** Series of one family, with those of the same name in `dumps` added by label values. */
export function addSeries(
  own: readonly SeriesDump[],
  name: string,
  dumps: readonly MetricDump[],
): readonly SeriesDump[] {
  const others = dumps.flatMap((dump) => dump.find((family) => family.name === name)?.series ?? [])
  if (others.length === 0) return own
  const sums = new Map<string, Sum>()
  for (const { labels, values, exemplars, native } of [...own, ...others]) {
    const key = labels.join('\u0000')
    const sum = sums.get(key)
    if (sum === undefined) {
      sums.set(key, { labels, values: [...values], exemplars, native })
      continue
    }
    for (const [index, value] of values.entries()) sum.values[index] = (sum.values[index] ?? 0) + value
    sum.exemplars = newest(sum.exemplars, exemplars)
    sum.native = addNative(sum.native, native)
  }
  return [...sums.values()]
}

type Sum = {
  labels: readonly string[]
  values: number[]
  exemplars: Exemplars | undefined
  native: NativeCounts | undefined
}

/** The newer exemplar of each bucket. */
function newest(one: Exemplars | undefined, other: Exemplars | undefined): Exemplars | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return Array.from({ length: Math.max(one.length, other.length) }, (_, index) => {
    const [first, second] = [one[index], other[index]]
    return (second?.at ?? 0) > (first?.at ?? 0) ? second : first
  })
}

/** The sum of two dumps without gauges: the totals of data planes that have ended. */
export function addTotals(one: MetricDump, other: MetricDump): MetricDump {
  const totals = (dump: MetricDump) => dump.filter(({ type }) => type !== 'gauge')
  const names = new Set([...totals(one), ...totals(other)].map(({ name }) => name))
  return [...names].flatMap((name) => {
    const family = one.find((known) => known.name === name) ?? other.find((known) => known.name === name)
    return family === undefined ? [] : [{ ...family, series: addSeries([], name, [one, other]) }]
  })
}
