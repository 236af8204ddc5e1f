/** An object that continues after the sockets with data have been read. */
export type TurnTask = { afterReads(): void }

/**
 * End of the reads of a turn of the event loop. Writes wait for it in two places. A kept-alive connection to
 * an upstream is written to only in a turn after the one of its last response: a close or unexpected bytes
 * that have arrived are read before. Small responses are written one after another, so that the first write
 * wakes the receivers for all.
 */
export type Turns = { schedule(task: TurnTask): void }

export function createTurns(): Turns {
  let tasks: TurnTask[] = []

  function run(): void {
    const due = tasks
    tasks = []
    for (const task of due) task.afterReads()
  }

  return {
    schedule(task) {
      if (tasks.length === 0) setImmediate(run)
      tasks.push(task)
    },
  }
}
