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
  /** Discards the prepared configuration; resolves when its addresses are closed. Never rejects. */
  abort(): Promise<void>
  evictFile(path: string): Promise<void>
  setUnavailable(reason: string | undefined): Promise<void>
  /** Calls the current thread; rejects if it ends, or after `timeoutMs`. */
  call(name: string, request?: unknown, timeoutMs?: number): Promise<unknown>
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
  /** Counts an end of a thread that was not closed; false if it must not be replaced. */
  mayReplace(error: Error): boolean
}

const closeTimeoutMs = 5_000

export function createPlaneRunner(options: PlaneRunnerOptions): PlaneRunner {
  const { plane, log } = options
  let thread: PlaneThread | undefined
  /** Thread of the last preparation. An abort does not concern a thread that has started since. */
  let preparing: PlaneThread | undefined
  let state: 'starting' | 'ready' | 'replacing' | 'stopping' | 'closed' = 'starting'
  /** Configuration in force, and the reason why no traffic is served, for threads that start later. */
  const force: { config: Config | undefined; unavailable: string | undefined } = {
    config: undefined,
    unavailable: 'listeners',
  }
  let committed: Committed = { addresses: [] }
  /** Resolves when the current thread serves the configuration in force, or is to be replaced again. */
  let serving: Promise<void> = Promise.resolve()

  function current(): PlaneThread {
    if (thread === undefined) throw new Error(`data plane ${plane} has not started`)
    return thread
  }

  /** Whether threads are not replaced any more. */
  function isEnding(): boolean {
    return state === 'stopping' || state === 'closed'
  }

  function startThread(): PlaneThread {
    thread = options.start(onEnd)
    return thread
  }

  async function serve(next: PlaneThread): Promise<void> {
    await next.ready
    if (!isEnding()) state = 'ready'
    options.onStart()
    const { config, unavailable } = force
    // Before the activation, which opens addresses: other threads serve them already.
    await next.calls.call('setUnavailable', unavailable)
    if (config !== undefined) await activate(next, config)
    if (force.unavailable !== unavailable) await next.calls.call('setUnavailable', force.unavailable)
  }

  async function activate(on: PlaneThread, config: Config): Promise<void> {
    // An active configuration is prepared again after a change of a file that it names.
    if (!on.hasPrepared(config)) {
      if (on.isActive(config)) return
      await on.prepare(config)
    }
    committed = await on.commit()
  }

  function onEnd(error: Error): void {
    options.onEnd()
    if (state === 'starting' || state === 'closed') return
    log.error({ plane, err: error }, 'data plane ended, its connections are closed')
    if (state === 'stopping') return
    state = options.mayReplace(error) ? 'replacing' : 'stopping'
    if (state === 'replacing') serving = replace()
  }

  async function replace(): Promise<void> {
    const next = startThread()
    try {
      await serve(next)
      log.warn({ plane }, 'data plane replaced')
    } catch (error) {
      if (state === 'closed') return
      log.error({ plane, err: error }, 'data plane cannot be replaced')
      // Its end counts, and starts another one. If it has ended, another one has started already.
      void next.terminate()
    }
  }

  return {
    async run() {
      await serve(startThread())
    },
    async prepare(config) {
      await serving
      preparing = current()
      return preparing.prepare(config)
    },
    async commit(config) {
      force.config = config
      do {
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
        // A thread that ends is not replaced during the shutdown, where changes still apply.
      } while (!isEnding())
      return committed
    },
    async abort() {
      await preparing?.abort()
    },
    async evictFile(path) {
      await thread?.calls.call('evictFile', path).catch(() => undefined)
    },
    async setUnavailable(reason) {
      force.unavailable = reason
      await serving
      await thread?.calls.call('setUnavailable', reason).catch(() => undefined)
    },
    async call(name, request, timeoutMs) {
      const called = current().calls.call(name, request)
      return timeoutMs === undefined ? called : await atMost(called, timeoutMs)
    },
    note: (name) => thread?.calls.note(name, undefined),
    isStarted: () => state === 'ready',
    thread: current,
    stop() {
      state = 'stopping'
    },
    async close() {
      state = 'closed'
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
