import type { MessagePort } from 'node:worker_threads'
import { deserializeChunks, serializeChunks } from '../../lib/scheduling/chunked-clone.ts'
import { type PoolTasks, serveTasks, type ThreadPool } from '../../lib/scheduling/thread-pool.ts'
import type { YieldPoint } from '../../lib/scheduling/yielding.ts'

/** Work that would keep traffic waiting, by name: plain data in, plain data out. */
export type WorkerTasks = Record<string, (request: never) => unknown>

/** Limit of one task, its wait included. Reading 100,000 keys from YAML takes some ten seconds on a busy machine. */
const deadlineMs = 600_000

/**
 * Runs a task on a thread: reading 100,000 keys from YAML takes seconds. The thread is reused, because loading the program takes
 * longer than most tasks. Its answer is read in turns with traffic. `threads` serves the tasks by `serveWorkerTasks`.
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
    // The thread answers with pieces of the result of this task; both sides are one version of one program.
    return deserializeChunks(answer as readonly Uint8Array[], yieldPoint) as Promise<ReturnType<T[Name]>>
  }
}

/** Time for which a thread of `createWorkerTasks` waits for further tasks before it ends. */
export const workerIdleMs = 300_000

/** The garbage of a small task may stay until the thread is idle: collecting it costs the engine its optimised code. */
const smallPiecesBytes = 4 * 1024 * 1024
const quietMs = 30_000

/** The thread's side of `createWorkerTasks`. `release` returns the memory of garbage, which the end of a thread does not. */
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
