import { isUtf8 } from 'node:buffer'
import { noOverload } from '../closures/values.ts'
import { Failure } from '../failure.ts'
import { spendWork } from '../work-budget.ts'

/** Function or method beyond the library. Methods receive their target as the first value. */
export type CelFunction = {
  /** `json`, `base64.encode`. */
  readonly name: string
  readonly isMethod: boolean
  /** Number of values, with the target of a method. */
  readonly arity: number
  /** Accepts more values. */
  readonly isVariadic?: boolean
  /** Receives loaded values, none of them a Failure. Returns a value or a Failure. */
  readonly apply: (...values: readonly unknown[]) => unknown
}

/** Creates a function of one value. */
export function unaryFunction(name: string, apply: (value: unknown) => unknown): CelFunction {
  return { name, isMethod: false, arity: 1, apply }
}

/** Creates a function of a string or bytes, which receives text. Bytes must be UTF-8. */
export function textFunction(name: string, apply: (text: string) => unknown): CelFunction {
  return unaryFunction(name, (value) => {
    if (typeof value === 'string') return apply(value)
    if (!(value instanceof Uint8Array)) return noOverload(name, value)
    const text = textOfBytes(value)
    return text === undefined ? new Failure(`${name}() of bytes that are not UTF-8`) : apply(text)
  })
}

/** Creates a function of a string or bytes, which receives bytes. */
export function bytesFunction(name: string, apply: (bytes: Uint8Array) => unknown): CelFunction {
  return unaryFunction(name, (value) => {
    if (value instanceof Uint8Array) return apply(value)
    if (typeof value !== 'string') return noOverload(name, value)
    spendWork(value.length)
    return apply(Buffer.from(value))
  })
}

/** Decodes UTF-8; undefined if the bytes are not. */
export function textOfBytes(bytes: Uint8Array): string | undefined {
  spendWork(bytes.byteLength * 2)
  if (!isUtf8(bytes)) return undefined
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
}
