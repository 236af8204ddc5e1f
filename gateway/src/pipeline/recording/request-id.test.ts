import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRequestIds } from './request-id.ts'

const form = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

describe('request ids', () => {
  it('are UUIDs of version 7 with the time of their creation', () => {
    const id = createRequestIds(() => 1_700_000_000_123, randomUUID)()
    expect(id).toMatch(form)
    expect(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toBe(1_700_000_000_123)
  })

  it('ascend and are unique, also after 4096 ids in a millisecond and a jump of the clock', () => {
    const step = fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, fc.integer({ min: -1_000, max: 50 }))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let time = 1_700_000_000_000
        const next = createRequestIds(() => time, randomUUID)
        const ids: string[] = []
        for (const milliseconds of steps) {
          time += milliseconds
          for (let count = 0; count < 300; count++) ids.push(next())
        }
        expect(ids).toEqual([...new Set(ids)].toSorted())
        for (const id of ids) if (!form.test(id)) throw new Error(id)
      }),
      { numRuns: 20 },
    )
  })

  it('of two generators differ in the same millisecond', () => {
    const [one, other] = [createRequestIds(() => 5, randomUUID), createRequestIds(() => 5, randomUUID)]
    expect(one()).not.toBe(other())
  })
})
