import type { CelProgram } from './cel.ts'
import { CelEvaluationError } from './failure.ts'
import { writeJson } from './functions/json.ts'
import { spendWork } from './work-budget.ts'

/**
 * A result as the bytes of a body: text and bytes as they are, other values as JSON. Throws
 * CelEvaluationError.
 */
export function bodyOfResult(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value
  return Buffer.from(typeof value === 'string' ? value : jsonOfResult(value))
}

/** The JSON text of a result, as `toJson()` writes it: bytes are base64. Throws CelEvaluationError. */
export function jsonOfResult(value: unknown): string {
  const text = writeJson(value)
  return typeof text === 'string' ? text : 'null'
}

/** Work units of writing a value, a key, a character of a text, and a byte. */
const costOfValue = 50
const costOfKey = 100
const costOfCharacter = 2
const costOfByte = 20
const maxDepth = 200

/** Evaluates an expression whose result is written in another format. Throws CelEvaluationError. */
export function evaluateToWrite(program: CelProgram, variables: object): unknown {
  const value = program.evaluate(variables)
  if (typeof value === 'object' && !(value instanceof Uint8Array)) spendWriting(value, 0)
  return value
}

/** Charges the work of writing a result before it is done: results share objects, which a text repeats. */
function spendWriting(value: unknown, depth: number): void {
  spendWork(costOfValue)
  if (typeof value === 'string') spendWork(value.length * costOfCharacter)
  if (typeof value !== 'object' || value === null) return
  if (depth >= maxDepth) throw new CelEvaluationError('values are nested too deeply or too large')
  if (Array.isArray(value)) for (const item of value) spendWriting(item, depth + 1)
  else if (value instanceof Uint8Array) spendWork(value.byteLength * costOfByte)
  else
    for (const [key, member] of Object.entries(value)) {
      spendWork(costOfKey + key.length * costOfCharacter)
      spendWriting(member, depth + 1)
    }
}

/** A result as the value of a header: text, bytes, numbers and booleans; undefined for others. */
export function headerOfResult(value: unknown): string | undefined {
  if (typeof value === 'string') return latin1Of(value)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1')
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean')
    return String(value)
  return undefined
}

/** Header values are bytes: other characters are sent as UTF-8, one character per byte. */
function latin1Of(text: string): string {
  return /^[\x00-\x7f]*$/.test(text) ? text : Buffer.from(text).toString('latin1')
}
