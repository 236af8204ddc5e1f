import { isJsonObject } from '../../../lib/json/json.ts'

/** Where several targets' lists or streams stand: the target's name and its own cursor or event id. */
export type Cursors = ReadonlyMap<string, string>

const maxLength = 64 * 1024

/** One opaque text for the cursors of several targets. */
export function formatCursors(cursors: Cursors): string {
  return Buffer.from(JSON.stringify(Object.fromEntries(cursors))).toString('base64url')
}

/** Reads what `formatPositions` made; undefined for anything else. The values are believed: they only mean something to their target. */
export function parseCursors(text: string): Cursors | undefined {
  if (text.length > maxLength) return undefined
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.toString('base64url') !== text) return undefined
  let value: unknown
  try {
    value = JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
  if (!isJsonObject(value)) return undefined
  const cursors = new Map<string, string>()
  for (const [name, cursor] of Object.entries(value)) {
    if (typeof cursor !== 'string') return undefined
    cursors.set(name, cursor)
  }
  return cursors.size === 0 ? undefined : cursors
}

/** An event id of one target's stream, which only that target can go on with. */
export function memberEventId(index: number, id: string): string {
  return `r${index}.${id}`
}

/** An event id of the streams of all targets merged. */
export function mergedEventId(cursors: Cursors): string {
  return `l.${formatCursors(cursors)}`
}

export type EventId = { kind: 'one'; index: number; id: string } | { kind: 'merged'; cursors: Cursors }

/** Takes an event id of either kind apart. */
export function parseEventId(text: string): EventId | undefined {
  if (text.startsWith('l.')) {
    const cursors = parseCursors(text.slice(2))
    return cursors && { kind: 'merged', cursors }
  }
  const match = /^r(\d{1,4})\.(.+)$/s.exec(text)
  return match === null ? undefined : { kind: 'one', index: Number(match[1]), id: match[2] ?? '' }
}
