/** An object that continues after the sockets with data have been read. */
export type TurnTask = { afterReads(): void }

/**
 * End of the reads of a turn of the event loop. A kept-alive connection is written to only then, and only in
 * a turn after the one of its last response: a close or unexpected bytes that have arrived are read before.
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
