import { expect, it } from 'vitest'
import { fixtureContext } from '../../../../test/fixtures/pipeline.ts'
import { linkMemory } from '../../../../test/support/linked-peers.ts'
import { createStartTime } from './start-time.ts'

it('the start time is the same on all data planes, and after the replacement of one', () => {
  const { clock } = fixtureContext()
  clock.advance(3_000_000_000_000)
  const memories = linkMemory(3)
  const starts = memories.map((memory) => {
    clock.advance(1_000)
    return createStartTime({ clock, memory })
  })
  expect([starts[1], starts[0], starts[2], starts[1]].map((start) => start?.at)).toEqual(
    Array(4).fill(3_000_000_007),
  )
  clock.advance(60_000)
  const [memory = fixtureContext().memory] = memories
  expect(createStartTime({ clock, memory }).at).toBe(3_000_000_007)
})
