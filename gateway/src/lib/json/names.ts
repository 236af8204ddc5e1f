import type { JsonObject, JsonValue } from './json.ts'

/**
 * A field whose value has user-defined names. `free`: JSON without a schema, such as tool arguments; a
 * function decides by the object with the field, and never applies to the outermost object. `map`:
 * user-defined names with values of the format.
 */
export type FreeRule = 'free' | 'map' | ((holder: JsonObject) => boolean)

/** Member names of a wire format: its fields, and the fields with user-defined names below. */
export type JsonNames = {
  readonly fields: Iterable<string>
  readonly free: Readonly<Record<string, FreeRule>>
}

/**
 * A name that case-insensitive readers would match to a field, or the first name above the work limit. The
 * path is one line of at most 200 characters.
 */
export type NameProblem = { kind: 'ambiguous' | 'too many'; path: string }
export type FindAmbiguousName = (value: JsonObject) => NameProblem | undefined

/**
 * Limit on the work for undefined names: 100,000 of them take 150 ms if they must be folded. A name costs one
 * unit, or ten with upper-case or non-ASCII letters.
 */
const maxWork = 10_000
const foldingWork = 10
const maxPathLength = 200

type FieldRule = 'field' | FreeRule

/**
 * Compiles a check of member names. Readers such as Go's `encoding/json` match names by Unicode case folding.
 * The check rejects a name that folds to a defined name without being equal to it, and two names of one
 * object that fold to the same.
 */
export function compileJsonNames({ fields, free }: JsonNames): FindAmbiguousName {
  const rules = new Map<string, FieldRule>()
  for (const name of fields) rules.set(name, 'field')
  for (const [name, rule] of Object.entries(free)) rules.set(name, rule)
  const folded = new Set([...rules.keys()].map(foldName))
  /** If every defined name is lower-case ASCII, such names need no folding. */
  const plainNames = [...rules.keys()].every(isPlain)

  let work = 0
  let outermost: JsonObject | undefined

  function inArray(items: readonly JsonValue[]): string | undefined {
    for (let index = 0; index < items.length; index += 1) {
      const item = items[index]
      if (typeof item !== 'object' || item === null) continue
      const found = Array.isArray(item) ? inArray(item) : inObject(item)
      if (found !== undefined) return joinPath(`[${index}]`, found)
    }
    return undefined
  }

  function inObject(object: JsonObject): string | undefined {
    let hasFoldable = false
    for (const key in object) {
      const rule = rules.get(key)
      if (rule === undefined) {
        const plain = isPlain(key)
        work += plain ? 1 : foldingWork
        if (work > maxWork) return key
        if (!plain) hasFoldable = true
        if (!(plain && plainNames) && folded.has(foldName(key))) return key
      }
      const member = object[key]
      if (typeof member !== 'object' || member === null) continue
      if (rule === 'free' || (typeof rule === 'function' && object !== outermost && rule(object))) continue
      const found = inMember(member, rule)
      if (found !== undefined) return joinPath(key, found)
    }
    return hasFoldable ? findTwin(object) : undefined
  }

  function inMember(member: JsonObject | JsonValue[], rule: FieldRule | undefined): string | undefined {
    if (Array.isArray(member)) return inArray(member)
    return rule === 'map' ? inMap(member) : inObject(member)
  }

  /** Names are not compared: the format defines none here. */
  function inMap(map: JsonObject): string | undefined {
    for (const key in map) {
      const member = map[key]
      if (typeof member !== 'object' || member === null) continue
      const found = inMember(member, 'field')
      if (found !== undefined) return joinPath(key, found)
    }
    return undefined
  }

  return (value) => {
    work = 0
    outermost = value
    const path = inObject(value)?.slice(0, maxPathLength)
    outermost = undefined
    return path === undefined ? undefined : { kind: work > maxWork ? 'too many' : 'ambiguous', path }
  }
}

/** The first name that folds to the same as an earlier one of its object. */
function findTwin(object: JsonObject): string | undefined {
  const seen = new Set<string>()
  for (const key in object) {
    const folded = foldName(key)
    if (seen.has(folded)) return key
    seen.add(folded)
  }
  return undefined
}

/**
 * Full case folding of a name. Lower case first, because the Kelvin sign has only a lower-case form in ASCII
 * and the long s only an upper-case one. The remaining dot of a dotted capital I is removed, as by some
 * readers.
 */
export function foldName(name: string): string {
  const upper = name.toLowerCase().toUpperCase()
  return upper.includes('\u0307') ? upper.replaceAll('\u0307', '') : upper
}

/** Whether a name is ASCII without upper-case letters. */
function isPlain(name: string): boolean {
  for (let index = 0; index < name.length; index += 1) {
    const code = name.charCodeAt(index)
    if (code > 0x7f || (code >= 0x41 && code <= 0x5a)) return false
  }
  return true
}

function joinPath(head: string, rest: string): string {
  return rest.startsWith('[') ? head + rest : `${head}.${rest}`
}
