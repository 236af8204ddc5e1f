import { describe, expect, it } from 'vitest'
import { until } from '../../../test/support/wait.ts'
import { createKeyedQueue } from './keyed-queue.ts'

function gate() {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { promise, open: resolve }
}

describe('createKeyedQueue', () => {
  it('coalesces additions, and runs a key again that was added during its attempt', async () => {
    const runs: string[] = []
    const first = gate()
    const queue = createKeyedQueue({
      concurrency: 2,
      random: () => 0,
      failed() {},
      async work(key) {
        runs.push(key)
        if (runs.length === 1) await first.promise
      },
    })
    for (let count = 0; count < 5; count++) queue.add('a')
    queue.add('b')
    await until('b', () => runs.includes('b'))
    expect(runs).toEqual(['a', 'b'])
    first.open()
    await until('the second attempt', () => runs.length === 3)
    expect(runs).toEqual(['a', 'b', 'a'])
    await queue.close()
  })

  it('never runs more keys at a time than permitted', async () => {
    let running = 0
    let most = 0
    let done = 0
    const queue = createKeyedQueue({
      concurrency: 3,
      random: () => 0,
      failed() {},
      async work() {
        running += 1
        most = Math.max(most, running)
        await new Promise((resolve) => setImmediate(resolve))
        running -= 1
        done += 1
      },
    })
    for (let key = 0; key < 50; key++) queue.add(`k${key}`)
    await until('all', () => done === 50)
    expect(most).toBe(3)
    await queue.close()
  })

  it('repeats a failed key with growing delays, without stopping the others', async () => {
    const delays: number[] = []
    const done: string[] = []
    const queue = createKeyedQueue({
      concurrency: 1,
      random: () => 1,
      backOff: { minMs: 1, maxMs: 4 },
      failed: (_key, _error, retryMs) => delays.push(retryMs),
      async work(key) {
        if (key === 'bad' && delays.length < 4) throw new Error('no')
        done.push(key)
      },
    })
    queue.add('bad')
    queue.add('good')
    await until('both', () => done.length === 2)
    expect(done).toEqual(['good', 'bad'])
    expect(delays).toEqual([1, 2, 4, 4])
    expect(queue.size).toBe(0)
    await queue.close()
  })

  it('waits for running attempts on close and starts no others', async () => {
    const running = gate()
    const runs: string[] = []
    const queue = createKeyedQueue({
      concurrency: 1,
      random: () => 0,
      failed() {},
      async work(key) {
        runs.push(key)
        await running.promise
      },
    })
    queue.add('a')
    queue.add('b')
    const closed = queue.close()
    running.open()
    await closed
    queue.add('c')
    expect(runs).toEqual(['a'])
  })
})
