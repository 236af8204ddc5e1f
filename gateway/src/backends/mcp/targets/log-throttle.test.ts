import { expect, it } from 'vitest'
import { fixtureContext } from '../../../../test/fixtures/pipeline.ts'
import { createLogThrottle } from './log-throttle.ts'

it('admits a burst, then a rate, and reports suppressed lines', () => {
  const { clock } = fixtureContext()
  const throttle = createLogThrottle(clock, 3, 2)
  const admitted = () => throttle.admit()
  expect([admitted(), admitted(), admitted(), admitted(), admitted()]).toEqual([
    0,
    0,
    0,
    undefined,
    undefined,
  ])
  clock.advance(1000)
  expect([admitted(), admitted(), admitted()]).toEqual([2, 0, undefined])
  clock.advance(3_600_000)
  expect([admitted(), admitted(), admitted(), admitted()]).toEqual([1, 0, 0, undefined])
})
