import { memberText } from '../../../lib/json/edit.ts'
import { isJsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { JsonText } from '../../../lib/json/text.ts'
import { itemTexts, readTargetObject } from './json-edit.ts'
import type { Message } from './message.ts'

/**
 * Maximum size of a list response in bytes. Reading it takes less than 50 ms; longer lists must use pages
 * (MCP 2025-11-25, Pagination).
 */
export const maxListResponseBytes = 4 * 1024 * 1024

/** Parsed list of a response: text and value of each item, in order. */
export type ReadList = {
  readonly message: JsonText
  readonly result: JsonText
  readonly texts: readonly string[]
  readonly values: readonly JsonValue[]
}

/** Reads the list of a response; undefined without a list. Throws `upstream_invalid` for ambiguous text. */
export function readList({ text }: Message, member: string): ReadList | undefined {
  const message = readTargetObject(text)
  const { result } = message.value
  const resultText = memberText(message, 'result')
  if (!isJsonObject(result) || resultText === undefined) return undefined
  // The result is part of a validated object, so no second read is necessary.
  const resultJson: JsonText = { kind: 'object', text: resultText, value: result }
  const values = result[member]
  const texts = Array.isArray(values) ? itemTexts(memberText(resultJson, member) ?? '[]') : []
  return { message, result: resultJson, texts, values: Array.isArray(values) ? values : [] }
}
