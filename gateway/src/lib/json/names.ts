import type { JsonObject, JsonValue } from './json.ts'

/**
 * A field whose value has names of the user. `free`: JSON without a schema, such as tool arguments; a function decides by
 * the object that has the field, and applies to none of the outermost object. `map`: names of the user in front of values of the format.
 */
export type FreeRule = 'free' | 'map' | ((holder: JsonObject) => boolean)

/** Member names of a wire format: those it defines, and which of them have names of the user below. */
export type JsonNames = {
  readonly fields: Iterable<string>
  readonly free: Readonly<Record<string, FreeRule>>
}

/**
 * A member that readers without regard to case would read differently, or one too many that the format does not define. The
 * path is one line of at most 200 characters.
 */
export type NameProblem = { kind: 'ambiguous' | 'too many'; path: string }
export type FindAmbiguousName = (value: JsonObject) => NameProblem | undefined

/**
 * Bound on the work for names that the format does not define: 100,000 of them take 150 ms if they have to be folded. A name
 * takes one unit, or ten where it has upper-case or non-ASCII letters.
 */
const maxWork = 10_000
const foldingWork = 10
const maxPathLength = 200

type FieldRule = 'field' | FreeRule

/**
 * Compiles a check of member names. Readers such as Go's `encoding/json` match names by Unicode case folding, so a name
 * is refused that folds to a defined name without being it, and so are two names of one object that fold to the same.
 */
export function compileJsonNames({ fields, free }: JsonNames): FindAmbiguousName {
  const rules = new Map<string, FieldRule>()
  for (const name of fields) rules.set(name, 'field')
  for (const [name, rule] of Object.entries(free)) rules.set(name, rule)
  const folded = new Set([...rules.keys()].map(foldName))
  /** Lower-case ASCII names are not folded one by one if every defined name is of that kind. */
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

  /** Names are not compared: the format has none here. */
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

/** A name that folds to the same as an earlier one of its object. */
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
 * The name under full case folding. Lower case first, because the Kelvin sign has only a lower-case form in ASCII and the
 * long s only an upper-case one. The dot that remains of a dotted capital I is dropped, as some readers drop it.
 */
export function foldName(name: string): string {
  const upper = name.toLowerCase().toUpperCase()
  return upper.includes('\u0307') ? upper.replaceAll('\u0307', '') : upper
}

/** True for ASCII without upper-case letters. */
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
