import type { MessagePort, Worker } from 'node:worker_threads'
import { messageOf } from '../thrown.ts'

/** Runs tasks that would block the event loop on threads, by name: plain data in, plain data out. */
export type ThreadPool = {
  /**
   * Rejects with `ThreadPoolError` if the queue is full, the deadline passes (waiting included) or the thread
   * ends, and with an error of the task's message if the task throws.
   */
  run(task: string, request: unknown, limits: JobLimits): Promise<unknown>
  /** Ends all threads and rejects active tasks. */
  close(): void
}

export type JobLimits = {
  deadlineMs: number
  /** Size of the request in memory, for the limit of the queue. */
  bytes: number
}

export type ThreadPoolOptions = {
  /** Starts a thread that calls `serveTasks`. */
  start: () => Worker
  maxThreads: number
  maxQueued: number
  maxQueuedBytes: number
  /** An idle thread ends after this time. */
  idleMs: number
}

/** Tasks by name. A task may return a promise. */
export type PoolTasks = Record<string, (request: never) => unknown>

/** Rejection by the pool itself; the message is for logs. */
export class ThreadPoolError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ThreadPoolError'
  }
}

type Job = {
  readonly message: { task: string; request: unknown }
  readonly bytes: number
  readonly settle: (outcome: { value: unknown } | { error: Error }) => void
}

type Thread = { readonly worker: Worker; job: Job | undefined; idle: NodeJS.Timeout | undefined }

/** Creates a pool that starts threads on demand. Threads, queue and time of a job are limited. */
export function createThreadPool(options: ThreadPoolOptions): ThreadPool {
  const threads = new Set<Thread>()
  const queue: Job[] = []
  let queuedBytes = 0

  return {
    run(task, request, { deadlineMs, bytes }) {
      // One job above the limit may wait alone.
      const isFull = queue.length >= options.maxQueued || queuedBytes + bytes > options.maxQueuedBytes
      if (queue.length > 0 && isFull)
        return Promise.reject(new ThreadPoolError('the queue of the thread pool is full'))
      return new Promise((resolve, reject) => {
        const timer = setTimeout(
          () => abandon(job, new ThreadPoolError('task deadline exceeded')),
          deadlineMs,
        )
        const job: Job = {
          message: { task, request },
          bytes,
          settle(outcome) {
            clearTimeout(timer)
            if ('error' in outcome) reject(outcome.error)
            else resolve(outcome.value)
          },
        }
        queue.push(job)
        queuedBytes += bytes
        advance()
      })
    },
    close() {
      const error = new ThreadPoolError('the thread pool is closed')
      for (const job of queue.splice(0)) job.settle({ error })
      queuedBytes = 0
      for (const thread of [...threads]) end(thread, error)
    },
  }

  function advance(): void {
    while (queue.length > 0) {
      const thread = freeThread()
      const job = thread && queue.shift()
      if (thread === undefined || job === undefined) return
      queuedBytes -= job.bytes
      clearTimeout(thread.idle)
      thread.job = job
      thread.worker.postMessage(job.message)
    }
  }

  function freeThread(): Thread | undefined {
    for (const thread of threads) if (thread.job === undefined) return thread
    return threads.size < options.maxThreads ? begin() : undefined
  }

  function begin(): Thread {
    const thread: Thread = { worker: options.start(), job: undefined, idle: undefined }
    const { worker } = thread
    worker.unref()
    worker.on('message', (answer: { value: unknown } | { error: string }) => {
      const { job } = thread
      thread.job = undefined
      job?.settle('error' in answer ? { error: new Error(answer.error) } : answer)
      thread.idle = setTimeout(() => end(thread, new ThreadPoolError('idle')), options.idleMs)
      thread.idle.unref()
      advance()
    })
    worker.on('error', (error) => end(thread, new ThreadPoolError(`a thread failed: ${messageOf(error)}`)))
    worker.on('exit', () => end(thread, new ThreadPoolError('a thread ended')))
    threads.add(thread)
    return thread
  }

  function end(thread: Thread, error: Error): void {
    if (!threads.delete(thread)) return
    clearTimeout(thread.idle)
    void thread.worker.terminate()
    const { job } = thread
    thread.job = undefined
    job?.settle({ error })
    advance()
  }

  function abandon(job: Job, error: Error): void {
    const place = queue.indexOf(job)
    if (place !== -1) {
      queue.splice(place, 1)
      queuedBytes -= job.bytes
      job.settle({ error })
      return
    }
    for (const thread of threads) {
      if (thread.job !== job) continue
      end(thread, error)
      return
    }
  }
}

/** Runs in the thread: processes one message after another. */
export function serveTasks(port: MessagePort, tasks: PoolTasks): void {
  port.on('message', async ({ task, request }: Job['message']) => {
    const run = Object.hasOwn(tasks, task) ? tasks[task] : undefined
    try {
      if (run === undefined) throw new Error(`unknown task ${task}`)
      const value = run(request as never)
      port.postMessage({ value: value instanceof Promise ? await value : value })
    } catch (error) {
      port.postMessage({ error: messageOf(error) })
    }
  })
}
