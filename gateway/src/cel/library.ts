import {
  type CelInput,
  CelScalar,
  type CelValue,
  celEnv,
  celFunc,
  celList,
  celMap,
  celMethod,
  isCelError,
  isCelList,
  isCelMap,
  isCelType,
  isCelUint,
  listType,
  mapType,
  parse,
  plan,
} from '@bufbuild/cel'
import { strings } from '@bufbuild/cel/ext'
import { createPatternCache, type Pattern } from '../lib/pattern.ts'
import type { LibraryTree } from './ast.ts'
import { parseDouble, parseInt64 } from './closures/arithmetic.ts'
import { ipFunctions } from './closures/ip-functions.ts'
import type { StepBudget } from './closures/macros.ts'
import { hasProperties, intOf, maxInt, minInt, type Variables } from './closures/representation.ts'
import { sharedMethods } from './closures/shared-methods.ts'
import type { StringMethod } from './closures/string-methods.ts'
import { codePoints } from './closures/values.ts'
import { CelEvaluationError, Failure } from './failure.ts'
import { SecretText } from './secret-text.ts'
import { spendWork } from './work-budget.ts'

/** Function or method that expressions may call. */
export type FunctionForm = { readonly name: string; readonly isMethod: boolean; readonly arity: number }

/** Lists the functions of the library and of the corrections, operators included. */
export function libraryFunctions(): FunctionForm[] {
  return [...createEnvironment().funcs].map((form) => ({
    name: form.name,
    isMethod: form.target !== undefined,
    arity: form.arguments.length,
  }))
}

/**
 * Compiles an expression with the library: slow, but complete. The program reads only the variables in
 * `roots`, converts only the referenced parts, returns plain JavaScript values, and throws
 * CelEvaluationError.
 */
export function compileWithLibrary(
  tree: LibraryTree,
  roots: ReadonlySet<string>,
  budget: StepBudget,
): (variables: Variables) => unknown {
  const run = plan(createEnvironment(), tree)
  return (variables) => {
    const bindings: Record<string, CelInput> = {}
    for (const root of roots) {
      const value = Object.hasOwn(variables, root) ? variables[root] : undefined
      if (value !== undefined) bindings[root] = toInput(value, budget)
    }
    const result = run(bindings)
    if (isCelError(result)) throw new CelEvaluationError(result.message, { cause: result })
    return toPlain(result)
  }
}

function createEnvironment() {
  const patterns = createPatternCache(64)
  return celEnv({
    funcs: [...strings, ...corrections(), ...sharedMethods.map(libraryMethod)],
    re2: { compile: (source) => withWork(required(patterns(source))) },
  })
}

function withWork({ test, testCost }: Pattern) {
  return {
    test(text: string) {
      spendWork(text.length * testCost)
      return test(text)
    },
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function textOf(bytes: Uint8Array): string {
  spendWork(bytes.byteLength * costOfText)
  return utf8.decode(bytes)
}

function textSize(text: string): bigint {
  return BigInt(codePoints(text))
}

function required<T>(pattern: T | undefined): T {
  if (pattern === undefined) throw new Error('invalid regular expression')
  return pattern
}

/** Corrections of the library's deviations from the CEL specification. */
function corrections() {
  const { BOOL, BYTES, DOUBLE, INT, STRING, UINT, DYN } = CelScalar
  const anyMap = mapType(DYN, DYN)
  return [
    // The library interprets the int as milliseconds.
    celFunc('timestamp', [INT], DYN, (seconds) => timestampOf(dateOfSeconds(seconds))),
    // The library drops a byte order mark.
    celFunc('string', [BYTES], STRING, textOf),
    // The library creates a list of the characters.
    celFunc('size', [STRING], INT, textSize),
    celMethod('size', STRING, [], INT, function () {
      return textSize(this)
    }),
    // The library accepts the syntax of JavaScript conversions: empty text, blanks, hexadecimal digits.
    celFunc('int', [STRING], INT, (text) => BigInt(required(parseInt64(text)))),
    celFunc('double', [STRING], DOUBLE, (text) => required(parseDouble(text))),
    ...[...ipFunctions].map(([name, apply]) =>
      celFunc(name, [STRING], DYN, (text) => resultOf(name, apply(text))),
    ),
    // `contains` of the reference product also accepts lists and maps.
    celMethod('contains', listType(DYN), [DYN], BOOL, function (item) {
      return containerHas({ item, container: this })
    }),
    celMethod('contains', anyMap, [DYN], BOOL, function (item) {
      return containerHas({ item, container: this })
    }),
    // The library ignores keys with a null value.
    ...[STRING, BOOL, INT, UINT, DOUBLE].map((key) =>
      celFunc('@in', [key, anyMap], BOOL, (name, map) => map.get(name) !== undefined),
    ),
  ]
}

function libraryMethod({ name, target, args, apply }: StringMethod) {
  const { DYN, INT, STRING } = CelScalar
  const on = target === 'list' ? listType(DYN) : STRING
  const types = args.map((type) => (type === 'int' ? INT : STRING))
  return celMethod(name, on, types, DYN, function (...values) {
    const result = apply(isCelList(this) ? Array.from(this) : this, values)
    return resultOf(name, result)
  })
}

function resultOf(name: string, result: unknown): CelInput {
  if (typeof result === 'string' || typeof result === 'boolean' || Array.isArray(result)) return result
  if (typeof result === 'number') return BigInt(result)
  throw new Error(result instanceof Failure ? result.message : `${name} failed`)
}

const isIn = plan(celEnv(), parse('item in container'))

function containerHas(operands: { item: CelInput; container: CelInput }): boolean {
  const answer = isIn(operands)
  if (typeof answer !== 'boolean') throw new Error('contains does not apply')
  return answer
}

const readTimestamp = plan(celEnv(), parse('timestamp(text)'))
const writeText = plan(celEnv(), parse('string(value)'))

function timestampOf(date: Date): CelValue {
  const result = readTimestamp({ text: date.toISOString() })
  if (isCelError(result)) throw result
  return result
}

function dateOfSeconds(seconds: bigint): Date {
  // 0001-01-01 to 9999-12-31, the range of CEL's timestamps.
  if (seconds < -62_135_596_800n || seconds > 253_402_300_799n) throw new Error('timestamp out of range')
  return new Date(Number(seconds) * 1000)
}

/** Work units of the library per character of a text. */
const costOfText = 20

/** Converts a variable to an input of the library. Members of maps and lists are converted on access. */
function toInput(value: unknown, budget: StepBudget): CelInput {
  switch (typeof value) {
    case 'string':
      // Functions of the library do not count their work; most make a few passes.
      spendWork(value.length * costOfText)
      return value
    case 'boolean':
      return value
    case 'number':
      return Number.isInteger(value) && Math.abs(value) < 2 ** 63 ? BigInt(value) : value
    case 'bigint':
      if (value < minInt || value > maxInt) throw new CelEvaluationError('int overflow')
      return value
    case 'object':
      return value === null || value instanceof Uint8Array ? value : objectInput(value, budget)
    default:
      throw new CelEvaluationError(`unsupported value: ${typeof value}`)
  }
}

function objectInput(value: object, budget: StepBudget): CelInput {
  if (value instanceof SecretText) throw new CelEvaluationError('credentials do not combine with messages')
  if (value instanceof Date) return timestampOf(value)
  if (Array.isArray(value)) return lazyList(value, budget)
  return lazyMap(value, budget)
}

function lazyList(items: readonly unknown[], budget: StepBudget): CelInput {
  const enter = () => {
    budget.left -= 1
    if (budget.left < 0) throw new CelEvaluationError('expression takes too many steps')
    spendWork(budget.libraryStepWork)
  }
  function* values() {
    for (const item of items) {
      enter()
      yield required(toValue(item, budget))
    }
  }
  const get = (index: number) => (index in items ? toValue(items[index], budget) : undefined)
  // The list of the library does not convert its items; these members replace those that read its array.
  const list = celList([])
  return Object.defineProperties(list, {
    size: { get: () => items.length },
    get: { value: get },
    values: { value: values },
  })
}

/** Converts an input to a value of the library, through a list of one item: the only public conversion. */
function toValue(item: unknown, budget: StepBudget): CelValue | undefined {
  return celList([toInput(item, budget)]).get(0)
}

function lazyMap(object: object, budget: StepBudget): CelInput {
  const entries: Variables = hasProperties(object) ? object : {}
  const has = (key: unknown) =>
    typeof key === 'string' && Object.hasOwn(entries, key) && entries[key] !== undefined
  const keys = () => Object.keys(entries).filter(has)
  const get = (key: unknown) =>
    typeof key === 'string' && has(key) ? toInput(entries[key], budget) : undefined
  const entryOf = (key: string): [string, CelInput] => [key, required(get(key))]
  const view: ReadonlyMap<string, CelInput> = {
    get size() {
      return keys().length
    },
    get,
    has,
    keys: () => keys().values(),
    values: () =>
      keys()
        .values()
        .map((key) => required(get(key))),
    entries: () => keys().values().map(entryOf),
    [Symbol.iterator]: () => keys().values().map(entryOf),
    forEach(visit) {
      for (const key of keys()) visit(required(get(key)), key, view)
    },
  }
  // `has` of the library ignores keys with a null value.
  return Object.defineProperty(celMap(view), 'has', { value: has })
}

function toPlain(value: CelValue): unknown {
  if (typeof value === 'bigint') return intOf(value)
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  if (isCelUint(value)) return intOf(value.value)
  if (isCelType(value)) return value.name
  if (isCelList(value)) return Array.from(value, toPlain)
  if (isCelMap(value)) {
    return Object.fromEntries(Array.from(value, ([key, entry]) => [String(toPlain(key)), toPlain(entry)]))
  }
  const text = writeText({ value })
  if (isCelError(text)) throw new CelEvaluationError('result has no plain form')
  return text
}
