/*
 * Values inside compiled closures:
 *   string, bool, null   themselves
 *   int                  a safe integer as number, any other as bigint
 *   double               a number that is not an integer; otherwise an IntegralDouble
 *   bytes                a Uint8Array
 *   list                 an array of unconverted elements: every read goes through `load`
 *   map                  a plain object from a variable, or a Map from a literal
 *   others               a LibraryValue: timestamp, duration, unsigned int, type
 */

/**
 * Double with an integral value: 1.0. JSON does not distinguish it from an int, so only literals below 2^63
 * need it.
 */
export class IntegralDouble {
  readonly value: number

  constructor(value: number) {
    this.value = value
  }
}

/** Value of a type that only the library implements. */
export class LibraryValue {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

export const minInt = -(2n ** 63n)
export const maxInt = 2n ** 63n - 1n

export type Variables = Readonly<Record<string, unknown>>

/** Compiled part of an expression. Returns a value or a Failure. */
export type Evaluate = (variables: Variables) => unknown

/** Whether a value is an object. */
export function hasProperties(value: unknown): value is Variables {
  return typeof value === 'object' && value !== null
}

/** Converts an int to its canonical representation, so that equal ints are `===`. */
export function intOf(value: bigint): number | bigint {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

export function doubleOf(value: number): unknown {
  return Number.isInteger(value) ? new IntegralDouble(value) : value
}

export function isInt(value: unknown): value is number | bigint {
  return typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value))
}

/** Number of a double; undefined for any other value. */
export function doubleValue(value: unknown): number | undefined {
  if (value instanceof IntegralDouble) return value.value
  return typeof value === 'number' && !Number.isInteger(value) ? value : undefined
}
