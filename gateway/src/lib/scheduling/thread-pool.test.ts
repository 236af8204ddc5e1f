import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, it } from 'vitest'
import { createThreadPool, type ThreadPool, type ThreadPoolOptions } from './thread-pool.ts'

const source = `
  const { parentPort } = require('node:worker_threads')
  import(${JSON.stringify(new URL('./thread-pool.ts', import.meta.url).href)}).then(({ serveTasks }) =>
    serveTasks(parentPort, {
      double: (number) => number * 2,
      fail: () => { throw new Error('no result') },
      spin: () => { for (;;); },
      die: () => process.exit(3),
      wait: (shared) => { Atomics.wait(new Int32Array(shared), 0, 0); return 'done' },
    }))`

const pools: ThreadPool[] = []
afterEach(() => {
  for (const pool of pools.splice(0)) pool.close()
})

function poolOf(options: Partial<ThreadPoolOptions> = {}) {
  let started = 0
  const pool = createThreadPool({
    start() {
      started += 1
      return new Worker(source, { eval: true })
    },
    maxThreads: 1,
    maxQueued: 2,
    maxQueuedBytes: 1000,
    idleMs: 60_000,
    ...options,
  })
  pools.push(pool)
  return { pool, started: () => started }
}

const limits = { deadlineMs: 30_000, bytes: 10 }

describe('a thread pool', () => {
  it('runs tasks on reused threads', async () => {
    const { pool, started } = poolOf()
    expect(started()).toBe(0)
    expect(await Promise.all([1, 2].map((number) => pool.run('double', number, limits)))).toEqual([2, 4])
    expect(await pool.run('double', 4, limits)).toBe(8)
    expect(started()).toBe(1)
  })

  it('rejects with the error of the task', async () => {
    const { pool } = poolOf()
    await expect(pool.run('fail', 0, limits)).rejects.toThrow('no result')
    await expect(pool.run('unknown', 0, limits)).rejects.toThrow('unknown task unknown')
  })

  it('ends a thread at the deadline and starts another for waiting work', async () => {
    const { pool, started } = poolOf()
    const endless = pool.run('spin', 0, { ...limits, deadlineMs: 200 })
    const next = pool.run('double', 3, limits)
    await expect(endless).rejects.toThrow('deadline')
    expect(await next).toBe(6)
    expect(started()).toBe(2)
  })

  it('includes the time in the queue', async () => {
    const { pool } = poolOf()
    const shared = new SharedArrayBuffer(4)
    const first = pool.run('wait', shared, limits)
    await expect(pool.run('double', 1, { ...limits, deadlineMs: 50 })).rejects.toThrow('deadline')
    Atomics.store(new Int32Array(shared), 0, 1)
    Atomics.notify(new Int32Array(shared), 0)
    expect(await first).toBe('done')
  })

  it('rejects work beyond the limits of its queue', async () => {
    const { pool } = poolOf()
    const endless = pool.run('spin', 0, limits).catch(String)
    const waiting = [1, 2].map((number) => pool.run('double', number, limits).catch(String))
    await expect(pool.run('double', 3, limits)).rejects.toThrow('queue of the thread pool')
    pool.close()
    expect(await Promise.all([endless, ...waiting])).toEqual(
      Array.from({ length: 3 }, () => expect.stringContaining('closed')),
    )
    const { pool: other } = poolOf()
    const spinning = other.run('spin', 0, limits).catch(String)
    const large = other.run('double', 1, { ...limits, bytes: 5000 }).catch(String)
    await expect(other.run('double', 2, { ...limits, bytes: 1 })).rejects.toThrow('queue of the thread pool')
    other.close()
    await Promise.all([spinning, large])
  })

  it('survives the end of a thread', async () => {
    const { pool } = poolOf()
    await expect(pool.run('die', 0, limits)).rejects.toThrow('a thread ended')
    expect(await pool.run('double', 3, limits)).toBe(6)
  })
})
