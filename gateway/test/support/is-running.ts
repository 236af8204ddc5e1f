import { readFileSync } from 'node:fs'

/** Whether a process runs. A zombie counts as ended. */
export function isRunning(pid: unknown): boolean {
  if (typeof pid !== 'number') return false
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    // It is gone, perhaps while this was read.
    return false
  }
}
