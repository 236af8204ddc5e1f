import { once } from 'node:events'
import { MessageChannel } from 'node:worker_threads'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createWorkerTasks, serveWorkerTasks } from './worker-task.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})

afterEach(() => {
  vi.useRealTimers()
})

/** The thread's side behind a channel, and the number of releases. */
function start(tasks: Record<string, (request: never) => unknown>) {
  const { port1, port2 } = new MessageChannel()
  const state = { releases: 0 }
  serveWorkerTasks(port1, tasks, () => {
    state.releases += 1
  })
  const run = createWorkerTasks(
    {
      async run(task, request) {
        port2.postMessage({ task, request })
        const [answer] = await once(port2, 'message')
        if ('error' in answer) throw new Error(answer.error)
        return answer.value
      },
    },
    () => undefined,
  )
  return { run, state, close: () => port1.close() }
}

it('runs tasks sequentially, and releases memory when idle', async () => {
  const { run, state, close } = start({ double: (list: never) => ({ list: [list, list] }) })
  expect(await run('double', [1, { a: 'b' }] as never)).toEqual({
    list: [
      [1, { a: 'b' }],
      [1, { a: 'b' }],
    ],
  })
  vi.advanceTimersByTime(20_000)
  expect(await run('double', 2 as never)).toEqual({ list: [2, 2] })
  vi.advanceTimersByTime(20_000)
  expect(state.releases).toBe(0)
  vi.advanceTimersByTime(10_000)
  expect(state.releases).toBe(1)
  vi.advanceTimersByTime(300_000)
  expect(state.releases).toBe(1)
  close()
})

it('releases memory immediately after a large result', async () => {
  const { run, state, close } = start({ much: () => ['x'.repeat(5 * 1024 * 1024)] })
  await run('much', undefined as never)
  vi.advanceTimersByTime(1)
  expect(state.releases).toBe(1)
  close()
})

it('rejects with the message of a task that throws', async () => {
  const { run, close } = start({
    fail: () => {
      throw new Error('not today')
    },
  })
  await expect(run('fail', undefined as never)).rejects.toThrow('not today')
  close()
})
