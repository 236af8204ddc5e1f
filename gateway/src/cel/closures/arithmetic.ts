import { isUtf8 } from 'node:buffer'
import { Failure } from '../failure.ts'
import { spendWork } from '../work-budget.ts'
import { doubleOf, doubleValue, intOf, isInt, maxInt, minInt } from './representation.ts'
import { viaLibrary } from './values.ts'

/** `+` of ints, doubles, strings and lists. */
export function add(left: unknown, right: unknown): unknown {
  if (typeof left === 'string' && typeof right === 'string') {
    spendWork((left.length + right.length) / 2)
    return left + right
  }
  if (isInt(left) && isInt(right)) {
    const sum = Number(left) + Number(right)
    return isExact(left, right, sum) ? sum : checkedInt(BigInt(left) + BigInt(right))
  }
  if (left instanceof Uint8Array && right instanceof Uint8Array) {
    spendWork((left.byteLength + right.byteLength) / 2)
    return Buffer.concat([left, right])
  }
  if (Array.isArray(left) && Array.isArray(right)) {
    spendWork((left.length + right.length) * 20)
    return [...left, ...right]
  }
  return onDoubles('+', left, right)
}

export function subtract(left: unknown, right: unknown): unknown {
  if (isInt(left) && isInt(right)) {
    const difference = Number(left) - Number(right)
    return isExact(left, right, difference) ? difference : checkedInt(BigInt(left) - BigInt(right))
  }
  return onDoubles('-', left, right)
}

export function multiply(left: unknown, right: unknown): unknown {
  if (isInt(left) && isInt(right)) {
    const product = Number(left) * Number(right)
    // Adding zero converts -0, which is not an int, to 0.
    return isExact(left, right, product) ? product + 0 : checkedInt(BigInt(left) * BigInt(right))
  }
  return onDoubles('*', left, right)
}

export function divide(left: unknown, right: unknown): unknown {
  if (isInt(left) && isInt(right)) {
    return isZero(right) ? new Failure('divide by zero') : checkedInt(BigInt(left) / BigInt(right))
  }
  return onDoubles('/', left, right)
}

export function remainder(left: unknown, right: unknown): unknown {
  if (!isInt(left) || !isInt(right)) return viaLibrary('%', left, right)
  return isZero(right) ? new Failure('modulus by zero') : checkedInt(BigInt(left) % BigInt(right))
}

export function negate(value: unknown): unknown {
  if (isInt(value)) return checkedInt(-BigInt(value))
  const double = doubleValue(value)
  return double === undefined ? viaLibrary('-', value) : doubleOf(-double)
}

/** `int()`. Fractions are truncated. */
export function toInt(value: unknown): unknown {
  if (isInt(value)) return value
  if (typeof value === 'string')
    return parseInt64(value) ?? new Failure('int() of a string that is not an integer')
  const double = doubleValue(value)
  if (double === undefined) return viaLibrary('int', value)
  const inRange = double > -(2 ** 63) && double < 2 ** 63
  return inRange ? intOf(BigInt(Math.trunc(double))) : new Failure('int overflow')
}

/** `double()`. */
export function toDouble(value: unknown): unknown {
  if (isInt(value)) return doubleOf(Number(value))
  if (typeof value === 'string') {
    spendWork(value.length * 20)
    const parsed = parseDouble(value)
    return parsed === undefined ? new Failure('double() of a string that is not a number') : doubleOf(parsed)
  }
  return doubleValue(value) === undefined ? viaLibrary('double', value) : value
}

/** `string()`. */
export function toText(value: unknown): unknown {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || isInt(value)) return String(value)
  if (value instanceof Uint8Array) return textOfBytes(value)
  const double = doubleValue(value)
  return double === undefined ? viaLibrary('string', value) : String(double)
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function textOfBytes(bytes: Uint8Array): unknown {
  spendWork(bytes.byteLength * 2)
  return isUtf8(bytes) ? utf8.decode(bytes) : new Failure('string() of bytes that are not UTF-8')
}

/** `bytes()`. */
export function toBytes(value: unknown): unknown {
  if (value instanceof Uint8Array) return value
  if (typeof value !== 'string') return viaLibrary('bytes', value)
  spendWork(value.length * 4)
  return Buffer.from(value)
}

/** `bool()`. */
export function toBool(value: unknown): unknown {
  if (typeof value === 'boolean') return value
  if (typeof value !== 'string') return viaLibrary('bool', value)
  return booleans.get(value) ?? new Failure('bool() of a string that is neither true nor false')
}

const booleans = new Map([
  ...['true', 'True', 'TRUE', 't', '1'].map((text) => [text, true] as const),
  ...['false', 'False', 'FALSE', 'f', '0'].map((text) => [text, false] as const),
])

/** Decimal digits with an optional sign, within 64 bits; undefined otherwise. */
export function parseInt64(text: string): number | bigint | undefined {
  if (!/^[+-]?\d{1,40}$/.test(text)) return undefined
  const value = BigInt(text.startsWith('+') ? text.slice(1) : text)
  return value < minInt || value > maxInt ? undefined : intOf(value)
}

/** A decimal number, NaN or an infinity; undefined otherwise. */
export function parseDouble(text: string): number | undefined {
  const special = specialDoubles.get(text.replace(/^[+-]/, '').toLowerCase())
  if (special !== undefined) return text.startsWith('-') ? -special : special
  return /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/.test(text) ? Number(text) : undefined
}

const specialDoubles = new Map([
  ['nan', Number.NaN],
  ['inf', Number.POSITIVE_INFINITY],
  ['infinity', Number.POSITIVE_INFINITY],
])

function onDoubles(operator: '+' | '-' | '*' | '/', left: unknown, right: unknown): unknown {
  const a = doubleValue(left)
  const b = doubleValue(right)
  if (a === undefined || b === undefined) return viaLibrary(operator, left, right)
  switch (operator) {
    case '+':
      return doubleOf(a + b)
    case '-':
      return doubleOf(a - b)
    case '*':
      return doubleOf(a * b)
    case '/':
      return doubleOf(a / b)
  }
}

/** Whether a result computed in doubles is exact: both operands are safe integers, and so is the result. */
function isExact(left: number | bigint, right: number | bigint, result: number): boolean {
  return typeof left === 'number' && typeof right === 'number' && Number.isSafeInteger(result)
}

function isZero(value: number | bigint): boolean {
  return value === 0 || value === 0n
}

function checkedInt(value: bigint): unknown {
  return value < minInt || value > maxInt ? new Failure('int overflow') : intOf(value)
}
