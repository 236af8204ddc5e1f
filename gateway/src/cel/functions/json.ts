import { colon, comma, openBrace, openBracket } from '../../lib/json/characters.ts'
import { buildExact } from '../../lib/json/exact.ts'
import { defaultJsonLimits } from '../../lib/json/limits.ts'
import { readJsonValue } from '../../lib/json/text.ts'
import { hasProperties, LibraryValue } from '../closures/representation.ts'
import { isMap, load, mapEntries, noOverload, toPlain } from '../closures/values.ts'
import { CelEvaluationError, Failure } from '../failure.ts'
import { SecretText } from '../secret-text.ts'
import { spendWork } from '../work-budget.ts'
import { base64Bytes } from './encoding.ts'
import { type CelFunction, textOfBytes, unaryFunction } from './function.ts'

/** `json`, `toJson` and `unvalidatedJwtPayload`. */
export const jsonFunctions: readonly CelFunction[] = [
  unaryFunction('json', parseJson),
  unaryFunction('toJson', writeJson),
  unaryFunction('to_json', writeJson),
  {
    name: 'jsonField',
    isMethod: false,
    arity: 2,
    apply(source, name) {
      const value = parseJson(source)
      if (value instanceof Failure) return value
      if (!isMap(value) || typeof name !== 'string') return noOverload('jsonField', value, name)
      if (!hasProperties(value) || !Object.hasOwn(value, name)) return new Failure(`no such key: ${name}`)
      return load(value[name])
    },
  },
  unaryFunction('unvalidatedJwtPayload', payloadOf),
]

/** Work units of parsing, measured on texts of words, of empty objects and of digits. */
const costOfCharacter = 6
const costOfContainer = 200
const costOfItem = 80
/** Texts with different keys take most. */
const costOfKey = 150

/** Charges the work of parsing a text by its characters, brackets, commas and colons. */
function spendParsing(text: string): void {
  spendWork(text.length * costOfCharacter)
  let work = 0
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === openBrace || code === openBracket) work += costOfContainer
    else if (code === comma) work += costOfItem
    else if (code === colon) work += costOfKey
  }
  spendWork(work)
}

/**
 * Values of bodies, so that several expressions over a body parse it once. Values are immutable, and live as
 * long as the body.
 */
const parsedBodies = new WeakMap<Uint8Array, unknown>()

function parseJson(source: unknown): unknown {
  if (typeof source === 'string') return parseText(source)
  if (!(source instanceof Uint8Array)) return noOverload('json', source)
  const known = parsedBodies.get(source)
  if (known !== undefined) return known
  const text = textOfBytes(source)
  const value = text === undefined ? invalid : parseText(text)
  parsedBodies.set(source, value)
  return value
}

const invalid = new Failure('json() of text that is not JSON, or above the limits of JSON')
const duplicate = new Failure('json() of an object with duplicate keys')

/** Duplicate keys have no defined value (RFC 8259 section 4): an upstream may read another one. */
function parseText(text: string): unknown {
  spendParsing(text)
  const read = readJsonValue(text, defaultJsonLimits)
  if (read.kind !== 'value') return read.kind === 'duplicate' ? duplicate : invalid
  return load(read.hasLargeNumbers ? buildExact(text) : read.value)
}

/** The JSON text of a value. Charges its work; throws CelEvaluationError. */
export function writeJson(value: unknown): unknown {
  return JSON.stringify(jsonOf(value, 0))
}

const maxDepth = 200

/** Work units per value, and per character of a text. */
const costOfValue = 150
const costOfText = 4

/** A copy that JSON.stringify accepts: bytes as base64, large ints with all digits. */
function jsonOf(value: unknown, depth: number): unknown {
  if (depth > maxDepth) throw new CelEvaluationError('values are nested too deeply or too large')
  spendWork(costOfValue)
  switch (typeof value) {
    case 'string':
      spendWork(value.length * costOfText)
      return value
    case 'bigint':
      return JSON.rawJSON(String(value))
    case 'object':
      return value === null ? null : jsonOfObject(value, depth)
    default:
      return value
  }
}

function jsonOfObject(value: object, depth: number): unknown {
  if (Array.isArray(value)) return value.map((item) => jsonOf(item, depth + 1))
  if (value instanceof Uint8Array) {
    spendWork(value.byteLength * costOfText)
    return Buffer.from(value).toString('base64')
  }
  if (value instanceof Date || value instanceof LibraryValue) return jsonOf(toPlain(load(value)), depth)
  if (!isMap(value) || value instanceof SecretText) return toPlain(value)
  const entries = mapEntries(value).map(([key, member]): [string, unknown] => [
    String(key),
    jsonOf(member, depth + 1),
  ])
  return Object.fromEntries(entries)
}

/** Parses the payload of a JWT (RFC 7519), without a check of its signature. */
function payloadOf(token: unknown): unknown {
  if (typeof token !== 'string') return noOverload('unvalidatedJwtPayload', token)
  spendWork(token.length)
  const parts = token.split('.', 4)
  const payload = parts.length === 3 ? base64Bytes(parts[1] ?? '', 'base64url') : undefined
  const text = payload && textOfBytes(payload)
  const value = text === undefined ? invalid : parseText(text)
  return value instanceof Failure ? new Failure('unvalidatedJwtPayload() of text that is not a JWT') : value
}
