import { readdirSync, readFileSync } from 'node:fs'

/** CPU time of a thread, in nanoseconds. Names have at most 15 characters. */
export type ThreadTime = { id: number; name: string; nanoseconds: number }

/** Threads of the engine: compilation, garbage collection, files, timers, signals. They serve no requests. */
const engine = /V8Worker|DelayedTask|SignalInspector|libuv/

/** The first field of /proc/PID/task/TID/schedstat: time on a CPU. */
export function parseSchedstat(text: string): number {
  const nanoseconds = Number.parseInt(text, 10)
  return Number.isInteger(nanoseconds) ? nanoseconds : 0
}

/** CPU times of the threads of a process that run JavaScript. */
export function threadTimes(processId: number): ThreadTime[] {
  return allThreadTimes(processId).filter(({ name }) => !engine.test(name))
}

/** CPU times of all threads of a process. */
export function allThreadTimes(processId: number): ThreadTime[] {
  const folder = `/proc/${processId}/task`
  return readdirSync(folder).flatMap((id) => {
    try {
      const name = readFileSync(`${folder}/${id}/comm`, 'utf8').trimEnd()
      const text = readFileSync(`${folder}/${id}/schedstat`, 'latin1')
      return [{ id: Number(id), name, nanoseconds: parseSchedstat(text) }]
    } catch {
      // The thread has ended.
      return []
    }
  })
}

/** The thread that used most CPU time between two readings, undefined if none did. */
export function busiestThread(
  before: readonly Omit<ThreadTime, 'name'>[],
  after: readonly Omit<ThreadTime, 'name'>[],
): number | undefined {
  const start = new Map(before.map(({ id, nanoseconds }) => [id, nanoseconds]))
  const used = after.map(({ id, nanoseconds }) => ({ id, spent: nanoseconds - (start.get(id) ?? 0) }))
  const [busiest] = used.filter(({ spent }) => spent > 0).toSorted((a, b) => b.spent - a.spent)
  return busiest?.id
}

/** Connections of the busiest worker over their mean; workers without a connection count in the mean. */
export function spreadOf(owners: readonly number[], workers: number): number {
  const counts = [...Map.groupBy(owners, (owner) => owner).values()].map(({ length }) => length)
  return Math.max(0, ...counts) / (owners.length / workers)
}
