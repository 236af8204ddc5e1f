import { expect, it } from 'vitest'
import { addTotals, type MetricDump } from './dump.ts'
import { createMetrics } from './metrics.ts'

it('renders the sum of several data planes by labels', async () => {
  const [main, one, two] = [createMetrics(), createMetrics(), createMetrics()]
  one.route('a').done(200, 7, undefined)
  two.route('a').done(200, 7, undefined)
  two.route('a').done(200, 400_000, undefined)
  two.route('b').done(500, 1, undefined)
  one.admission('connections').changed(2)
  two.admission('connections').changed(3)
  const { text } = await main.render([one.dump(), two.dump()])
  expect(text).toContain('tollgate_requests_total{route="a",status="200"} 3')
  expect(text).toContain('tollgate_requests_total{route="b",status="500"} 1')
  expect(text).toContain('tollgate_request_duration_seconds_bucket{route="a",le="0.01"} 2')
  expect(text).toContain('tollgate_request_duration_seconds_count{route="a"} 3')
  expect(text).toContain('tollgate_admission_in_use{resource="connections"} 5')
})

it('retains the last exemplar of each bucket over data planes and their end', async () => {
  const [one, two] = [createMetrics(), createMetrics()]
  const trace = (spanId: string, at: number, isSampled = true) => ({
    isSampled,
    context: { traceId: 't', spanId },
    clock: { now: () => at },
  })
  one.route('a').done(200, 1, undefined, undefined, trace('old', 1))
  two.route('a').done(200, 2, undefined, undefined, trace('new', 2))
  one.route('a').done(200, 400_000, undefined, undefined, trace('last', 1))
  one.route('a').done(200, 400_000, undefined, undefined, trace('none', 3, false))
  const duration = (dump: MetricDump) =>
    dump.find(({ name }) => name === 'tollgate_request_duration_seconds')?.series[0]
  for (const totals of [addTotals(one.dump(), two.dump()), addTotals(two.dump(), one.dump())]) {
    const { values, exemplars } = duration(totals) ?? {}
    expect(values?.slice(1)).toEqual([2, ...new Array(14).fill(0), 2])
    expect(exemplars).toHaveLength(16)
    expect(exemplars?.flatMap((exemplar) => exemplar?.spanId ?? [])).toEqual(['new', 'last'])
  }
  const untraced = createMetrics()
  untraced.route('a').done(200, 1, undefined)
  expect(duration(untraced.dump())).not.toHaveProperty('exemplars')
})

it('retains totals of a data plane that has ended, without its gauges', async () => {
  const [main, one, two] = [createMetrics(), createMetrics(), createMetrics()]
  one.route('a').done(200, 1, undefined)
  one.admission('connections').changed(2)
  two.route('a').done(200, 1, undefined)
  const past = addTotals(addTotals([], one.dump()), two.dump())
  const { text } = await main.render([past])
  expect(text).toContain('tollgate_requests_total{route="a",status="200"} 2')
  expect(text).not.toContain('tollgate_admission_in_use{')
})
