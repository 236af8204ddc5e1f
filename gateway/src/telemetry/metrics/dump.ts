export type FamilyType = 'counter' | 'gauge' | 'histogram'

/** One series: label values in the order of its family, and numbers that add up over data planes. */
export type SeriesDump = { readonly labels: readonly string[]; readonly values: readonly number[] }

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
  const sums = new Map<string, { labels: readonly string[]; values: number[] }>()
  for (const { labels, values } of [...own, ...others]) {
    const key = labels.join('\u0000')
    const sum = sums.get(key)
    if (sum === undefined) sums.set(key, { labels, values: [...values] })
    else for (const [index, value] of values.entries()) sum.values[index] = (sum.values[index] ?? 0) + value
  }
  return [...sums.values()]
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
