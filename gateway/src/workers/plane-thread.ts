import { type MessagePort, Worker } from 'node:worker_threads'
import type { Config } from '../config/schema.ts'
import { messageOf } from '../lib/thrown.ts'
import { type Calls, createCalls, type Handlers } from './messages/calls.ts'
import type { Committed, Prepared, PrepareRequest, ThreadStart } from './messages/plane-protocol.ts'
import type { PatchOf } from './patches.ts'

/** One data plane on a thread, from its start to its end. */
export type PlaneThread = {
  readonly calls: Calls
  /** Resolves when the thread accepts calls; rejects if it ends before. */
  readonly ready: Promise<void>
  /** Compiles a configuration on the thread. */
  prepare(config: Config): Promise<Prepared>
  /** Activates the prepared configuration. */
  commit(): Promise<Committed>
  /** Discards the prepared configuration; resolves when its addresses are closed. Never rejects. */
  abort(): Promise<void>
  /** Whether `config` is prepared and neither active nor aborted. */
  hasPrepared(config: Config): boolean
  isActive(config: Config): boolean
  connect(plane: number, port: MessagePort): void
  /** Ends the thread immediately; resolves after `onEnd`. */
  terminate(): Promise<void>
}

export type PlaneThreadOptions = {
  url: URL
  start: ThreadStart
  handlers: Handlers
  patchOf: PatchOf
  adminPort(): number
  /** Called once, at the end of the thread for any reason. */
  onEnd(error: Error): void
}

export function startPlaneThread(options: PlaneThreadOptions): PlaneThread {
  const { url, start, handlers, patchOf, adminPort, onEnd } = options
  const started = Promise.withResolvers<void>()
  // The environment is a copy: libraries read variables such as NODE_TLS_REJECT_UNAUTHORIZED.
  const worker = new Worker(url, { workerData: start, execArgv: [], name: `data plane ${start.plane}` })
  const ended = Promise.withResolvers<void>()
  const calls = createCalls(worker, { ...handlers, ready: () => started.resolve() })
  let cause: unknown
  let active: Config | undefined
  let prepared: Config | undefined

  worker.on('error', (error) => {
    cause = error
  })
  worker.on('exit', (code) => {
    const reason = cause === undefined ? `exit code ${code}` : messageOf(cause)
    const error = new Error(`data plane ${start.plane} ended: ${reason}`, { cause })
    started.reject(error)
    calls.end(error)
    onEnd(error)
    ended.resolve()
  })
  // Reported by `onEnd`.
  started.promise.catch(() => undefined)

  return {
    calls,
    ready: started.promise,
    async prepare(config) {
      prepared = undefined
      const request: PrepareRequest = { patch: patchOf(active, config), adminPort: adminPort() }
      const result = await calls.call('prepare', request)
      prepared = config
      return result as Prepared
    },
    async commit() {
      const config = prepared
      prepared = undefined
      const committed = await calls.call('commit', undefined)
      active = config
      return committed as Committed
    },
    async abort() {
      prepared = undefined
      await calls.call('abort', undefined).catch(() => undefined)
    },
    hasPrepared: (config) => prepared === config,
    isActive: (config) => active === config,
    connect: (plane, port) => calls.note('connect', { plane, port }, [port]),
    async terminate() {
      await worker.terminate()
      await ended.promise
    },
  }
}
