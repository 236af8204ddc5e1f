import { compilePattern, type createPatternCache } from '../../lib/pattern.ts'
import { Failure } from '../failure.ts'
import { spendWork } from '../work-budget.ts'
import {
  add,
  divide,
  multiply,
  negate,
  remainder,
  subtract,
  toBool,
  toBytes,
  toDouble,
  toInt,
  toText,
} from './arithmetic.ts'
import { ipFunctions } from './ip-functions.ts'
import type { StepBudget } from './macros.ts'
import { costOfPatternText } from './regex-replace.ts'
import type { Evaluate } from './representation.ts'
import {
  compare,
  element,
  equals,
  failedOperand,
  hasKey,
  isMap,
  load,
  mapKey,
  noOverload,
  sizeOf,
  viaLibrary,
} from './values.ts'

/** Compiles an operator or function of one value; undefined if only the library supports it. */
export function compileUnary(name: string, operand: Evaluate): Evaluate | undefined {
  if (name === '!_') {
    return (variables) => {
      const value = operand(variables)
      return typeof value === 'boolean' ? !value : noOverload('!', value)
    }
  }
  const apply = unary.get(name)
  return apply && ((variables) => apply(operand(variables)))
}

const unary: ReadonlyMap<string, (value: unknown) => unknown> = new Map([
  ['-_', negate],
  ['size', sizeOf],
  ['int', toInt],
  ['double', toDouble],
  ['string', toText],
  ['bool', toBool],
  ['bytes', toBytes],
  ['dyn', (value) => value],
  ...ipFunctions,
])

/** Compiles `condition ? a : b`. */
export function compileConditional(condition: Evaluate, whenTrue: Evaluate, whenFalse: Evaluate): Evaluate {
  return (variables) => {
    const decided = condition(variables)
    if (decided === true) return whenTrue(variables)
    if (decided === false) return whenFalse(variables)
    return new Failure(noOverload('?:', decided).message)
  }
}

type BinaryContext = {
  /** Right operand if it is a constant, else undefined. */
  readonly constant: unknown
  readonly budget: StepBudget
  readonly patterns: ReturnType<typeof createPatternCache>
}

/** Compiles an operator of two values; undefined if only the library supports it. */
export function compileBinary(
  name: string,
  [left, right]: [Evaluate, Evaluate],
  { constant, budget }: BinaryContext,
): Evaluate | undefined {
  switch (name) {
    case '_&&_':
      return compileAnd(left, right)
    case '_||_':
      return compileOr(left, right)
    case '_==_':
      return compileEquals(left, right, constant)
    case '_!=_': {
      const equal = compileEquals(left, right, constant)
      return (variables) => {
        const answer = equal(variables)
        return typeof answer === 'boolean' ? !answer : answer
      }
    }
    case '@in':
      return compileIn(left, right, budget)
    case '_[_]':
      return (variables) => element(left(variables), right(variables))
    default:
      return compileComparison(name, left, right) ?? compileArithmetic(name, left, right)
  }
}

/** One false operand decides, even if the other fails: `false && (1 / 0 > 0)` is false. */
function compileAnd(left: Evaluate, right: Evaluate): Evaluate {
  return (variables) => {
    const a = left(variables)
    if (a === false) return false
    const b = right(variables)
    if (b === false) return false
    return a === true && b === true ? true : noOverload('&&', a, b)
  }
}

function compileOr(left: Evaluate, right: Evaluate): Evaluate {
  return (variables) => {
    const a = left(variables)
    if (a === true) return true
    const b = right(variables)
    if (b === true) return true
    return a === false && b === false ? false : noOverload('||', a, b)
  }
}

function compileEquals(left: Evaluate, right: Evaluate, constant: unknown): Evaluate {
  if (typeof constant === 'string') {
    return (variables) => {
      const a = left(variables)
      return failedOperand(a) ?? equals(a, constant)
    }
  }
  return (variables) => {
    const a = left(variables)
    const failed = failedOperand(a)
    if (failed !== undefined) return failed
    const b = right(variables)
    return failedOperand(b) ?? equals(a, b)
  }
}

function compileComparison(name: string, left: Evaluate, right: Evaluate): Evaluate | undefined {
  const decide = comparisons.get(name)
  if (decide === undefined) return undefined
  const symbol = name.replaceAll('_', '')
  return (variables) => {
    const a = left(variables)
    const b = right(variables)
    const order = compare(a, b)
    return order === undefined ? viaLibrary(symbol, a, b) : decide(order)
  }
}

const comparisons: ReadonlyMap<string, (order: number) => boolean> = new Map([
  ['_<_', (order) => order < 0],
  ['_<=_', (order) => order <= 0],
  ['_>_', (order) => order > 0],
  ['_>=_', (order) => order >= 0],
])

function compileArithmetic(name: string, left: Evaluate, right: Evaluate): Evaluate | undefined {
  const apply = arithmetic.get(name)
  return apply && ((variables) => apply(left(variables), right(variables)))
}

const arithmetic: ReadonlyMap<string, (left: unknown, right: unknown) => unknown> = new Map([
  ['_+_', add],
  ['_-_', subtract],
  ['_*_', multiply],
  ['_/_', divide],
  ['_%_', remainder],
])

function compileIn(item: Evaluate, container: Evaluate, budget: StepBudget): Evaluate {
  return (variables) => isIn(item(variables), container(variables), budget)
}

function isIn(value: unknown, searched: unknown, budget: StepBudget): unknown {
  const failed = failedOperand(value)
  if (failed !== undefined) return failed
  if (Array.isArray(searched)) {
    budget.left -= searched.length >> 4
    return listHas(searched, value)
  }
  if (searched instanceof Failure) return searched
  const isKey = typeof value === 'number' || mapKey(value) !== undefined
  return isKey && isMap(searched) ? hasKey(searched, value) : noOverload('in', value, searched)
}

function listHas(list: readonly unknown[], value: unknown): boolean {
  spendWork(list.length * (typeof value === 'string' ? 10 + value.length / 4 : 50))
  if (typeof value === 'string') return list.includes(value)
  for (const item of list) if (equals(load(item), value)) return true
  return false
}

/** Compiles `contains`, `startsWith`, `endsWith` or `matches`; undefined for another name. */
export function compileStringTest(
  name: string,
  [text, part]: [Evaluate, Evaluate],
  context: BinaryContext,
): Evaluate | undefined {
  if (name === 'matches') return compileMatches(text, part, context)
  if (name === 'contains') return compileContains(text, part, context)
  const test = textTests.get(name)
  if (test === undefined) return undefined
  return (variables) => {
    const subject = text(variables)
    const searched = part(variables)
    if (typeof subject !== 'string' || typeof searched !== 'string')
      return noOverload(name, subject, searched)
    spendWork(searched.length / 4)
    return test(subject, searched)
  }
}

/** Work units of a substring search, per character. */
const costOfContains = 6

/** `list.contains(x)` is `x in list` in the reference product; CEL defines `contains` for strings only. */
function compileContains(target: Evaluate, part: Evaluate, { budget, constant }: BinaryContext): Evaluate {
  return (variables) => {
    const searched = target(variables)
    const value = part(variables)
    if (typeof searched !== 'string') return isIn(value, searched, budget)
    if (typeof value !== 'string') return noOverload('contains', searched, value)
    // A constant of the configuration is not crafted for a slow search.
    const costOfPart = constant === undefined ? value.length / 3 : 0
    spendWork(searched.length * (costOfContains + costOfPart))
    return searched.includes(value)
  }
}

const textTests: ReadonlyMap<string, (text: string, part: string) => boolean> = new Map([
  ['startsWith', (text, part) => text.startsWith(part)],
  ['endsWith', (text, part) => text.endsWith(part)],
])

function compileMatches(text: Evaluate, part: Evaluate, { constant, patterns }: BinaryContext): Evaluate {
  const pattern = typeof constant === 'string' ? compilePattern(constant) : undefined
  if (pattern?.ok) {
    return (variables) => {
      const subject = text(variables)
      if (typeof subject !== 'string') return noOverload('matches', subject, constant)
      spendWork(subject.length * pattern.testCost)
      return pattern.test(subject)
    }
  }
  return (variables) => {
    const subject = text(variables)
    const source = part(variables)
    if (typeof subject !== 'string' || typeof source !== 'string')
      return noOverload('matches', subject, source)
    spendWork(source.length * costOfPatternText)
    const found = patterns(source)
    if (found === undefined) return new Failure('invalid regular expression')
    spendWork(subject.length * found.testCost)
    return found.test(subject)
  }
}
