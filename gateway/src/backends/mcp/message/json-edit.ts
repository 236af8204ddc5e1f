import { GatewayError } from '../../../lib/gateway-error.ts'
import { editTopLevel, memberText } from '../../../lib/json/edit.ts'
import { endOfString } from '../../../lib/json/string.ts'
import { type JsonText, readJsonObject } from '../../../lib/json/text.ts'

/** Path in JSON: member names, and `*` for each item of an array. */
export type JsonPath = readonly string[]

/** Returns the new text of a value; the same text for no change, undefined to remove an array item. */
export type JsonEdit = (text: string) => string | undefined

/**
 * Edits all values at a path of a JSON object's text and preserves all other bytes. Missing paths are no
 * error. Throws `upstream_invalid` for ambiguous text.
 */
export function editJson(text: string, path: JsonPath, edit: JsonEdit): string {
  return editFrom(text, path, 0, edit) ?? text
}

/** Reads the JSON object of a target. Throws `upstream_invalid` for ambiguous or invalid text. */
export function readTargetObject(text: string): JsonText {
  const json = readJsonObject(text)
  if (json.kind === 'object') return json
  const problem = json.kind === 'duplicate' ? `"${json.path}" occurs twice` : json.message
  throw new GatewayError('upstream_invalid', `a target sent ambiguous or invalid JSON: ${problem}`)
}

/** Texts of the items of a valid JSON array. */
export function itemTexts(text: string): string[] {
  const items: string[] = []
  let depth = 0
  let start = text.indexOf('[') + 1
  for (let index = start; index < text.length; index += 1) {
    const character = text[index]
    if (character === '"') index = endOfString(text, index)
    else if (character === '{' || character === '[') depth += 1
    else if (depth > 0 && (character === '}' || character === ']')) depth -= 1
    else if (depth === 0 && (character === ',' || character === ']')) {
      const item = text.slice(start, index).trim()
      if (item !== '') items.push(item)
      start = index + 1
    }
  }
  return items
}

/** Edit of decoded JSON strings; other values are unchanged. */
export function editString(change: (value: string) => string): JsonEdit {
  return (text) => {
    if (!text.startsWith('"')) return text
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' ? JSON.stringify(change(value)) : text
  }
}

function editFrom(text: string, path: JsonPath, at: number, edit: JsonEdit): string | undefined {
  const step = path[at]
  if (step === undefined) return edit(text)
  if (step === '*') return editItems(text, path, at, edit)
  if (!isObjectText(text)) return text
  const json = readTargetObject(text)
  const member = memberText(json, step)
  if (member === undefined) return text
  const edited = editFrom(member, path, at + 1, edit)
  return edited === undefined || edited === member
    ? text
    : editTopLevel(json, { set: new Map([[step, edited]]) })
}

function editItems(text: string, path: JsonPath, at: number, edit: JsonEdit): string {
  if (!text.startsWith('[')) return text
  const items = itemTexts(text)
  const edited = items.flatMap((item) => editFrom(item, path, at + 1, edit) ?? [])
  const same = edited.length === items.length && edited.every((item, index) => item === items[index])
  return same ? text : `[${edited.join(',')}]`
}

function isObjectText(text: string): boolean {
  return /^\s*\{/.test(text)
}
