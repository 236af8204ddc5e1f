import { describe, expect, it } from 'vitest'
import { createWorkQueue } from './work-queue.ts'

function fixture() {
  let now = 0
  const workQueue = createWorkQueue({ monotonic: () => now })
  const seen: string[] = []
  function* work(name: string, stepMs: number, steps: number) {
    for (let step = 0; step < steps; step += 1) {
      seen.push(name)
      now += stepMs
      yield
    }
    return name
  }
  return { workQueue, seen, work, pass: (ms: number) => (now += ms) }
}

describe('the work queue', () => {
  it('runs work in slices, with other work of the loop between them', async () => {
    const { workQueue, seen, work, pass } = fixture()
    const done = workQueue.run(work('a', 10, 3))
    const traffic = setInterval(() => {
      seen.push('traffic')
      pass(20)
    }, 1)
    expect(await done).toBe('a')
    clearInterval(traffic)
    const order = seen.join(' ')
    expect(order).toMatch(/^a traffic.* a traffic.* a/)
  })

  it('is shared by all work: one slice at a time, round-robin', async () => {
    const { workQueue, seen, work, pass } = fixture()
    const all = Promise.all([
      workQueue.run(work('a', 5, 2)),
      workQueue.run(work('b', 5, 2)),
      workQueue.run(work('c', 1, 2)),
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

  it('rejects with the error of a step', async () => {
    const { workQueue, work } = fixture()
    function* failing() {
      yield
      throw new Error('no')
    }
    await expect(workQueue.run(failing())).rejects.toThrow('no')
    expect(await workQueue.run(work('a', 1, 1))).toBe('a')
  })
})
