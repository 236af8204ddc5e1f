import type { Config } from '../config/schema.ts'
import type { Log } from '../telemetry/log.ts'
import type { Committed, Prepared } from './messages/plane-protocol.ts'
import type { PlaneThread } from './plane-thread.ts'

/** A data plane with its threads: one at a time, replaced when it ends. */
export type PlaneRunner = {
  /** Starts the first thread; rejects if it fails. */
  run(): Promise<void>
  /** Prepares a configuration; rejects with its reasons, or if the thread ends meanwhile. */
  prepare(config: Config): Promise<Prepared>
  /**
   * Activates a configuration, on a thread that has started since the preparation too. Resolves when the data
   * plane serves it.
   */
  commit(config: Config): Promise<Committed>
  abort(): void
  evictFile(path: string): Promise<void>
  setUnavailable(reason: string | undefined): Promise<void>
  /** Calls the current thread; rejects if it ends, or after `timeoutMs`. */
  call(name: string, timeoutMs?: number): Promise<unknown>
  note(name: string): void
  isStarted(): boolean
  thread(): PlaneThread
  /** Replaces the thread no more. */
  stop(): void
  /** Ends the thread, after its connections have been closed. */
  close(): Promise<void>
}

export type PlaneRunnerOptions = {
  plane: number
  log: Log
  start(onEnd: (error: Error) => void): PlaneThread
  /** Called when a thread accepts calls, before it receives a configuration. */
  onStart(): void
  /** Called at the end of a thread, before its replacement starts. */
  onEnd(): void
  /** Called instead of a further replacement. */
  onLimit(error: Error): void
}

const maxEnds = 5
const endsWindowMs = 60_000
const closeTimeoutMs = 5_000

export function createPlaneRunner(options: PlaneRunnerOptions): PlaneRunner {
  const { plane, log } = options
  let thread: PlaneThread | undefined
  let state: 'starting' | 'ready' | 'replacing' | 'stopping' = 'starting'
  /** Configuration in force, and the reason why no traffic is served, for threads that start later. */
  const force: { config: Config | undefined; unavailable: string | undefined } = {
    config: undefined,
    unavailable: 'listeners',
  }
  let committed: Committed = { addresses: [] }
  /** Resolves when the current thread serves the configuration in force, or is to be replaced again. */
  let serving: Promise<void> = Promise.resolve()
  let ends: number[] = []

  function current(): PlaneThread {
    if (thread === undefined) throw new Error(`data plane ${plane} has not started`)
    return thread
  }

  async function startThread(): Promise<void> {
    const next = options.start(onEnd)
    thread = next
    await next.ready
    state = state === 'stopping' ? state : 'ready'
    options.onStart()
    const { config, unavailable } = force
    if (config !== undefined) await activate(next, config)
    await next.calls.call('setUnavailable', unavailable)
    if (force.unavailable !== unavailable) await next.calls.call('setUnavailable', force.unavailable)
  }

  async function activate(on: PlaneThread, config: Config): Promise<void> {
    if (on.isActive(config)) return
    if (!on.hasPrepared(config)) await on.prepare(config)
    committed = await on.commit()
  }

  function onEnd(error: Error): void {
    options.onEnd()
    if (state === 'stopping' || state === 'starting') return
    state = 'replacing'
    log.error({ plane, err: error }, 'data plane ended, its connections are closed')
    const now = performance.now()
    ends = [...ends, now].filter((at) => now - at < endsWindowMs)
    if (ends.length < maxEnds) {
      serving = replace()
      return
    }
    state = 'stopping'
    options.onLimit(new Error(`data plane ${plane} ended ${maxEnds} times within a minute: ${error.message}`))
  }

  async function replace(): Promise<void> {
    try {
      await startThread()
      log.warn({ plane }, 'data plane replaced')
    } catch (error) {
      log.error({ plane, err: error }, 'data plane cannot be replaced')
      // Its end counts, and starts another one.
      void thread?.terminate()
    }
  }

  return {
    async run() {
      await startThread()
    },
    async prepare(config) {
      await serving
      return current().prepare(config)
    },
    async commit(config) {
      force.config = config
      while (state !== 'stopping') {
        await serving
        const on = current()
        try {
          await activate(on, config)
          return committed
        } catch (error) {
          // A thread that ended is replaced by one with the configuration in force.
          log.error({ plane, err: error }, 'data plane cannot activate a configuration, it is replaced')
          await on.terminate()
        }
      }
      return committed
    },
    abort() {
      thread?.abort()
    },
    async evictFile(path) {
      await thread?.calls.call('evictFile', path).catch(() => undefined)
    },
    async setUnavailable(reason) {
      force.unavailable = reason
      await serving
      await thread?.calls.call('setUnavailable', reason).catch(() => undefined)
    },
    async call(name, timeoutMs) {
      const called = current().calls.call(name, undefined)
      return timeoutMs === undefined ? called : await atMost(called, timeoutMs)
    },
    note: (name) => thread?.calls.note(name, undefined),
    isStarted: () => state === 'ready',
    thread: current,
    stop() {
      state = 'stopping'
    },
    async close() {
      state = 'stopping'
      if (thread === undefined) return
      await atMost(thread.calls.call('close', undefined), closeTimeoutMs).catch(() => undefined)
      await thread.terminate()
    },
  }
}

async function atMost<T>(work: Promise<T>, ms: number): Promise<T> {
  const expired = Promise.withResolvers<never>()
  const timer = setTimeout(() => expired.reject(new Error('data plane did not respond')), ms)
  try {
    return await Promise.race([work, expired.promise])
  } finally {
    clearTimeout(timer)
  }
}
