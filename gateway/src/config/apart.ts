import { type MessagePort, Worker } from 'node:worker_threads'
import type { Breathe } from '../lib/breathe.ts'
import { fromPieces, toPieces } from '../lib/pieces.ts'
import { releaseMemory } from '../lib/release-memory.ts'

/** Work that would keep traffic waiting, by name: plain data in, plain data out. */
export type Tasks = Record<string, (request: never) => unknown>

type Job = { task: string; request: unknown }

/**
 * Does a task on a thread of its own: reading 100,000 keys from YAML takes seconds. The garbage, some 12 kB a key, goes away
 * with the thread. `entry` is a module that calls `answerTask`; its answer is read in turns with traffic.
 */
export function createApart<T extends Tasks>(entry: URL, breathe: Breathe) {
  return <Name extends keyof T & string>(
    task: Name,
    request: Parameters<T[Name]>[0],
  ): Promise<ReturnType<T[Name]>> =>
    new Promise((resolve, reject) => {
      const job: Job = { task, request }
      const worker = new Worker(entry, { workerData: job, execArgv: [], env: {} })
      worker.once('message', (pieces: readonly Uint8Array[]) => {
        resolve(fromPieces(pieces, breathe) as Promise<ReturnType<T[Name]>>)
      })
      worker.once('error', (cause) => reject(new Error(`the task ${task} failed on its thread`, { cause })))
      // After a message the promise is bound to it, and this changes nothing.
      worker.once('exit', (code) => reject(new Error(`the thread of ${task} ended with code ${code}`)))
    })
}

/** The thread's side of `createApart`. */
export function answerTask(port: MessagePort, job: Job, tasks: Tasks): void {
  const task = Object.hasOwn(tasks, job.task) ? tasks[job.task] : undefined
  if (task === undefined) throw new Error(`there is no task ${job.task}`)
  const pieces = toPieces(task(job.request as never))
  port.postMessage(
    pieces,
    pieces.map(({ buffer }) => buffer),
  )
  releaseMemory()
}
