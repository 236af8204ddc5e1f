import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../test/fixtures/pipeline.ts'
import type { Config } from '../config/schema.ts'
import { createPlaneRunner } from './plane-runner.ts'
import type { PlaneThread } from './plane-thread.ts'

type FakeThread = PlaneThread & { end(): void; readonly active: Config | undefined; failing: boolean }

/** A thread that records its configuration. */
function fakeThread(onEnd: (error: Error) => void): FakeThread {
  let prepared: Config | undefined
  let ended = false
  const alive = () => {
    if (ended || thread.failing) throw new Error('data plane 0 ended')
  }
  const thread: FakeThread & { active: Config | undefined } = {
    active: undefined,
    failing: false,
    ready: Promise.resolve(),
    calls: { call: async () => alive(), note() {}, end() {} },
    async prepare(config) {
      alive()
      prepared = config
      return { files: new Map(), fingerprint: '' }
    },
    async commit() {
      alive()
      thread.active = prepared
      prepared = undefined
      return { addresses: [] }
    },
    abort() {
      prepared = undefined
    },
    hasPrepared: (config) => prepared === config,
    isActive: (config) => thread.active === config,
    connect() {},
    async terminate() {
      thread.end()
    },
    end() {
      if (ended) return
      ended = true
      onEnd(new Error('data plane 0 ended'))
    },
  }
  return thread
}

function fixtureRunner() {
  const threads: FakeThread[] = []
  const limits: Error[] = []
  const runner = createPlaneRunner({
    plane: 0,
    log: fixtureContext().log,
    start(onEnd) {
      const thread = fakeThread(onEnd)
      threads.push(thread)
      return thread
    },
    onStart() {},
    onEnd() {},
    onLimit: (error) => limits.push(error),
  })
  return { runner, threads, limits }
}

const config: Config = { llm: { models: [] } }
const next: Config = { llm: { models: [] } }

describe('a data plane that is replaced', () => {
  it('serves the configuration in force', async () => {
    const { runner, threads } = fixtureRunner()
    await runner.run()
    await runner.prepare(config)
    await runner.commit(config)
    threads[0]?.end()
    await runner.prepare(next)
    expect(threads.map(({ active }) => active)).toEqual([config, config])
    runner.abort()
    await runner.commit(next)
    expect(threads[1]?.active).toBe(next)
  })

  it('activates a configuration that was prepared on the thread before', async () => {
    const { runner, threads } = fixtureRunner()
    await runner.run()
    await runner.prepare(config)
    threads[0]?.end()
    await runner.commit(config)
    expect(threads[1]?.active).toBe(config)
  })

  it('is replaced if it cannot activate a configuration', async () => {
    const { runner, threads } = fixtureRunner()
    await runner.run()
    await runner.prepare(config)
    const [first] = threads
    if (first) first.failing = true
    await runner.commit(config)
    expect(threads).toHaveLength(2)
    expect(threads[1]?.active).toBe(config)
  })

  it('ends the process after five ends within a minute', async () => {
    const { runner, threads, limits } = fixtureRunner()
    await runner.run()
    for (let end = 0; end < 5; end++) {
      threads.at(-1)?.end()
      await new Promise(setImmediate)
    }
    expect(threads).toHaveLength(5)
    expect(limits.map(({ message }) => message)).toEqual([
      'data plane 0 ended 5 times within a minute: data plane 0 ended',
    ])
  })

  it('is not replaced after a stop', async () => {
    const { runner, threads } = fixtureRunner()
    await runner.run()
    runner.stop()
    threads[0]?.end()
    await new Promise(setImmediate)
    expect(threads).toHaveLength(1)
  })
})
