import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { type Memory, maxBytesOf, regionOf } from '../../src/lib/planes/memory.ts'
import type { RegionRequest, ThreadData } from './plane-thread.ts'

const entry = new URL('./plane-thread.ts', import.meta.url)

/** Task of a module, as data: the threads import it. */
export type TaskOf = { module: URL; task: string }

/** Threads with memory in common, one per data plane. */
export type PlaneThreads = {
  /** Runs a task on a data plane, in a new thread. */
  run(plane: number, task: TaskOf, request: unknown): Promise<unknown>
  /** Runs a task on all data planes at the same time. */
  runAll(task: TaskOf, request: unknown): Promise<unknown[]>
  /** Ends the thread of a data plane. */
  kill(plane: number): Promise<void>
  /** The memory of a name, which a data plane has requested. */
  buffer(name: string): SharedArrayBuffer
  /** Names of the memory that data planes have requested. */
  names(): string[]
  has(name: string): boolean
  /** The memory that the data planes have requested, for another thread: this one. */
  readonly memory: Memory
  close(): Promise<void>
}

/** Creates the memory of `count` data planes. */
export function createPlaneThreads(count: number): PlaneThreads {
  const buffers = new Map<string, SharedArrayBuffer>()
  const workers = new Map<number, Worker>()

  function serveRegions(port: MessagePort, signal: Int32Array): void {
    port.on('message', ({ name, bytes, maxBytes }: RegionRequest) => {
      const buffer = buffers.get(name) ?? new SharedArrayBuffer(bytes, maxBytesOf(bytes, maxBytes))
      buffers.set(name, buffer)
      port.postMessage(buffer)
      Atomics.store(signal, 0, 1)
      Atomics.notify(signal, 0)
    })
  }

  function run(plane: number, { module, task }: TaskOf, request: unknown, together = 1): Promise<unknown> {
    const { port1, port2 } = new MessageChannel()
    const signal = new Int32Array(new SharedArrayBuffer(4))
    serveRegions(port1, signal)
    const start = startOf(together)
    const workerData: ThreadData = {
      ...{ plane, planes: count, module: module.href, task, request },
      ...{ port: port2, signal, start, together },
    }
    const worker = new Worker(entry, { workerData, transferList: [port2] })
    workers.set(plane, worker)
    return new Promise((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
      worker.once('exit', () => {
        port1.close()
        reject(new Error(`thread ${plane} has ended`))
      })
    })
  }

  const starts = new Map<number, Int32Array>()
  function startOf(together: number): Int32Array {
    const start = starts.get(together)
    if (together > 1 && start !== undefined) return start
    const created = new Int32Array(new SharedArrayBuffer(4))
    starts.set(together, created)
    return created
  }

  /** As in the process: empty before a data plane requests it. */
  const unbound = new SharedArrayBuffer(0)

  function buffer(name: string): SharedArrayBuffer {
    const existing = buffers.get(name)
    if (existing === undefined) throw new Error(`no data plane has requested "${name}"`)
    return existing
  }

  return {
    run,
    runAll(task, request) {
      starts.delete(count)
      return Promise.all(Array.from({ length: count }, (_, plane) => run(plane, task, request, count)))
    },
    async kill(plane) {
      await workers.get(plane)?.terminate()
    },
    buffer,
    names: () => [...buffers.keys()],
    has: (name) => buffers.has(name),
    memory: { plane: count, planes: count, region: (name) => regionOf(buffers.get(name) ?? unbound) },
    async close() {
      await Promise.all([...workers.values()].map((worker) => worker.terminate()))
    },
  }
}
