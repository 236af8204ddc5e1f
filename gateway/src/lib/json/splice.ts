import { endsScalar } from './characters.ts'
import { endOfString, skipBlanks } from './string.ts'

/** A path in JSON: member names and item indexes, from the outermost value inwards. */
export type JsonPath = readonly (string | number)[]

/** Replaces a value by JSON text, or removes an array item. */
export type JsonSplice =
  | { readonly kind: 'set'; readonly path: JsonPath; readonly json: string }
  | { readonly kind: 'remove'; readonly path: JsonPath }

/** Requested changes of a value, and of its members or items by key. */
type Wanted = { splice: JsonSplice | undefined; inside: Map<string | number, Wanted> }

type Edit = { start: number; end: number; text: string }

/**
 * Replaces values and removes array items in JSON text; all other bytes are preserved. The text must be valid
 * JSON without duplicate keys. Throws if a path does not exist, so that no change is lost.
 */
export function spliceJson(text: string, splices: readonly JsonSplice[]): string {
  const edits = findEdits(text, plan(splices))
  if (edits.length !== splices.length) throw new Error('a path of a change does not exist')
  let result = ''
  let copied = 0
  for (const { start, end, text: replacement } of edits) {
    result += text.slice(copied, start) + replacement
    copied = end
  }
  return result + text.slice(copied)
}

/** Position of the value at a path in the text; undefined if the path does not exist. */
export function locateJson(text: string, path: JsonPath): { start: number; end: number } | undefined {
  return findEdits(text, plan([{ kind: 'set', path, json: '' }]))[0]
}

function plan(splices: readonly JsonSplice[]): Wanted {
  const root: Wanted = { splice: undefined, inside: new Map() }
  for (const splice of splices) {
    let wanted = root
    for (const step of splice.path) {
      let next = wanted.inside.get(step)
      if (next === undefined) {
        next = { splice: undefined, inside: new Map() }
        wanted.inside.set(step, next)
      }
      wanted = next
    }
    wanted.splice = splice
  }
  return root
}

/** The edits in the order of the text. */
function findEdits(text: string, root: Wanted): Edit[] {
  const edits: Edit[] = []
  visit(skipBlanks(text, 0), root)
  return edits

  /** Returns the end of the value that starts at `start`. */
  function visit(start: number, { splice, inside }: Wanted): number {
    if (splice?.kind === 'set') {
      const end = endOfValue(text, start)
      edits.push({ start, end, text: splice.json })
      return end
    }
    if (inside.size > 0 && text[start] === '{') return visitObject(start, inside)
    if (inside.size > 0 && text[start] === '[') return visitArray(start, inside)
    return endOfValue(text, start)
  }

  function visitObject(start: number, inside: Wanted['inside']): number {
    let index = skipBlanks(text, start + 1)
    if (text[index] === '}') return index + 1
    for (;;) {
      const keyEnd = endOfString(text, index) + 1
      const key: unknown = JSON.parse(text.slice(index, keyEnd))
      const value = skipBlanks(text, skipBlanks(text, keyEnd) + 1)
      const wanted = typeof key === 'string' ? inside.get(key) : undefined
      index = skipBlanks(text, wanted === undefined ? endOfValue(text, value) : visit(value, wanted))
      if (text[index] !== ',') return index + 1
      index = skipBlanks(text, index + 1)
    }
  }

  function visitArray(start: number, inside: Wanted['inside']): number {
    let index = skipBlanks(text, start + 1)
    if (text[index] === ']') return index + 1
    let keptEnd: number | undefined
    for (let item = 0; ; item += 1) {
      const wanted = inside.get(item)
      const removed = wanted?.splice?.kind === 'remove'
      const end = wanted === undefined ? endOfValue(text, index) : visit(index, wanted)
      const behind = skipBlanks(text, end)
      const isLast = text[behind] !== ','
      const next = isLast ? behind : skipBlanks(text, behind + 1)
      if (!removed) keptEnd = end
      // An item is removed with the comma before it or, without a retained item before it, with the comma
      // behind it.
      else if (keptEnd === undefined) edits.push({ start: index, end: isLast ? end : next, text: '' })
      else {
        edits.push({ start: keptEnd, end, text: '' })
        keptEnd = end
      }
      if (isLast) return behind + 1
      index = next
    }
  }
}

function endOfValue(text: string, start: number): number {
  const first = text[start]
  if (first === '"') return endOfString(text, start) + 1
  let index = start
  if (first !== '{' && first !== '[') {
    while (index < text.length && !endsScalar(text.charCodeAt(index))) index += 1
    return index
  }
  for (let depth = 0; index < text.length; index += 1) {
    const character = text[index]
    if (character === '"') index = endOfString(text, index)
    else if (character === '{' || character === '[') depth += 1
    else if (character === '}' || character === ']') {
      depth -= 1
      if (depth === 0) return index + 1
    }
  }
  return index
}
