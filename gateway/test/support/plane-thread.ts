import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { type Memory, regionOf } from '../../src/lib/planes/memory.ts'

// Thread of `plane-threads.ts`: runs one task of a module with memory in common with the other threads.

export type RegionRequest = { name: string; bytes: number; maxBytes: number | undefined }
type PlaneTask = (memory: Memory, request: never) => unknown

export type ThreadData = {
  plane: number
  planes: number
  module: string
  task: string
  request: unknown
  port: MessagePort
  /** 1 after a region has been posted to `port`. */
  signal: Int32Array
  /** Number of threads that are ready; all of `together` start at the same time. */
  start: Int32Array
  together: number
}

const { plane, planes, module, task, request, port, signal, start, together }: ThreadData = workerData

const memory: Memory = {
  plane,
  planes,
  region(name, bytes, maxBytes) {
    port.postMessage({ name, bytes, maxBytes } satisfies RegionRequest)
    Atomics.wait(signal, 0, 0)
    Atomics.store(signal, 0, 0)
    const message: { message: SharedArrayBuffer } | undefined = receiveMessageOnPort(port)
    if (message === undefined) throw new Error('no region received')
    return regionOf(message.message)
  },
}

const tasks: Record<string, PlaneTask> = await import(module)
const run = tasks[task]
if (run === undefined) throw new Error(`${module} has no task "${task}"`)
Atomics.add(start, 0, 1)
Atomics.notify(start, 0)
for (let ready = Atomics.load(start, 0); ready < together; ready = Atomics.load(start, 0)) {
  Atomics.wait(start, 0, ready)
}
parentPort?.postMessage(await run(memory, request as never))
port.close()
