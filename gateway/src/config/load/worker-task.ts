import type { MessagePort } from 'node:worker_threads'
import { deserializeChunks, serializeChunks } from '../../lib/scheduling/chunked-clone.ts'
import { type PoolTasks, serveTasks, type ThreadPool } from '../../lib/scheduling/thread-pool.ts'
import type { YieldPoint } from '../../lib/scheduling/yielding.ts'

/** CPU-bound tasks by name, with plain data as request and result. */
export type WorkerTasks = Record<string, (request: never) => unknown>

/**
 * Time limit of a task, queueing included. Reading 100,000 keys from YAML takes some ten seconds on a loaded
 * machine.
 */
const deadlineMs = 600_000

/**
 * Runs tasks on a worker thread: reading 100,000 keys from YAML takes seconds. The thread is reused, because
 * loading its program takes longer than most tasks. The result is cloned in chunks, interleaved with traffic.
 * The thread calls `serveWorkerTasks`.
 */
export function createWorkerTasks<T extends WorkerTasks>(
  threads: Pick<ThreadPool, 'run'>,
  yieldPoint: YieldPoint,
) {
  return async <Name extends keyof T & string>(
    task: Name,
    request: Parameters<T[Name]>[0],
  ): Promise<ReturnType<T[Name]>> => {
    const answer = await threads.run(task, request, { deadlineMs, bytes: 0 })
    // The thread responds with the chunks of the result; both sides are the same version.
    return deserializeChunks(answer as readonly Uint8Array[], yieldPoint) as Promise<ReturnType<T[Name]>>
  }
}

/** Idle time after which the thread of `createWorkerTasks` exits. */
export const workerIdleMs = 300_000

/** Garbage of a small task is collected when the thread is idle: a collection discards optimised code. */
const smallPiecesBytes = 4 * 1024 * 1024
const quietMs = 30_000

/**
 * Serves tasks on the thread. `release` returns unused memory to the system, which the exit of a thread does
 * not.
 */
export function serveWorkerTasks(port: MessagePort, tasks: WorkerTasks, release: () => void): void {
  let quiet: NodeJS.Timeout | undefined
  const inPieces: PoolTasks = Object.fromEntries(
    Object.entries(tasks).map(([name, task]) => [
      name,
      (request: never) => {
        const pieces = serializeChunks(task(request))
        const bytes = pieces.reduce((sum, { byteLength }) => sum + byteLength, 0)
        clearTimeout(quiet)
        quiet = setTimeout(release, bytes > smallPiecesBytes ? 0 : quietMs).unref()
        return pieces
      },
    ]),
  )
  serveTasks(port, inPieces)
}
