import { messageOf } from '../../lib/thrown.ts'

/** Primary result code of SQLite; extended codes have it in their low byte. */
function primaryCode(error: unknown): number | undefined {
  const code = error instanceof Error && 'errcode' in error ? error.errcode : undefined
  return typeof code === 'number' ? code & 0xff : undefined
}

/** Whether another connection has the lock: SQLITE_BUSY or SQLITE_LOCKED. */
export function isBusy(error: unknown): boolean {
  const code = primaryCode(error)
  return code === 5 || code === 6
}

/** Whether the database refuses values, so that a repetition fails as well: too large, or a constraint. */
export function isRefusedContent(error: unknown): boolean {
  const code = primaryCode(error)
  return code === 18 || code === 19 || code === 20
}

/** Error message for the log: names the file, contains nothing of a value. */
export function describeError(error: unknown, path: string): string {
  return `the SQLite database ${path} cannot be used: ${reasonOf(primaryCode(error), messageOf(error))}`
}

function reasonOf(code: number | undefined, text: string): string {
  switch (code) {
    case 5:
      return 'another process had the lock for too long'
    case 8:
      return 'it cannot be written: the file, its folder or its file system is read-only'
    case 10:
      return `the disk failed: ${text}`
    case 11:
      return 'it is damaged: restore it from a backup'
    case 13:
      return 'the disk is full'
    case 14:
      return `it cannot be opened: ${text}`
    case 26:
      return 'it is not a SQLite database'
    default:
      return text
  }
}
