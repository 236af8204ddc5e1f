import { expect, it } from 'vitest'
import { createEndLimit } from './end-limit.ts'

function fixtureLimit() {
  const failures: string[] = []
  const clock = { now: 0 }
  const limit = createEndLimit(
    () => clock.now,
    ({ message }) => failures.push(message),
  )
  return { clock, failures, end: (plane: number) => limit.mayReplace(new Error(`data plane ${plane} ended`)) }
}

it('fails at the fifth end within a minute, of any data planes', () => {
  const { failures, end } = fixtureLimit()
  expect([0, 1, 2, 3].map(end)).toEqual([true, true, true, true])
  expect(end(0)).toBe(false)
  expect(failures).toEqual(['data planes ended 5 times within a minute: data plane 0 ended'])
})

it('forgets ends of more than a minute ago', () => {
  const { clock, failures, end } = fixtureLimit()
  for (let count = 0; count < 10; count++) {
    expect(end(0)).toBe(true)
    clock.now += 15_000
  }
  expect(failures).toEqual([])
})
