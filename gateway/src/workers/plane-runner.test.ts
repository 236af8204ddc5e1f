import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../test/fixtures/pipeline.ts'
import type { Config } from '../config/schema.ts'
import { createPlaneRunner } from './plane-runner.ts'
import type { PlaneThread } from './plane-thread.ts'

type FakeThread = PlaneThread & {
  end(): void
  readonly active: Config | undefined
  failing: boolean
  /** The last call before the first preparation. */
  calledAtPrepare: unknown[] | undefined
  aborts: number
}

/** The end that is not followed by a replacement. */
const maxEnds = 5

/** A thread that records its configuration. */
function fakeThread(onEnd: (error: Error) => void): FakeThread {
  let prepared: Config | undefined
  let ended = false
  let lastCall: unknown[] = []
  const alive = () => {
    if (ended || thread.failing) throw new Error('data plane 0 ended')
  }
  const thread: FakeThread & { active: Config | undefined } = {
    active: undefined,
    failing: false,
    calledAtPrepare: undefined,
    aborts: 0,
    ready: Promise.resolve(),
    calls: {
      async call(name, request) {
        alive()
        lastCall = [name, request]
      },
      note() {},
      end() {},
    },
    async prepare(config) {
      alive()
      thread.calledAtPrepare ??= lastCall
      prepared = config
      return { files: new Map(), fingerprint: '' }
    },
    async commit() {
      alive()
      thread.active = prepared
      prepared = undefined
      return { addresses: [] }
    },
    async abort() {
      thread.aborts += 1
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
  const ends: Error[] = []
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
    mayReplace: (error) => ends.push(error) < maxEnds,
  })
  return { runner, threads, ends }
}

const config: Config = { llm: { models: [] } }
const next: Config = { llm: { models: [] } }

describe('a data plane', () => {
  it('commits the active configuration again after a change of a file', async () => {
    const { runner, threads } = fixtureRunner()
    await runner.run()
    await runner.prepare(config)
    await runner.commit(config)
    await runner.prepare(config)
    expect(threads[0]?.hasPrepared(config)).toBe(true)
    await runner.commit(config)
    expect(threads[0]?.hasPrepared(config)).toBe(false)
  })
})

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

  it('is not replaced if it may not be', async () => {
    const { runner, threads } = fixtureRunner()
    await runner.run()
    for (let end = 0; end < maxEnds; end++) {
      threads.at(-1)?.end()
      await new Promise(setImmediate)
    }
    expect(threads).toHaveLength(maxEnds)
  })

  it('is replaced once for each end, also at its start', async () => {
    const { runner, threads, ends } = fixtureRunner()
    await runner.run()
    threads[0]?.end()
    threads[1]?.end()
    await new Promise(setImmediate)
    await runner.prepare(config)
    await runner.commit(config)
    expect(ends).toHaveLength(2)
    expect(threads[2]?.active).toBe(config)
  })

  it('is not concerned by the abort of a preparation on the thread before', async () => {
    const { runner, threads } = fixtureRunner()
    await runner.run()
    await runner.prepare(config)
    await runner.commit(config)
    await runner.prepare(next)
    threads[0]?.end()
    await runner.abort()
    expect(threads.map(({ aborts }) => aborts)).toEqual([1, 0])
  })

  it('is available before it opens addresses', async () => {
    const { runner, threads } = fixtureRunner()
    await runner.run()
    await runner.prepare(config)
    await runner.commit(config)
    await runner.setUnavailable(undefined)
    threads[0]?.end()
    await runner.prepare(next)
    expect(threads[1]?.calledAtPrepare).toEqual(['setUnavailable', undefined])
  })

  it('activates a configuration during the shutdown', async () => {
    const { runner, threads } = fixtureRunner()
    await runner.run()
    runner.stop()
    await runner.prepare(config)
    await runner.commit(config)
    expect(threads[0]?.active).toBe(config)
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
