import type { Position } from '../../ledger/query/search/filter.ts'
import type { JsonValue } from '../../lib/json/json.ts'
import { invalid } from './read-value.ts'

const maxIdLength = 600
const maxCursorLength = 1_000

/** Opaque text of a position. */
export function writeCursor({ completedAt, id }: Position): string {
  return Buffer.from(JSON.stringify([completedAt, id])).toString('base64url')
}

/** Reads a cursor of an earlier response. Throws `InvalidRequest` for any other text. */
export function readCursor(value: JsonValue | undefined): Position | undefined {
  if (value === undefined || value === null) return undefined
  const position = typeof value === 'string' && value.length <= maxCursorLength ? parse(value) : undefined
  if (position === undefined) throw invalid('cursor', 'must be the cursor of an earlier response')
  return position
}

function parse(text: string): Position | undefined {
  try {
    const read: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    if (!Array.isArray(read) || read.length !== 2) return undefined
    const [completedAt, id]: unknown[] = read
    if (typeof id !== 'string' || id.length > maxIdLength || id.includes('\0') || !id.isWellFormed())
      return undefined
    return typeof completedAt === 'number' && Number.isSafeInteger(completedAt) && completedAt >= 0
      ? { completedAt, id }
      : undefined
  } catch {
    return undefined
  }
}
