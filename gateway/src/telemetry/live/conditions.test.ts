import { expect, it } from 'vitest'
import { createConditions } from './conditions.ts'

it('reports failures from the first to the recovery', () => {
  let now = 1
  const conditions = createConditions(() => now)
  const failing = { a: true, b: true }
  const report = (subject: 'a' | 'b', message: string) =>
    conditions.report({ kind: 'identity', subject, message, isPresent: () => failing[subject] })
  report('a', 'refused')
  now = 2
  report('a', 'timeout')
  report('b', 'refused')
  expect(conditions.current()).toEqual([
    { kind: 'identity', subject: 'a', message: 'timeout', since: 1 },
    { kind: 'identity', subject: 'b', message: 'refused', since: 2 },
  ])
  failing.a = false
  expect(conditions.current().map(({ subject }) => subject)).toEqual(['b'])
  failing.a = true
  now = 3
  report('a', 'refused')
  expect(conditions.current()).toContainEqual(expect.objectContaining({ subject: 'a', since: 3 }))
})

it('is bounded', () => {
  const conditions = createConditions(() => 0)
  for (let index = 0; index < 1_100; index += 1)
    conditions.report({
      ...{ kind: 'destination', subject: String(index), message: 'x'.repeat(1_000) },
      isPresent: () => true,
    })
  expect(conditions.current()).toHaveLength(1_000)
  expect(conditions.current()[0]?.message).toHaveLength(500)
})
