import { ApiError } from '../api/client.ts'
import type { FieldMistake } from '../schema-form/model/check.ts'
import { type FieldPath, isObject, valueAt } from '../schema-form/model/value.ts'

/** A change that the gateway refused: the message, and the fields that it names. */
export type Refusal = {
  readonly message: string
  readonly mistakes: readonly FieldMistake[]
  readonly status: number
}

/** Reads a refusal. Other errors are thrown again. */
export function refusalOf(error: unknown, value: unknown): Refusal {
  if (!(error instanceof ApiError)) throw error
  return {
    message: shownMessage(error.message),
    mistakes: mistakesIn(error.message, value),
    status: error.status,
  }
}

/** File and line in front of a message, which is about the file as it would be. */
const fileAndLine = /^(?:.*?:\d+:\d+: )/
/** A place in a message of the gateway: `llm.models[2].params.baseUrl`, `value.params`. */
const place =
  /(?:^|[\s`"'(])((?:[A-Za-z_$][\w$-]*|\["(?:[^"\\]|\\.)*"\])(?:\.[\w$-]+|\[\d+\]|\["(?:[^"\\]|\\.)*"\])*)/g

/** The message for readers of the form: without the place in the file. */
function shownMessage(message: string): string {
  return message
    .split('\n')
    .map((line) => line.replace(fileAndLine, ''))
    .join('\n')
}

/**
 * Fields that a message names, as paths within the value. Messages name places of the configuration file, so
 * the longest end of a place that exists in the value, or whose parent does, is the field.
 */
export function mistakesIn(message: string, value: unknown): readonly FieldMistake[] {
  return shownMessage(message)
    .split('\n')
    .flatMap((line) => fieldIn(line, value) ?? [])
}

function fieldIn(line: string, value: unknown): FieldMistake | undefined {
  for (const match of line.matchAll(place)) {
    const [whole, text = ''] = match
    const after = line.slice(match.index + whole.length)
    // Other words with dots, such as the name of a kind, are no places.
    if (!/^["'`]?:/.test(after) && !text.startsWith('value.')) continue
    const path = endIn(stepsOf(text), value)
    if (path === undefined) continue
    const rest = after.replace(/^["'`]?\s*:?\s*/, '')
    return { path, message: rest === '' ? line.trim() : rest }
  }
  return undefined
}

function stepsOf(text: string): FieldPath {
  const steps = text.matchAll(/\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|([\w$-]+)/g)
  return [...steps].map(([, index, quoted, name]) =>
    index === undefined ? (quoted ?? name ?? '') : Number(index),
  )
}

/** The longest end that leads to a member of the value, or to an absent member of an object in it. */
function endIn(steps: FieldPath, value: unknown): FieldPath | undefined {
  for (let start = 1; start < steps.length; start++) {
    const path = steps.slice(start)
    if (valueAt(value, path) !== undefined) return path
    const parent = valueAt(value, path.slice(0, -1))
    if (path.length > 1 && typeof parent === 'object' && parent !== null) return path
  }
  const last = steps.at(-1)
  return typeof last === 'string' && isObject(value) ? [last] : undefined
}
