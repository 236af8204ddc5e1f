import { GatewayError } from '../../../lib/gateway-error.ts'
import { endOfString } from '../../../lib/json/string.ts'
import { editTopLevel, type JsonText, memberText, readJsonObject } from '../../../lib/json/text.ts'

/** A place inside JSON: names of members, and `*` for every item of an array. */
export type JsonPath = readonly string[]

/** The new text of a value; the same for no change, undefined to leave an item of an array out. */
export type JsonEdit = (text: string) => string | undefined

/**
 * Edits every value at a path of a JSON object's text and leaves all other bytes alone. Places that do not exist are no
 * mistake. Throws `upstream_invalid` on text that could be read in two ways.
 */
export function editJson(text: string, path: JsonPath, edit: JsonEdit): string {
  return editFrom(text, path, 0, edit) ?? text
}

/** Reads the text of an object that came from a target. */
export function readTargetObject(text: string): JsonText {
  const json = readJsonObject(text)
  if (json.kind === 'object') return json
  const why = json.kind === 'duplicate' ? `"${json.path}" occurs twice` : json.message
  throw new GatewayError('upstream_invalid', `a target answered JSON that cannot be read safely: ${why}`)
}

/** The texts of the items of a JSON array. The text must be valid. */
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

/** An edit of JSON strings by their meaning; other values stay. */
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
