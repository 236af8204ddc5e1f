import { isJsonObject } from '../../../lib/json/json.ts'

/** Cursors or event ids of several targets, by target name. */
export type Cursors = ReadonlyMap<string, string>

const maxLength = 64 * 1024

/** Encodes the cursors of several targets as one opaque text. */
export function formatCursors(cursors: Cursors): string {
  return Buffer.from(JSON.stringify(Object.fromEntries(cursors))).toString('base64url')
}

/**
 * Decodes the result of `formatCursors`; undefined for other texts. Values are not validated: they are
 * meaningful only to their target.
 */
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

/** Event id of one target's stream, which only that target can resume. */
export function memberEventId(index: number, id: string): string {
  return `r${index}.${id}`
}

/** Event id of the merged streams of all targets. */
export function mergedEventId(cursors: Cursors): string {
  return `l.${formatCursors(cursors)}`
}

export type EventId = { kind: 'one'; index: number; id: string } | { kind: 'merged'; cursors: Cursors }

/** Decodes an event id of either kind. */
export function parseEventId(text: string): EventId | undefined {
  if (text.startsWith('l.')) {
    const cursors = parseCursors(text.slice(2))
    return cursors && { kind: 'merged', cursors }
  }
  const match = /^r(\d{1,4})\.(.+)$/s.exec(text)
  return match === null ? undefined : { kind: 'one', index: Number(match[1]), id: match[2] ?? '' }
}
