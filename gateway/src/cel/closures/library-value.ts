import {
  type CelInput,
  CelScalar,
  type CelValue,
  celEnv,
  celFunc,
  celList,
  celMap,
  celUint,
  isCelError,
  isCelList,
  isCelMap,
  isCelType,
  isCelUint,
  parse,
  plan,
} from '@bufbuild/cel'
import { strings } from '@bufbuild/cel/ext'
import { CelEvaluationError, Failure } from '../failure.ts'
import { spendWork } from '../work-budget.ts'
import {
  doubleOf,
  hasProperties,
  IntegralDouble,
  intOf,
  LibraryValue,
  maxInt,
  minInt,
} from './representation.ts'

/*
 * Types that only the library implements: timestamps, durations, unsigned ints and types. Inside closures
 * their values are opaque, and each call on them is a call of the library.
 */

/** Creates the value of an unsigned int literal. */
export function uintValue(value: bigint): LibraryValue {
  return new LibraryValue(celUint(value))
}

/** Creates the value of a type name: `int`; undefined for another name. */
export function typeValue(name: string): LibraryValue | undefined {
  const value = plan(environment, parse(name))({})
  return isCelError(value) ? undefined : new LibraryValue(value)
}

/** Creates a timestamp. */
export function timestampValue(date: Date): unknown {
  return Number.isNaN(date.getTime())
    ? new Failure('invalid time')
    : call('timestamp(a)', [date.toISOString()])
}

/** Calls an operator, function or method of the library. The first operand of a method is its target. */
export function callLibrary(
  { name, isMethod = false }: { readonly name: string; readonly isMethod?: boolean },
  operands: readonly unknown[],
): unknown {
  for (const operand of operands) if (operand instanceof Failure) return operand
  if (name === 'type') return call('type(a)', operands.map(representative))
  const letters = operands.map((_, index) => String.fromCharCode(97 + index))
  return call(sourceOf(name, isMethod, letters), operands)
}

/** Equality of values of which one or both are values of the library. */
export function equalsInLibrary(left: unknown, right: unknown): boolean {
  return callLibrary({ name: '==' }, [left, right]) === true
}

/** Plain form: an int, the name of a type, or the text of a timestamp or duration. */
export function plainOfLibrary({ value }: LibraryValue): unknown {
  if (isCelUint(value)) return intOf(value.value)
  if (isCelType(value)) return value.name
  const text = call('string(a)', [new LibraryValue(value)])
  if (typeof text === 'string') return text
  throw new CelEvaluationError('result has no plain form')
}

/** The number of an unsigned int; undefined for other types. */
export function valueOfUint(value: unknown): bigint | undefined {
  return value instanceof LibraryValue && isCelUint(value.value) ? value.value.value : undefined
}

const infix: ReadonlySet<string> = new Set(['+', '-', '*', '/', '%', '<', '<=', '>', '>=', '==', 'in'])

function sourceOf(name: string, isMethod: boolean, [first = '', ...rest]: readonly string[]): string {
  if (isMethod) return `${first}.${name}(${rest.join(', ')})`
  if (infix.has(name)) return rest.length === 0 ? `${name}${first}` : `${first} ${name} ${rest.join('')}`
  return /^\w+$/.test(name) ? `${name}(${[first, ...rest].join(', ')})` : 'null.call()'
}

const environment = celEnv({
  // The library interprets the int as milliseconds.
  funcs: [...strings, celFunc('timestamp', [CelScalar.INT], CelScalar.DYN, timestampOfSeconds)],
})

type Run = (variables: Record<string, CelInput>) => unknown

/** One for each operator, function and method of the library, by its number of operands. */
const calls = new Map<string, Run>()

function call(source: string, operands: readonly unknown[]): unknown {
  let run = calls.get(source)
  if (run === undefined) {
    run = plan(environment, parse(source)) as Run
    calls.set(source, run)
  }
  const variables: Record<string, CelInput> = {}
  for (const [index, operand] of operands.entries())
    variables[String.fromCharCode(97 + index)] = toLibrary(operand, 0)
  const result = run(variables)
  return isCelError(result)
    ? new Failure(`${source.replaceAll(/\b[a-e]\b/g, '_')} does not apply to its operands`)
    : fromLibrary(result as CelValue)
}

const readText = plan(celEnv(), parse('timestamp(text)'))

function timestampOfSeconds(seconds: bigint): CelInput {
  // 0001-01-01 to 9999-12-31, the range of CEL's timestamps.
  if (seconds < -62_135_596_800n || seconds > 253_402_300_799n) throw new Error('timestamp out of range')
  const result = readText({ text: new Date(Number(seconds) * 1000).toISOString() })
  if (isCelError(result)) throw result
  return result
}

/** An operand of the same type: the type of a large value needs no conversion. */
function representative(value: unknown): unknown {
  if (typeof value === 'string') return ''
  if (Array.isArray(value)) return []
  if (value instanceof Uint8Array) return new Uint8Array(0)
  return hasProperties(value) && !(value instanceof IntegralDouble) && !(value instanceof LibraryValue)
    ? new Map()
    : value
}

const maxDepth = 100
/** Work units of the library per character of a text, and per element of a list or map. */
const costOfText = 20
const costOfElement = 300

function toLibrary(value: unknown, depth: number): CelInput {
  if (depth > maxDepth) throw new CelEvaluationError('values are nested too deeply or too large')
  switch (typeof value) {
    case 'string':
      spendWork(value.length * costOfText)
      return value
    case 'boolean':
      return value
    case 'bigint':
      if (value < minInt || value > maxInt) throw new CelEvaluationError('int overflow')
      return value
    case 'number':
      return Number.isInteger(value) && Math.abs(value) < 2 ** 63 ? BigInt(value) : value
    case 'object':
      return value === null ? null : objectToLibrary(value, depth)
    default:
      throw new CelEvaluationError(`unsupported value: ${typeof value}`)
  }
}

function objectToLibrary(value: object, depth: number): CelInput {
  if (value instanceof LibraryValue) return value.value as CelInput
  if (value instanceof IntegralDouble) return value.value
  if (value instanceof Uint8Array) {
    spendWork(value.byteLength * costOfText)
    return value
  }
  if (Array.isArray(value)) {
    spendWork(value.length * costOfElement)
    return celList(value.map((item) => toLibrary(item, depth + 1)))
  }
  const entries: [unknown, unknown][] = value instanceof Map ? [...value] : Object.entries(value)
  spendWork(entries.length * costOfElement)
  const present = entries.filter(([, member]) => member !== undefined)
  return celMap(
    new Map(present.map(([key, member]) => [toLibrary(key, depth) as string, toLibrary(member, depth + 1)])),
  )
}

function fromLibrary(value: CelValue): unknown {
  switch (typeof value) {
    case 'bigint':
      return intOf(value)
    case 'number':
      return doubleOf(value)
    case 'object': {
      if (value === null || value instanceof Uint8Array) return value
      if (isCelList(value)) return Array.from(value, fromLibrary)
      if (isCelMap(value))
        return new Map(Array.from(value, ([key, member]) => [fromLibrary(key), fromLibrary(member)]))
      return new LibraryValue(value)
    }
    default:
      return value
  }
}
