import { ApiError } from '../api/client.ts'
import type { FieldMistake } from '../schema-form/model/check.ts'
import { type FieldPath, valueAt } from '../schema-form/model/value.ts'

/** A change that the gateway refused: the whole message, and the fields that it names. */
export type Refusal = {
  readonly message: string
  readonly mistakes: readonly FieldMistake[]
  readonly status: number
}

/** Reads a refusal. Other errors are thrown again. */
export function refusalOf(error: unknown, value: unknown): Refusal {
  if (!(error instanceof ApiError)) throw error
  return { message: error.message, mistakes: mistakesIn(error.message, value), status: error.status }
}

/** A place in a message of the gateway: `llm.models[2].params.baseUrl`, `value.params`. */
const place = /(?:^|[\s`"'(])((?:[A-Za-z_$][\w$-]*|\["[^"]*"\])(?:\.[\w$-]+|\[\d+\]|\["(?:[^"\\]|\\.)*"\])*)/g

/**
 * Fields that a message names, as paths within the value. Messages name places of the configuration file, so
 * the longest end of a place that exists in the value, or whose parent does, is the field.
 */
export function mistakesIn(message: string, value: unknown): readonly FieldMistake[] {
  const mistakes: FieldMistake[] = []
  for (const line of message.split('\n')) {
    const found = fieldIn(line, value)
    if (found) mistakes.push(found)
  }
  return mistakes
}

function fieldIn(line: string, value: unknown): FieldMistake | undefined {
  for (const match of line.matchAll(place)) {
    const whole = match[1] ?? ''
    const steps = stepsOf(whole)
    if (steps.length < 2) continue
    const path = endIn(steps, value)
    if (path === undefined || path.length === 0) continue
    const rest = line.slice((match.index ?? 0) + match[0].length).replace(/^["'`]?\s*:?\s*/, '')
    return { path, message: rest === '' ? line.trim() : rest }
  }
  return undefined
}

function stepsOf(text: string): FieldPath {
  return [...text.matchAll(/\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|([\w$-]+)/g)].map(([, index, quoted, name]) =>
    index === undefined ? (quoted ?? name ?? '') : Number(index),
  )
}

/** The longest end of the steps that leads to a member of the value, or to an absent member of an object in it. */
function endIn(steps: FieldPath, value: unknown): FieldPath | undefined {
  for (let start = 1; start < steps.length; start++) {
    const path = steps.slice(start)
    if (typeof path[0] === 'number' && !Array.isArray(value)) continue
    if (valueAt(value, path) !== undefined) return path
    const parent = valueAt(value, path.slice(0, -1))
    if (path.length > 1 && typeof parent === 'object' && parent !== null) return path
  }
  const last = steps.at(-1)
  return typeof last === 'string' && typeof value === 'object' ? [last] : undefined
}
