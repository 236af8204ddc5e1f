import type { Position } from '../../ledger/query/search/filter.ts'
import { decodeCursor, encodeCursor } from '../../lib/json/cursor.ts'
import type { JsonValue } from '../../lib/json/json.ts'
import { invalid } from './read-value.ts'

const maxIdLength = 600
const maxCursorLength = 1_000

/** Opaque text of a position. */
export function writeCursor({ completedAt, id }: Position): string {
  return encodeCursor([completedAt, id])
}

/** Reads a cursor of an earlier response. Throws `InvalidRequest` for any other text. */
export function readCursor(value: JsonValue | undefined): Position | undefined {
  if (value === undefined || value === null) return undefined
  const position = typeof value === 'string' && value.length <= maxCursorLength ? parse(value) : undefined
  if (position === undefined) throw invalid('cursor', 'must be the cursor of an earlier response')
  return position
}

function parse(text: string): Position | undefined {
  const [completedAt, id] = decodeCursor(text, 2) ?? []
  if (typeof id !== 'string' || id.length > maxIdLength || id.includes('\0') || !id.isWellFormed())
    return undefined
  return typeof completedAt === 'number' && Number.isSafeInteger(completedAt) && completedAt >= 0
    ? { completedAt, id }
    : undefined
}
