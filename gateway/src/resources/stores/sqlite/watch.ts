/** Calls `check` at an interval. Checks do not overlap. */
export function createPoll(check: () => void, intervalMs: number): { start(): void; stop(): void } {
  let timer: NodeJS.Timeout | undefined
  const start = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined
      check()
      start()
    }, intervalMs)
  }
  return {
    start,
    stop() {
      clearTimeout(timer)
      timer = undefined
    },
  }
}
