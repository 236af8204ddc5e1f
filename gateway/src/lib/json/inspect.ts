import { closeBrace, closeBracket, colon, comma, openBrace, openBracket, quote } from './characters.ts'
import type { JsonObject, JsonValue } from './json.ts'
import { keyName } from './members.ts'
import { endOfString } from './string.ts'

/** Facts about a parsed value: members at every depth, and numbers beyond 2^53. */
export type ValueFacts = { members: number; hasLargeNumbers: boolean }

/** Counts members at every depth, and detects numbers that `JSON.parse` has rounded. */
export function inspectValue(value: JsonObject | JsonValue[], facts: ValueFacts): void {
  if (Array.isArray(value)) {
    for (const item of value) {
      if (typeof item === 'object' && item !== null) inspectValue(item, facts)
      else if (typeof item === 'number' && isLarge(item)) facts.hasLargeNumbers = true
    }
    return
  }
  for (const key in value) {
    facts.members += 1
    const member = value[key]
    if (typeof member === 'object' && member !== null) inspectValue(member, facts)
    else if (typeof member === 'number' && isLarge(member)) facts.hasLargeNumbers = true
  }
}

function isLarge(number: number): boolean {
  return number > Number.MAX_SAFE_INTEGER || number < Number.MIN_SAFE_INTEGER
}

type Level = { keys: Set<string> | undefined; key: string; index: number }

/** Path of the first duplicate key in valid text. */
export function findDuplicate(text: string): string {
  const levels: Level[] = []
  let last = ''
  for (let index = 0; index < text.length; index += 1) {
    const level = levels.at(-1)
    switch (text.charCodeAt(index)) {
      case quote: {
        const end = endOfString(text, index)
        last = text.slice(index, end + 1)
        index = end
        break
      }
      case colon:
        if (level?.keys === undefined) break
        level.key = keyName(last, 0, last.length)
        if (level.keys.has(level.key)) return pathOf(levels)
        level.keys.add(level.key)
        break
      case comma:
        if (level) level.index += 1
        break
      case openBrace:
        levels.push({ keys: new Set(), key: '', index: 0 })
        break
      case openBracket:
        levels.push({ keys: undefined, key: '', index: 0 })
        break
      case closeBrace:
      case closeBracket:
        levels.pop()
        break
    }
  }
  return pathOf(levels)
}

function pathOf(levels: readonly Level[]): string {
  let path = ''
  for (const { keys, key, index } of levels) path += keys ? (path === '' ? key : `.${key}`) : `[${index}]`
  return path
}
