import { compilePattern, type createPatternCache } from '../lib/pattern.ts'
import {
  add,
  divide,
  multiply,
  negate,
  remainder,
  subtract,
  toBool,
  toDouble,
  toInt,
  toText,
} from './arithmetic.ts'
import { Failure } from './failure.ts'
import { type Budget, compileLoop, type Local } from './macros.ts'
import { textMethods } from './text.ts'
import type { Node } from './tree.ts'
import {
  compare,
  type Evaluate,
  element,
  equals,
  hasKey,
  isMap,
  load,
  mapKey,
  noOverload,
  property,
  sizeOf,
  typeName,
} from './values.ts'

/** What the closures of one expression share. */
export type Scope = {
  /** The variables of the evaluation; any other name is a type's. */
  readonly roots: ReadonlySet<string>
  /** Where the variables of surrounding macros live, innermost last. */
  readonly locals: readonly Local[]
  readonly budget: Budget
  readonly patterns: ReturnType<typeof createPatternCache>
}

/** Compiles an expression to closures; undefined when some part of it only the library evaluates. */
export function compileClosures(node: Node, scope: Scope): Evaluate | undefined {
  switch (node.kind) {
    case 'constant':
      return () => node.value
    case 'identifier':
      return compileIdentifier(node.name, scope)
    case 'select':
      return compileSelect(node, scope)
    case 'has':
      return compileHas(node, scope)
    case 'call':
      return compileCall(node, scope)
    case 'list':
      return compileList(node.items, scope)
    case 'map':
      return compileMap(node.entries, scope)
    case 'macro':
      return compileMacro(node, scope)
    case 'foreign':
      return undefined
  }
}

function compileIdentifier(name: string, { roots, locals }: Scope): Evaluate | undefined {
  const local = locals.findLast((entry) => entry.name === name)
  if (local !== undefined) return () => local.value
  if (!roots.has(name)) return undefined
  const missing = new Failure(`${name} has no value`, true)
  return (variables) => {
    if (!Object.hasOwn(variables, name)) return missing
    const value = variables[name]
    return value === undefined ? missing : load(value)
  }
}

function compileSelect(node: Extract<Node, { kind: 'select' }>, scope: Scope): Evaluate | undefined {
  const { field } = node
  const operand = compileClosures(node.operand, scope)
  if (operand === undefined) return undefined
  const missing = new Failure(`no such key: ${field}`)
  return (variables) => property(operand(variables), field, missing)
}

function compileHas(node: Extract<Node, { kind: 'has' }>, scope: Scope): Evaluate | undefined {
  const { field } = node
  const operand = compileClosures(node.operand, scope)
  if (operand === undefined) return undefined
  const mayBeUnset = isPath(node.operand)
  return (variables) => {
    const target = operand(variables)
    if (target instanceof Failure) return target.unset && mayBeUnset ? false : target
    return isMap(target) && hasKey(target, field)
  }
}

/** Whether an unset variable at the root of this expression makes `has()` false instead of an error. */
function isPath(node: Node): boolean {
  if (node.kind === 'call') return node.name === '_[_]' || node.name === '_?_:_'
  return node.kind === 'identifier' || node.kind === 'select'
}

function compileList(items: readonly Node[], scope: Scope): Evaluate | undefined {
  const compiled = compileAll(items, scope)
  if (compiled === undefined) return undefined
  if (items.every((item) => item.kind === 'constant')) {
    const constants = items.map((item) => (item.kind === 'constant' ? item.value : undefined))
    return () => constants
  }
  return (variables) => {
    const values: unknown[] = []
    for (const evaluate of compiled) {
      const value = evaluate(variables)
      if (value instanceof Failure) return value
      values.push(value)
    }
    return values
  }
}

function compileMap(entries: readonly { key: Node; value: Node }[], scope: Scope): Evaluate | undefined {
  const keys = compileAll(
    entries.map((entry) => entry.key),
    scope,
  )
  const values = compileAll(
    entries.map((entry) => entry.value),
    scope,
  )
  if (keys === undefined || values === undefined) return undefined
  return (variables) => {
    const map = new Map<unknown, unknown>()
    for (const [index, evaluateKey] of keys.entries()) {
      const given = evaluateKey(variables)
      if (given instanceof Failure) return given
      const key = mapKey(given)
      if (key === undefined) return new Failure(`${typeName(given)} cannot be a map key`)
      if (map.has(key)) return new Failure('map key given twice')
      const value = values[index]?.(variables)
      if (value instanceof Failure) return value
      map.set(key, value)
    }
    return map
  }
}

function compileAll(nodes: readonly Node[], scope: Scope): Evaluate[] | undefined {
  const compiled: Evaluate[] = []
  for (const node of nodes) {
    const evaluate = compileClosures(node, scope)
    if (evaluate === undefined) return undefined
    compiled.push(evaluate)
  }
  return compiled
}

function compileMacro(node: Extract<Node, { kind: 'macro' }>, scope: Scope): Evaluate | undefined {
  const local: Local = { name: node.variable, value: undefined }
  const inner = { ...scope, locals: [...scope.locals, local] }
  const range = compileClosures(node.range, scope)
  const test = node.test && compileClosures(node.test, inner)
  const step = node.step && compileClosures(node.step, inner)
  // A part that is there but has no closure sends the whole expression to the library.
  if (range === undefined || (node.test && !test) || (node.step && !step)) return undefined
  return compileLoop(node.macro, { range, test, step, local, budget: scope.budget })
}

type CallNode = Extract<Node, { kind: 'call' }>

function compileCall(node: CallNode, scope: Scope): Evaluate | undefined {
  const textMethod = compileTextMethod(node, scope)
  if (textMethod !== undefined) return textMethod
  const operands = node.target === undefined ? node.args : [node.target, ...node.args]
  const [first, second, third] = operands
  const compiled = compileAll(operands, scope)
  if (compiled === undefined || first === undefined) return undefined
  const [a, b, c] = compiled
  const isMethod = node.target !== undefined
  if (a === undefined) return undefined
  if (b === undefined) return isMethod && node.name !== 'size' ? undefined : compileUnary(node.name, a)
  if (c !== undefined) {
    return third !== undefined && node.name === '_?_:_' ? compileConditional(a, b, c) : undefined
  }
  if (isMethod) {
    return second === undefined
      ? undefined
      : compileStringMethod(node.name, { text: a, part: b, partNode: second }, scope)
  }
  return compileBinary(node.name, [a, b], { second, scope })
}

function compileTextMethod({ name, target, args }: CallNode, scope: Scope): Evaluate | undefined {
  const method = textMethods.find((entry) => entry.name === name && entry.args.length === args.length)
  if (method === undefined || target === undefined) return undefined
  const subject = compileClosures(target, scope)
  const compiled = compileAll(args, scope)
  if (subject === undefined || compiled === undefined) return undefined
  return (variables) =>
    method.apply(
      subject(variables),
      compiled.map((evaluate) => evaluate(variables)),
    )
}

function compileUnary(name: string, operand: Evaluate): Evaluate | undefined {
  if (name === '!_') {
    return (variables) => {
      const value = operand(variables)
      return typeof value === 'boolean' ? !value : noOverload('!', value)
    }
  }
  const apply = unary[name]
  return apply && ((variables) => apply(operand(variables)))
}

const unary: Partial<Record<string, (value: unknown) => unknown>> = {
  '-_': negate,
  size: sizeOf,
  int: toInt,
  double: toDouble,
  string: toText,
  bool: toBool,
  dyn: (value) => value,
}

function compileConditional(condition: Evaluate, whenTrue: Evaluate, whenFalse: Evaluate): Evaluate {
  return (variables) => {
    const decided = condition(variables)
    if (decided === true) return whenTrue(variables)
    if (decided === false) return whenFalse(variables)
    return new Failure(noOverload('?:', decided).message)
  }
}

type BinaryContext = { second: Node | undefined; scope: Scope }

function compileBinary(
  name: string,
  [left, right]: [Evaluate, Evaluate],
  { second, scope }: BinaryContext,
): Evaluate | undefined {
  switch (name) {
    case '_&&_':
      return compileAnd(left, right)
    case '_||_':
      return compileOr(left, right)
    case '_==_':
      return compileEquals(left, right, second)
    case '_!=_': {
      const equal = compileEquals(left, right, second)
      return (variables) => {
        const answer = equal(variables)
        return typeof answer === 'boolean' ? !answer : answer
      }
    }
    case '@in':
      return compileIn(left, right, scope)
    case '_[_]':
      return (variables) => element(left(variables), right(variables))
    default:
      return compileComparison(name, left, right) ?? compileArithmetic(name, left, right)
  }
}

/** A false side decides, whatever the other is: `false && (1 / 0 > 0)` is false. */
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

function compileEquals(left: Evaluate, right: Evaluate, rightNode: Node | undefined): Evaluate {
  if (rightNode?.kind === 'constant' && typeof rightNode.value === 'string') {
    const constant = rightNode.value
    return (variables) => {
      const a = left(variables)
      return a instanceof Failure ? a : a === constant
    }
  }
  return (variables) => {
    const a = left(variables)
    if (a instanceof Failure) return a
    const b = right(variables)
    return b instanceof Failure ? b : equals(a, b)
  }
}

function compileComparison(name: string, left: Evaluate, right: Evaluate): Evaluate | undefined {
  const decide = comparisons[name]
  if (decide === undefined) return undefined
  return (variables) => {
    const a = left(variables)
    const b = right(variables)
    const order = compare(a, b)
    return order === undefined ? noOverload(name.replaceAll('_', ''), a, b) : decide(order)
  }
}

const comparisons: Partial<Record<string, (order: number) => boolean>> = {
  '_<_': (order) => order < 0,
  '_<=_': (order) => order <= 0,
  '_>_': (order) => order > 0,
  '_>=_': (order) => order >= 0,
}

function compileArithmetic(name: string, left: Evaluate, right: Evaluate): Evaluate | undefined {
  const apply = arithmetic[name]
  return apply && ((variables) => apply(left(variables), right(variables)))
}

const arithmetic: Partial<Record<string, (left: unknown, right: unknown) => unknown>> = {
  '_+_': add,
  '_-_': subtract,
  '_*_': multiply,
  '_/_': divide,
  '_%_': remainder,
}

function compileIn(item: Evaluate, container: Evaluate, { budget }: Scope): Evaluate {
  return (variables) => {
    const value = item(variables)
    if (value instanceof Failure) return value
    const searched = container(variables)
    if (Array.isArray(searched)) {
      budget.left -= searched.length >> 4
      return listHas(searched, value)
    }
    if (searched instanceof Failure) return searched
    const isKey = typeof value === 'number' || mapKey(value) !== undefined
    return isKey && isMap(searched) ? hasKey(searched, value) : noOverload('in', value, searched)
  }
}

function listHas(list: readonly unknown[], value: unknown): boolean {
  if (typeof value === 'string') return list.includes(value)
  for (const item of list) if (equals(load(item), value)) return true
  return false
}

type StringMethod = { text: Evaluate; part: Evaluate; partNode: Node }

function compileStringMethod(
  name: string,
  { text, part, partNode }: StringMethod,
  scope: Scope,
): Evaluate | undefined {
  if (name === 'matches') return compileMatches(text, { part, partNode }, scope)
  const test = stringTests[name]
  if (test === undefined) return undefined
  return (variables) => {
    const subject = text(variables)
    const searched = part(variables)
    if (typeof subject === 'string' && typeof searched === 'string') return test(subject, searched)
    return noOverload(name, subject, searched)
  }
}

const stringTests: Partial<Record<string, (text: string, part: string) => boolean>> = {
  contains: (text, part) => text.includes(part),
  startsWith: (text, part) => text.startsWith(part),
  endsWith: (text, part) => text.endsWith(part),
}

function compileMatches(
  text: Evaluate,
  { part, partNode }: Omit<StringMethod, 'text'>,
  { patterns }: Scope,
): Evaluate {
  const fixed = partNode.kind === 'constant' ? partNode.value : undefined
  const pattern = typeof fixed === 'string' ? compilePattern(fixed) : undefined
  if (pattern?.ok) {
    return (variables) => {
      const subject = text(variables)
      return typeof subject === 'string' ? pattern.test(subject) : noOverload('matches', subject, fixed)
    }
  }
  return (variables) => {
    const subject = text(variables)
    const source = part(variables)
    if (typeof subject !== 'string' || typeof source !== 'string')
      return noOverload('matches', subject, source)
    return patterns(source)?.test(subject) ?? new Failure('invalid regular expression')
  }
}
