import { Failure } from '../failure.ts'
import { SecretText } from '../secret-text.ts'
import { spendWork } from '../work-budget.ts'
import { callLibrary, equalsInLibrary, plainOfLibrary, timestampValue, valueOfUint } from './library-value.ts'
import {
  doubleValue,
  hasProperties,
  IntegralDouble,
  intOf,
  isInt,
  LibraryValue,
  maxInt,
  minInt,
} from './representation.ts'

/**
 * Converts a value of a variable to the representation above. Integral JSON numbers are ints; CEL leaves this
 * open.
 */
export function load(value: unknown): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      return Number.isInteger(value) && !Number.isSafeInteger(value) ? loadLargeNumber(value) : value
    case 'bigint':
      return value < minInt || value > maxInt ? new Failure('int overflow') : intOf(value)
    case 'object':
      return value === null || Object.getPrototypeOf(value) === Object.prototype ? value : loadObject(value)
    default:
      return new Failure(`unsupported value: ${typeof value}`)
  }
}

function loadLargeNumber(value: number): unknown {
  return Math.abs(value) < 2 ** 63 ? BigInt(value) : new IntegralDouble(value)
}

function loadObject(value: object): unknown {
  if (value instanceof Date) return timestampValue(value)
  return ArrayBuffer.isView(value) && !(value instanceof Uint8Array)
    ? new Failure('unsupported value: binary data')
    : value
}

export function isMap(value: unknown): value is object {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof IntegralDouble) &&
    !(value instanceof Uint8Array) &&
    !(value instanceof LibraryValue) &&
    !(value instanceof Failure) &&
    !(value instanceof SecretText)
  )
}

/**
 * Reads a field of a map, or returns `missing`. Only own properties count: `constructor` is an ordinary key.
 */
export function property(target: unknown, field: string, missing: Failure): unknown {
  if (!hasProperties(target)) return missing
  // The usual case, before the checks of five classes.
  if (Object.getPrototypeOf(target) !== Object.prototype) {
    if (target instanceof Failure) return target
    if (!isMap(target)) return missing
    if (target instanceof Map) return target.has(field) ? target.get(field) : missing
  }
  if (!Object.hasOwn(target, field)) return missing
  const value = target[field]
  return value === undefined ? missing : load(value)
}

/** Replaced by a Failure with the key, which is created only if the key is missing. */
const absent = new Failure('no such key')

/** `target[key]`. */
export function element(target: unknown, key: unknown): unknown {
  if (target instanceof Failure) return target
  if (key instanceof Failure) return new Failure(key.message)
  if (typeof key === 'string') {
    if (key.length > longText) spendWork(key.length * 2)
    const found = property(target, key, absent)
    return found === absent ? new Failure(`no such key: ${key}`) : found
  }
  if (Array.isArray(target)) return listElement(target, key)
  if (target instanceof Map) {
    const found = mapKey(key)
    return found !== undefined && target.has(found) ? target.get(found) : new Failure('no such key')
  }
  return new Failure(`no such key in ${typeName(target)}`)
}

function listElement(list: readonly unknown[], key: unknown): unknown {
  const index = key instanceof IntegralDouble ? key.value : (valueOfUint(key) ?? key)
  if (typeof index !== 'number' && typeof index !== 'bigint') return new Failure('list index must be an int')
  const value = list[Number(index)]
  if (value !== undefined) return load(value)
  return new Failure(`index out of bounds: ${index} in a list of ${list.length}`)
}

/** Converts a value to a key of map literals; undefined if its type cannot be a key. */
export function mapKey(key: unknown): string | boolean | number | bigint | undefined {
  switch (typeof key) {
    case 'string':
    case 'boolean':
    case 'bigint':
      return key
    case 'number':
      return Number.isInteger(key) ? key : undefined
    default:
      return objectKey(key)
  }
}

function objectKey(key: unknown): number | bigint | undefined {
  const uint = valueOfUint(key)
  if (uint !== undefined) return intOf(uint)
  return key instanceof IntegralDouble && Number.isSafeInteger(key.value) ? key.value + 0 : undefined
}

/** Work units of a key of a map that an expression creates. */
const costOfMapKey = 10

/** Keys of a map; properties with the value undefined are excluded. */
export function mapKeys(map: object): unknown[] {
  if (map instanceof Map) {
    spendWork(map.size * costOfMapKey)
    return [...map.keys()]
  }
  if (!hasProperties(map)) return []
  const keys = Object.keys(map)
  spendWork(keys.length * 50)
  return keys.filter((key) => map[key] !== undefined)
}

/** Entries of a map with loaded values; properties with the value undefined are excluded. */
export function mapEntries(map: object): [unknown, unknown][] {
  if (map instanceof Map) {
    spendWork(map.size * costOfMapKey)
    return [...map]
  }
  return mapKeys(map).map((key) => [key, load(hasProperties(map) ? map[String(key)] : undefined)])
}

export function hasKey(map: object, key: unknown): boolean {
  const found = mapKey(key)
  if (found === undefined) return false
  if (typeof found === 'string' && found.length > longText) spendWork(found.length * 2)
  if (map instanceof Map) return map.has(found)
  return (
    typeof found === 'string' && hasProperties(map) && Object.hasOwn(map, found) && map[found] !== undefined
  )
}

/** Comparison of shorter texts and lists costs less than a node. */
const longText = 64

/** The failure of an operand of a comparison: credentials are not comparable. */
export function failedOperand(value: unknown): Failure | undefined {
  if (typeof value !== 'object') return undefined
  if (value instanceof Failure) return value
  return value instanceof SecretText ? new Failure('a credential is not comparable') : undefined
}

/** CEL equality: numbers compare across int and double, other types within the type; never fails. */
export function equals(left: unknown, right: unknown): boolean {
  if (typeof left === 'string' && typeof right === 'string') {
    if (left.length !== right.length) return false
    if (left.length > longText) spendWork(left.length / 4)
    return left === right
  }
  if (left === right) return true
  const a = left instanceof IntegralDouble ? left.value : left
  const b = right instanceof IntegralDouble ? right.value : right
  // Ordering, unlike `===`, compares a bigint with a number exactly; NaN is unequal to itself.
  if (isNumeric(a) && isNumeric(b)) return a <= b && a >= b
  if (Array.isArray(a)) return Array.isArray(b) && equalLists(a, b)
  if (a instanceof LibraryValue || b instanceof LibraryValue) return equalsInLibrary(left, right)
  if (a instanceof Uint8Array) return b instanceof Uint8Array && compareBytes(a, b) === 0
  return isMap(a) && isMap(b) && equalMaps(a, b)
}

function isNumeric(value: unknown): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint'
}

function equalLists(left: readonly unknown[], right: readonly unknown[]): boolean {
  if (left.length !== right.length) return false
  spendWork(left.length * 50)
  return left.every((item, index) => equals(load(item), load(right[index])))
}

function equalMaps(left: object, right: object): boolean {
  const keys = mapKeys(left)
  spendWork(keys.length * 300)
  if (keys.length !== mapKeys(right).length) return false
  return keys.every((key) => hasKey(right, key) && equals(element(left, key), element(right, key)))
}

/**
 * Compares two values: negative, zero or positive; NaN if an operand is NaN; undefined for unordered types.
 */
export function compare(left: unknown, right: unknown): number | undefined {
  if (typeof left === 'string') {
    if (typeof right !== 'string') return undefined
    spendWork(Math.min(left.length, right.length) / 2)
    return order(left, right)
  }
  if (typeof left === 'boolean') {
    return typeof right === 'boolean' ? Number(left) - Number(right) : undefined
  }
  if (isInt(left) && isInt(right)) return order(left, right)
  if (left instanceof Uint8Array) return right instanceof Uint8Array ? compareBytes(left, right) : undefined
  const a = isInt(left) ? Number(left) : doubleValue(left)
  const b = isInt(right) ? Number(right) : doubleValue(right)
  return a === undefined || b === undefined ? undefined : order(a, b)
}

function compareBytes(left: Uint8Array, right: Uint8Array): number {
  spendWork(Math.min(left.byteLength, right.byteLength) / 4)
  return Buffer.compare(left, right)
}

function order<T extends string | number | bigint>(left: T, right: T): number {
  if (left < right) return -1
  if (left > right) return 1
  return left === right || left >= right ? 0 : Number.NaN
}

/** Code points of a string, bytes, elements of a list, entries of a map. */
export function sizeOf(value: unknown): unknown {
  if (typeof value === 'string') return codePoints(value)
  if (Array.isArray(value)) return value.length
  if (value instanceof Uint8Array) return value.byteLength
  if (isMap(value)) return value instanceof Map ? value.size : mapKeys(value).length
  return viaLibrary('size', value)
}

/** Code points of a text. */
export function codePoints(text: string): number {
  spendWork(text.length * 6)
  let count = text.length
  for (let index = 1; index < text.length; index += 1) {
    if (isLowSurrogate(text.charCodeAt(index)) && isHighSurrogate(text.charCodeAt(index - 1))) count -= 1
  }
  return count
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000
}

/**
 * Result of a function on types that it does not support here: a call of the library for its own types,
 * otherwise a Failure. A failed operand takes precedence.
 */
export function viaLibrary(name: string, ...operands: unknown[]): unknown {
  for (const operand of operands) if (operand instanceof Failure) return operand
  return operands.some((operand) => operand instanceof LibraryValue || operand instanceof Uint8Array)
    ? callLibrary({ name }, operands)
    : noOverload(name, ...operands)
}

/** Failure of a function applied to unsupported types; a failed operand takes precedence. */
export function noOverload(name: string, ...operands: unknown[]): Failure {
  for (const operand of operands) if (operand instanceof Failure) return operand
  return new Failure(`${name} does not apply to ${operands.map(typeName).join(', ')}`)
}

export function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'string') return 'string'
  if (isInt(value)) return 'int'
  if (typeof value === 'number' || value instanceof IntegralDouble) return 'double'
  if (value instanceof Uint8Array) return 'bytes'
  if (value instanceof LibraryValue) return 'another type'
  if (value instanceof SecretText) return 'credential'
  return Array.isArray(value) ? 'list' : 'map'
}

/** Converts a result to plain JavaScript values. Objects of variables are shared, not copied. */
export function toPlain(value: unknown): unknown {
  if (value instanceof IntegralDouble) return value.value
  if (value instanceof LibraryValue) return plainOfLibrary(value)
  if (value instanceof SecretText) return value.toString()
  if (Array.isArray(value)) {
    spendWork(value.length * costOfElement)
    return value.map(toPlain)
  }
  if (value instanceof Map) return plainObject(value)
  return value
}

/** Work units of copying an element of a list, and a key of a map. */
const costOfElement = 10
const costOfKey = 100

function plainObject(map: ReadonlyMap<unknown, unknown>): object {
  spendWork(map.size * costOfKey)
  const entries = [...map].map(([key, value]) => [String(key), toPlain(value)])
  return Object.fromEntries(entries)
}
