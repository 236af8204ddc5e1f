import { isJsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { invalidResponse } from '../service/detector.ts'

/** Entity found in a text: its offsets in UTF-16 units, `[start, end)`. */
export type Entity = {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly score: number
  /** Offsets in code points. */
  readonly points: { readonly start: number; readonly end: number }
}

const kind = 'presidio'

/**
 * Reads the entities that the analyzer returns for a text. Its offsets are those of Python: code points.
 * Throws `CheckFailure` for offsets outside of the text.
 */
export function readEntities(response: JsonValue, text: string): Entity[] {
  if (!Array.isArray(response)) throw invalidResponse(kind, 'not a list')
  const offsetOf = codePointOffsets(text)
  return response.map((found) => {
    const { entity_type: type, start, end, score } = isJsonObject(found) ? found : {}
    if (typeof type !== 'string' || !/^[\w.-]{1,64}$/.test(type))
      throw invalidResponse(kind, 'no entity_type')
    if (typeof score !== 'number') throw invalidResponse(kind, 'no score')
    const from = offsetOf(start)
    const to = offsetOf(end)
    if (from === undefined || to === undefined || from.unit >= to.unit)
      throw invalidResponse(kind, 'offsets outside of the text')
    return { type, start: from.unit, end: to.unit, score, points: { start: from.point, end: to.point } }
  })
}

type Offset = { readonly point: number; readonly unit: number }

/**
 * Creates a reader of offsets in code points, which finds those in UTF-16 units; undefined outside of the
 * text.
 */
function codePointOffsets(text: string): (offset: JsonValue | undefined) => Offset | undefined {
  const starts = codePointStarts(text)
  const count = starts === undefined ? text.length : starts.length - 1
  return (point) => {
    if (typeof point !== 'number' || !Number.isInteger(point) || point < 0 || point > count) return undefined
    return { point, unit: starts?.[point] ?? point }
  }
}

/** Offsets of the characters of a text, and its end; undefined if they are equal in both units. */
function codePointStarts(text: string): number[] | undefined {
  if (!/[\ud800-\udfff]/.test(text)) return undefined
  const starts: number[] = []
  for (let unit = 0; unit < text.length; unit += (text.codePointAt(unit) ?? 0) > 0xffff ? 2 : 1) {
    starts.push(unit)
  }
  starts.push(text.length)
  return starts
}

/**
 * Replaces the entities by their types in angle brackets. Overlapping entities become one, with the type of
 * the highest score.
 */
export function maskEntities(text: string, entities: readonly Entity[]): string {
  const ordered = [...entities].sort((one, other) => one.start - other.start || other.end - one.end)
  const merged: Entity[] = []
  for (const entity of ordered) {
    const last = merged.at(-1)
    if (last === undefined || entity.start >= last.end) merged.push(entity)
    else {
      const better = entity.score > last.score ? entity : last
      merged[merged.length - 1] = { ...better, start: last.start, end: Math.max(last.end, entity.end) }
    }
  }
  let masked = ''
  let copied = 0
  for (const { type, start, end } of merged) {
    masked += `${text.slice(copied, start)}<${type}>`
    copied = end
  }
  return masked + text.slice(copied)
}
