/**
 * Turns of the event loop until the work settles. Work in slices takes many, work at once takes none: a count
 * does not depend on the speed of the machine. The work must settle by promise, because a timer in it adds
 * idle turns.
 */
export async function countTurns(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let isOver = false
  const count = () => {
    if (isOver) return
    turns += 1
    setImmediate(count)
  }
  setImmediate(count)
  try {
    await work()
  } finally {
    isOver = true
  }
  return turns
}
