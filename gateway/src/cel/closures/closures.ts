import type { createPatternCache } from '../../lib/pattern.ts'
import { countNodes, type Node } from '../ast.ts'
import { Failure } from '../failure.ts'
import type { CelFunction } from '../functions/function.ts'
import { findFunction } from '../functions/functions.ts'
import { spendWork } from '../work-budget.ts'
import { callLibrary, typeValue } from './library-value.ts'
import { compileLoop, type Local, type StepBudget } from './macros.ts'
import { compileBinary, compileConditional, compileStringTest, compileUnary } from './operators.ts'
import { compileRegexReplace } from './regex-replace.ts'
import type { Evaluate, Variables } from './representation.ts'
import { sharedMethods } from './shared-methods.ts'
import { hasKey, isMap, load, mapKey, property, typeName } from './values.ts'

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
    case 'apply':
      return compileApply(node, scope)
    case 'foreign':
      return undefined
  }
}

function compileIdentifier(name: string, { roots, locals }: Scope): Evaluate | undefined {
  const local = locals.findLast((entry) => entry.name === name)
  if (local !== undefined) return () => local.value
  if (!roots.has(name)) {
    const type = typeValue(name)
    return type && (() => type)
  }
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

/** Call of a custom function: its body sees its parameters and the variables, not those of macros around. */
function compileApply(
  { parameters, args, body }: Extract<Node, { kind: 'apply' }>,
  scope: Scope,
): Evaluate | undefined {
  const locals = parameters.map((name): Local => ({ name, value: undefined }))
  const operands = compileAll(args, scope)
  const run = compileClosures(body, { ...scope, locals })
  if (operands === undefined || run === undefined) return undefined
  const cost = costOfNode * countNodes(body)
  return (variables) => {
    const values = valuesOf(operands, variables)
    if (values instanceof Failure) return values
    spendWork(cost)
    for (const [index, local] of locals.entries()) local.value = values[index]
    try {
      return run(variables)
    } finally {
      for (const local of locals) local.value = undefined
    }
  }
}

export type CallNode = Extract<Node, { kind: 'call' }>

function compileCall(node: CallNode, scope: Scope): Evaluate | undefined {
  if (isDefaultCall(node)) return compileDefaultCall(node, scope)
  return (
    compileGatewayCall(node, scope) ??
    compileTextMethod(node, scope) ??
    compileOperator(node, scope) ??
    compileLibraryCall(node, scope)
  )
}

function compileOperator(node: CallNode, scope: Scope): Evaluate | undefined {
  const operands = node.target === undefined ? node.args : [node.target, ...node.args]
  const [a, b, c] = compileAll(operands, scope) ?? []
  const isMethod = node.target !== undefined
  if (a === undefined) return undefined
  if (b === undefined) return isMethod && node.name !== 'size' ? undefined : compileUnary(node.name, a)
  if (c !== undefined) return node.name === '_?_:_' ? compileConditional(a, b, c) : undefined
  const right = operands[1]
  const context = { ...scope, constant: right?.kind === 'constant' ? right.value : undefined }
  return isMethod || node.name === 'matches'
    ? compileStringTest(node.name, [a, b], context)
    : compileBinary(node.name, [a, b], context)
}

/** The name of a function with its namespace: `base64.encode`. Variables take precedence. */
export function qualifiedName({ target, name }: CallNode, isVariable: (name: string) => boolean): string {
  return target?.kind === 'identifier' && !isVariable(target.name) ? `${target.name}.${name}` : name
}

/** Finds the function of the gateway that a call names. */
export function gatewayFunctionOf(
  node: CallNode,
  isVariable: (name: string) => boolean,
): { found: CelFunction; operands: readonly Node[] } | undefined {
  const { target, args, name } = node
  const qualified = findFunction(qualifiedName(node, isVariable), false, args.length)
  if (qualified !== undefined) return { found: qualified, operands: args }
  if (target === undefined) return undefined
  const method = findFunction(name, true, args.length + 1)
  return method && { found: method, operands: [target, ...args] }
}

function compileGatewayCall(node: CallNode, scope: Scope): Evaluate | undefined {
  const isVariable = (name: string) => scope.roots.has(name) || isLocal(name, scope)
  if (node.name === 'variables' && node.target === undefined) return compileVariables(scope)
  if (node.name === 'regexReplace') return compileReplace(node, scope)
  const call = gatewayFunctionOf(node, isVariable)
  const operands = call && compileAll(call.operands, scope)
  if (call === undefined || operands === undefined) return undefined
  const { apply } = call.found
  const [first, second] = operands
  if (first !== undefined && operands.length === 1) {
    return (variables) => {
      const value = first(variables)
      return value instanceof Failure ? value : apply(value)
    }
  }
  if (first !== undefined && second !== undefined && operands.length === 2) {
    return (variables) => {
      const a = first(variables)
      if (a instanceof Failure) return a
      const b = second(variables)
      return b instanceof Failure ? b : apply(a, b)
    }
  }
  return (variables) => {
    const values = valuesOf(operands, variables)
    return values instanceof Failure ? values : apply(...values)
  }
}

function isLocal(name: string, { locals }: Scope): boolean {
  return locals.some((local) => local.name === name)
}

function valuesOf(operands: readonly Evaluate[], variables: Variables): unknown[] | Failure {
  const values: unknown[] = []
  for (const operand of operands) {
    const value = operand(variables)
    if (value instanceof Failure) return value
    values.push(value)
  }
  return values
}

/** `variables()`: a map of the variables that have a value. */
function compileVariables({ roots }: Scope): Evaluate {
  const names = [...roots]
  return (variables) => {
    const present = names.filter((name) => Object.hasOwn(variables, name) && variables[name] !== undefined)
    return new Map(present.map((name) => [name, load(variables[name])]))
  }
}

/** `text.regexReplace(pattern, replacement)`. */
function compileReplace({ target, args }: CallNode, scope: Scope): Evaluate | undefined {
  const [pattern, replacement] = args
  if (target === undefined || pattern === undefined || replacement === undefined) return undefined
  const operands = compileAll([target, pattern, replacement], scope)
  const [text, source, fresh] = operands ?? []
  if (text === undefined || source === undefined || fresh === undefined) return undefined
  const constant = pattern.kind === 'constant' ? pattern.value : undefined
  return compileRegexReplace([text, source, fresh], { ...scope, constant })
}

/** Calls of functions that only the library implements: of times, and on its own types. */
function compileLibraryCall({ name, target, args }: CallNode, scope: Scope): Evaluate | undefined {
  const isMethod = target !== undefined
  const operands = compileAll(isMethod ? [target, ...args] : args, scope)
  if (operands === undefined || operands.length === 0 || !/^[a-zA-Z]\w*$/.test(name)) return undefined
  return (variables) => {
    const values = valuesOf(operands, variables)
    return values instanceof Failure ? values : callLibrary({ name, isMethod }, values)
  }
}

/**
 * Whether a node is `default(a, b)` or `coalesce(a, b, …)`: the first value that neither fails nor is null.
 * Both are functions of the reference product; functions of the library do
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
    let hasNull = false
    for (const evaluate of compiled) {
      value = evaluate(variables)
      if (!(value instanceof Failure) && value !== null) return value
      hasNull ||= value === null
    }
    // `default` returns its last value; `coalesce` prefers null to a failure.
    return skipsNull && hasNull ? null : value
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
