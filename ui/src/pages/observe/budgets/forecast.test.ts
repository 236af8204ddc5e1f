import { describe, expect, it } from 'vitest'
import type { BudgetState } from '../../../api/budgets.ts'
import { forecastOf } from './forecast.ts'

function budget(used: string, exceeded = false): BudgetState {
  return {
    place: 'llm',
    budget: 'team',
    value: '',
    limit: { unit: 'USD', amount: '100' },
    usage: { used, reserved: '0', remaining: '0', share: 0, exceeded },
    window: { start: 0, end: 1_000 },
    action: 'block',
  }
}

describe('forecastOf', () => {
  it('continues the use since the start of the window', () => {
    expect(forecastOf(budget('20'), 500)).toEqual({ kind: 'within', share: 0.4 })
  })

  it('names the time at which the limit is reached', () => {
    expect(forecastOf(budget('80'), 400)).toEqual({ kind: 'reached', at: 500, share: 2 })
  })

  it('is unknown at the start of a window', () => {
    expect(forecastOf(budget('1'), 5)).toEqual({ kind: 'unknown' })
    expect(forecastOf(budget('1'), -5)).toEqual({ kind: 'unknown' })
  })

  it('reports a reached limit', () => {
    expect(forecastOf(budget('120', true), 400)).toEqual({ kind: 'exceeded' })
  })
})
