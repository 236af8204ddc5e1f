import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import { createMetricLabels } from './metric-labels.ts'

const header = (name: string) => (variables: object) =>
  (variables as { request: { headers: Record<string, string> } }).request.headers[name]

function labelsOf(labels: ReturnType<typeof createMetricLabels>, headers: Record<string, string>) {
  return labels(fixtureExchange({ headers }))()
}

describe('labels of the configuration', () => {
  it('are evaluated once, without credentials, and empty without a value', () => {
    let evaluations = 0
    const counted = () => {
      evaluations += 1
      return 'x'
    }
    const expressions = [header('x-team'), header('authorization'), header('missing'), counted]
    const labels = createMetricLabels(expressions, new Set())
    const read = labels(fixtureExchange({ headers: { 'x-team': 'a', authorization: 'canary' } }))
    expect(read()).toEqual(['a', expect.stringMatching(/^sha256:/), '', 'x'])
    expect(read()).toBe(read())
    expect(evaluations).toBe(1)
  })

  it('are bounded in number and length', () => {
    const labels = createMetricLabels([header('x-team')], new Set())
    for (let team = 0; team < 1_000; team++) labelsOf(labels, { 'x-team': String(team) })
    expect(labelsOf(labels, { 'x-team': 'new' })).toEqual(['other'])
    expect(labelsOf(labels, { 'x-team': '7' })).toEqual(['7'])
    const long = createMetricLabels([header('x-team')], new Set())
    expect(labelsOf(long, { 'x-team': 'y'.repeat(1_000) })[0]).toHaveLength(128)
  })
})
