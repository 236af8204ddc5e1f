import { uintValue, valueOfUint } from '../closures/library-value.ts'
import {
  doubleOf,
  doubleValue,
  intOf,
  isInt,
  LibraryValue,
  maxInt,
  minInt,
} from '../closures/representation.ts'
import { compare, noOverload } from '../closures/values.ts'
import { Failure } from '../failure.ts'
import { spendWork } from '../work-budget.ts'
import { type CelFunction, unaryFunction } from './function.ts'

/** The math extension of CEL, and `min` and `max`. */
export const mathFunctions: readonly CelFunction[] = [
  ...['math.least', 'min'].map((name) => extreme(name, (order) => order < 0)),
  ...['math.greatest', 'max'].map((name) => extreme(name, (order) => order > 0)),
  onDouble('math.ceil', Math.ceil),
  onDouble('math.floor', Math.floor),
  onDouble('math.trunc', Math.trunc),
  // Half away from zero, unlike Math.round.
  onDouble('math.round', (value) => Math.sign(value) * Math.round(Math.abs(value))),
  unaryFunction('math.sqrt', (value) => {
    const number = numberOf(value)
    return number === undefined ? noOverload('math.sqrt', value) : doubleOf(Math.sqrt(number))
  }),
  testDouble('math.isInf', (value) => Math.abs(value) === Number.POSITIVE_INFINITY),
  testDouble('math.isNaN', Number.isNaN),
  testDouble('math.isFinite', Number.isFinite),
  unaryFunction('math.abs', (value) => {
    if (isInt(value)) return checked(value < 0 ? -BigInt(value) : BigInt(value))
    const double = doubleValue(value)
    if (double !== undefined) return doubleOf(Math.abs(double))
    return valueOfUint(value) === undefined ? noOverload('math.abs', value) : value
  }),
  unaryFunction('math.sign', (value) => {
    if (isInt(value)) return value === 0 ? 0 : value < 0 ? -1 : 1
    const double = doubleValue(value)
    if (double !== undefined) return doubleOf(Math.sign(double))
    const uint = valueOfUint(value)
    return uint === undefined ? noOverload('math.sign', value) : uintValue(uint === 0n ? 0n : 1n)
  }),
  onBits('math.bitAnd', (left, right) => left & right),
  onBits('math.bitOr', (left, right) => left | right),
  onBits('math.bitXor', (left, right) => left ^ right),
  unaryFunction('math.bitNot', (value) => {
    if (isInt(value)) return intOf(~BigInt(value))
    const uint = valueOfUint(value)
    return uint === undefined ? noOverload('math.bitNot', value) : uintValue(BigInt.asUintN(64, ~uint))
  }),
  shift('math.bitShiftLeft', (value, by) => value << by),
  shift('math.bitShiftRight', (value, by) => value >> by),
]

function checked(value: bigint): unknown {
  return value < minInt || value > maxInt ? new Failure('int overflow') : intOf(value)
}

function extreme(name: string, isBetter: (order: number) => boolean): CelFunction {
  return {
    name,
    isMethod: false,
    arity: 1,
    isVariadic: true,
    apply(...values) {
      const [first] = values
      const items: readonly unknown[] = values.length === 1 && Array.isArray(first) ? first : values
      spendWork(items.length * 30)
      let best: unknown
      for (const item of items) {
        if (!isNumber(item)) return noOverload(name, item)
        if (best === undefined || isBetter(orderOf(item, best))) best = item
      }
      return best ?? new Failure(`${name}() of an empty list`)
    },
  }
}

function isNumber(value: unknown): boolean {
  return isInt(value) || doubleValue(value) !== undefined || valueOfUint(value) !== undefined
}

function orderOf(left: unknown, right: unknown): number {
  return compare(valueOfUint(left) ?? left, valueOfUint(right) ?? right) ?? 0
}

function numberOf(value: unknown): number | undefined {
  const int = isInt(value) ? value : valueOfUint(value)
  return int === undefined ? doubleValue(value) : Number(int)
}

function onDouble(name: string, apply: (value: number) => number): CelFunction {
  return unaryFunction(name, (value) => {
    const double = doubleValue(value)
    return double === undefined ? noOverload(name, value) : doubleOf(apply(double))
  })
}

function testDouble(name: string, test: (value: number) => boolean): CelFunction {
  return unaryFunction(name, (value) => {
    const number = numberOf(value)
    return number === undefined ? noOverload(name, value) : test(number)
  })
}

type Combine = (left: bigint, right: bigint) => bigint

function onBits(name: string, combine: Combine): CelFunction {
  return {
    name,
    isMethod: false,
    arity: 2,
    apply: (left, right) => combineBits(name, [left, right], combine),
  }
}

function combineBits(name: string, [left, right]: [unknown, unknown], combine: Combine): unknown {
  if (isInt(left) && isInt(right)) return intOf(combine(BigInt(left), BigInt(right)))
  const [a, b] = [valueOfUint(left), valueOfUint(right)]
  if (a !== undefined && b !== undefined) return uintValue(combine(a, b))
  if (left instanceof Uint8Array && right instanceof Uint8Array)
    return combineBytes(name, [left, right], combine)
  if (right instanceof Uint8Array) return maskBits(name, [left, right], combine)
  return left instanceof Uint8Array ? maskBits(name, [right, left], combine) : noOverload(name, left, right)
}

/** A number with the last 8 bytes of a bit field. */
function maskBits(name: string, [value, bytes]: [unknown, Uint8Array], combine: Combine): unknown {
  let low = 0n
  for (const byte of bytes.subarray(-8)) low = (low << 8n) | BigInt(byte)
  if (isInt(value))
    return value < 0
      ? new Failure(`${name}() of a negative int and bytes`)
      : intOf(BigInt.asIntN(64, combine(BigInt(value), low)))
  const uint = valueOfUint(value)
  return uint === undefined ? noOverload(name, value, bytes) : uintValue(combine(uint, low))
}

const maxBytes = 32

function combineBytes(name: string, [left, right]: [Uint8Array, Uint8Array], combine: Combine): unknown {
  if (left.byteLength > maxBytes || right.byteLength > maxBytes)
    return new Failure(`${name}() of more than ${maxBytes} bytes`)
  const length = Math.max(left.byteLength, right.byteLength)
  const at = (bytes: Uint8Array, index: number) => BigInt(bytes[index - (length - bytes.byteLength)] ?? 0)
  return Uint8Array.from({ length }, (_, index) => Number(combine(at(left, index), at(right, index))))
}

/** Bits that are shifted out are lost; a right shift inserts zeros. */
function shift(name: string, apply: Combine): CelFunction {
  return {
    name,
    isMethod: false,
    arity: 2,
    apply(value, by) {
      if (!isInt(by)) return noOverload(name, value, by)
      if (by < 0) return new Failure(`${name}() by a negative number`)
      const distance = by > 63 ? undefined : BigInt(by)
      const bits = isInt(value) ? BigInt.asUintN(64, BigInt(value)) : valueOfUint(value)
      if (bits === undefined) return noOverload(name, value, by)
      const shifted = distance === undefined ? 0n : BigInt.asUintN(64, apply(bits, distance))
      return value instanceof LibraryValue ? uintValue(shifted) : intOf(BigInt.asIntN(64, shifted))
    },
  }
}
