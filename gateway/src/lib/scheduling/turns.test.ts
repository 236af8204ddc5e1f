import { describe, expect, it } from 'vitest'
import { createTurns } from './turns.ts'

function fixture() {
  let now = 0
  const turns = createTurns({ monotonic: () => now })
  const seen: string[] = []
  function* work(name: string, stepMs: number, steps: number) {
    for (let step = 0; step < steps; step += 1) {
      seen.push(name)
      now += stepMs
      yield
    }
    return name
  }
  return { turns, seen, work, pass: (ms: number) => (now += ms) }
}

describe('turns', () => {
  it('run work in slices, with other work of the loop between them', async () => {
    const { turns, seen, work, pass } = fixture()
    const done = turns.run(work('a', 10, 3))
    const traffic = setInterval(() => {
      seen.push('traffic')
      pass(20)
    }, 1)
    expect(await done).toBe('a')
    clearInterval(traffic)
    const order = seen.join(' ')
    expect(order).toMatch(/^a traffic.* a traffic.* a/)
  })

  it('are shared by all work: one slice at a time, in turn', async () => {
    const { turns, seen, work, pass } = fixture()
    const all = Promise.all([
      turns.run(work('a', 5, 2)),
      turns.run(work('b', 5, 2)),
      turns.run(work('c', 1, 2)),
    ])
    const traffic = setInterval(() => {
      seen.push('-')
      pass(20)
    }, 1)
    expect(await all).toEqual(['a', 'b', 'c'])
    clearInterval(traffic)
    expect(seen.filter((name) => name !== '-')).toEqual(['a', 'b', 'c', 'c', 'a', 'b'])
    expect(seen.join('')).toMatch(/^a-+b-+c/)
  })

  it('pass on the error of a step', async () => {
    const { turns, work } = fixture()
    function* failing() {
      yield
      throw new Error('no')
    }
    await expect(turns.run(failing())).rejects.toThrow('no')
    expect(await turns.run(work('a', 1, 1))).toBe('a')
  })
})
