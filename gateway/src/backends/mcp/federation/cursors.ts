import { isJsonObject } from '../../../lib/json/json.ts'

/** Where several targets' lists or streams stand: the target's name and its own cursor or event id. */
export type Positions = ReadonlyMap<string, string>

const maxLength = 64 * 1024

/** One opaque text for the positions of several targets. */
export function formatPositions(positions: Positions): string {
  return Buffer.from(JSON.stringify(Object.fromEntries(positions))).toString('base64url')
}

/** Reads what `formatPositions` made; undefined for anything else. The values are believed: they only mean something to their target. */
export function readPositions(text: string): Positions | undefined {
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
  const positions = new Map<string, string>()
  for (const [name, position] of Object.entries(value)) {
    if (typeof position !== 'string') return undefined
    positions.set(name, position)
  }
  return positions.size === 0 ? undefined : positions
}

/** An event id of one target's stream, which only that target can go on with. */
export function streamEventId(index: number, id: string): string {
  return `r${index}.${id}`
}

/** An event id of the streams of all targets merged. */
export function mergedEventId(positions: Positions): string {
  return `l.${formatPositions(positions)}`
}

export type EventPosition =
  | { kind: 'one'; index: number; id: string }
  | { kind: 'merged'; positions: Positions }

/** Takes an event id of either kind apart. */
export function readEventId(text: string): EventPosition | undefined {
  if (text.startsWith('l.')) {
    const positions = readPositions(text.slice(2))
    return positions && { kind: 'merged', positions }
  }
  const match = /^r(\d{1,4})\.(.+)$/s.exec(text)
  return match === null ? undefined : { kind: 'one', index: Number(match[1]), id: match[2] ?? '' }
}
