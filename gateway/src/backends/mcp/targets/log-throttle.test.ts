import { expect, it } from 'vitest'
import { fixtureContext } from '../../../../test/fixtures/pipeline.ts'
import { createLogThrottle } from './log-throttle.ts'

it('lets a burst through, then a rate, and says how much it left out', () => {
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
