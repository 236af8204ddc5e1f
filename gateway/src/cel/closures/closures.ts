import type { createPatternCache } from '../../lib/pattern.ts'
import { countNodes, type Node } from '../ast.ts'
import { Failure } from '../failure.ts'
import { compileLoop, type Local, type StepBudget } from './macros.ts'
import { compileBinary, compileConditional, compileStringTest, compileUnary } from './operators.ts'
import { sharedMethods } from './shared-methods.ts'
import { type Evaluate, hasKey, isMap, load, mapKey, property, typeName } from './values.ts'

/** State that the closures of one expression share. */
export type Scope = {
  /** Variables of the evaluation; any other name is a type. */
  readonly roots: ReadonlySet<string>
  /** Variables of the enclosing macros, innermost last. */
  readonly locals: readonly Local[]
  readonly budget: StepBudget
  readonly patterns: ReturnType<typeof createPatternCache>
}

/** Compiles an expression to closures; undefined if a part of it requires the library. */
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

/**
 * Whether the expression is a path below a variable: `has()` of an unset variable is then false, not an
 * error.
 */
function isPath(node: Node): boolean {
  if (node.kind === 'select') return isPath(node.operand)
  if (node.kind !== 'call') return node.kind === 'identifier'
  const [first, second, third] = node.args
  if (node.name === '_[_]') return first !== undefined && isPath(first)
  return (
    node.name === '_?_:_' && second !== undefined && third !== undefined && isPath(second) && isPath(third)
  )
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
      if (map.has(key)) return new Failure('duplicate map key')
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

/** Work units of a node per loop iteration. */
const costOfNode = 20

function compileMacro(node: Extract<Node, { kind: 'macro' }>, scope: Scope): Evaluate | undefined {
  const local: Local = { name: node.variable, value: undefined }
  const inner = { ...scope, locals: [...scope.locals, local] }
  const range = compileClosures(node.range, scope)
  const test = node.test && compileClosures(node.test, inner)
  const step = node.step && compileClosures(node.step, inner)
  // One part without a closure requires the library for the whole expression.
  if (range === undefined || (node.test && !test) || (node.step && !step)) return undefined
  const nodes = [node.test, node.step].reduce((sum, part) => sum + (part ? countNodes(part) : 0), 1)
  const cost = costOfNode * nodes
  return compileLoop(node.macro, { range, test, step, local, budget: scope.budget, cost })
}

export type CallNode = Extract<Node, { kind: 'call' }>

function compileCall(node: CallNode, scope: Scope): Evaluate | undefined {
  if (isDefaultCall(node)) return compileDefaultCall(node, scope)
  const textMethod = compileTextMethod(node, scope)
  if (textMethod !== undefined) return textMethod
  const operands = node.target === undefined ? node.args : [node.target, ...node.args]
  const [a, b, c] = compileAll(operands, scope) ?? []
  const isMethod = node.target !== undefined
  if (a === undefined) return undefined
  if (b === undefined) return isMethod && node.name !== 'size' ? undefined : compileUnary(node.name, a)
  if (c !== undefined) return node.name === '_?_:_' ? compileConditional(a, b, c) : undefined
  const right = operands[1]
  const context = { ...scope, constant: right?.kind === 'constant' ? right.value : undefined }
  return isMethod ? compileStringTest(node.name, [a, b], context) : compileBinary(node.name, [a, b], context)
}

/**
 * Whether a node is `default(a, b)`, the first value that does not fail, or `coalesce(a, b, …)`, the first
 * that neither fails nor is null. Both are functions of the reference product; functions of the library do
 * not receive failures.
 */
export function isDefaultCall(node: Node): boolean {
  return (
    node.kind === 'call' && node.target === undefined && (node.name === 'default' || node.name === 'coalesce')
  )
}

function compileDefaultCall({ name, args }: CallNode, scope: Scope): Evaluate | undefined {
  const compiled = compileAll(args, scope)
  if (compiled === undefined) return undefined
  const skipsNull = name === 'coalesce'
  return (variables) => {
    let value: unknown = null
    for (const evaluate of compiled) {
      value = evaluate(variables)
      if (!(value instanceof Failure) && !(skipsNull && value === null)) return value
    }
    return value
  }
}

function compileTextMethod({ name, target, args }: CallNode, scope: Scope): Evaluate | undefined {
  const method = sharedMethods.find((entry) => entry.name === name && entry.args.length === args.length)
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
