import { nearest } from '../lib/nearest.ts'
import { compilePattern } from '../lib/pattern.ts'
import { childrenOf, type Node } from './ast.ts'
import { type CallNode, gatewayFunctionOf, isDefaultCall, qualifiedName } from './closures/closures.ts'
import { gatewayFunctions } from './functions/functions.ts'
import { type FunctionForm, libraryFunctions } from './library.ts'
import { type Members, memberOf, membersOf } from './members.ts'

/** Invalid name in an expression, with its position. */
export type NameIssue = { readonly message: string; readonly offset: number }

/** Function or macro that expressions may call, with its forms. */
export type CallableName = { readonly name: string; readonly forms: readonly string[] }

/** Functions, methods and macros of expressions, without operators, in the order of their names. */
export function callableNames(): CallableName[] {
  const found = new Map([...macroUsage, ...ownFunctions].map(([name, usage]) => [name, new Set([usage])]))
  for (const [name, forms] of functions) {
    if (!/^[a-zA-Z]/.test(name)) continue
    const usages = found.get(name) ?? new Set()
    found.set(name, usages)
    for (const { isMethod, arity, isVariadic } of forms) {
      const names = Array.from({ length: arity }, (_, index) => `a${index + 1}`)
      const values = [...names, ...(isVariadic === true ? ['…'] : [])].join(', ')
      usages.add(isMethod ? `x.${name}(${values})` : `${name}(${values})`)
    }
  }
  return [...found]
    .map(([name, forms]) => ({ name, forms: [...forms] }))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
}

type Form = FunctionForm & { readonly isVariadic?: boolean | undefined }

const functions: ReadonlyMap<string, readonly Form[]> = Map.groupBy<string, Form>(
  [
    ...libraryFunctions(),
    ...gatewayFunctions.map(({ name, isMethod, arity, isVariadic }) => ({
      name,
      isMethod,
      arity: isMethod ? arity - 1 : arity,
      isVariadic,
    })),
    { name: 'variables', isMethod: false, arity: 0 },
    { name: 'regexReplace', isMethod: true, arity: 2 },
  ],
  (form) => form.name,
)

/** Namespaces of functions: `base64`. */
const namespaces: ReadonlySet<string> = new Set(
  [...functions.keys()].filter((name) => name.includes('.')).map((name) => name.slice(0, name.indexOf('.'))),
)

/** Type names, which expressions use as values: `type(x) == int`. */
const typeNames: ReadonlySet<string> = new Set([
  ...['bool', 'bytes', 'double', 'int', 'list', 'map', 'null_type', 'string', 'type', 'uint'],
  'google',
])

/**
 * Checks the names of an expression: variables outside `known`, members outside the schema of a variable,
 * undefined functions, and invalid patterns. A dotted name in `known` is an additional member of its
 * variable. Returns the variables that the expression references.
 */
export function checkNames(
  node: Node,
  known: ReadonlySet<string>,
): { roots: ReadonlySet<string>; issue: NameIssue | undefined } {
  const roots = new Set<string>()
  const issue = visit(node, { known, roots, locals: [] })
  return { roots, issue }
}

type Names = { known: ReadonlySet<string>; roots: Set<string>; locals: readonly string[] }

/** Finds the first call or macro of an expression that the library does not have. */
export function findGatewayCall(node: Node): { node: Node; name: string } | undefined {
  if (node.kind === 'macro' && gatewayMacros.has(node.macro)) return { node, name: `${node.macro}()` }
  if (node.kind === 'apply') return { node, name: `${node.name}()` }
  if (node.kind === 'call') {
    const isGateway =
      isDefaultCall(node) ||
      node.name === 'variables' ||
      node.name === 'regexReplace' ||
      gatewayFunctionOf(node, () => false) !== undefined
    if (isGateway) return { node, name: `${qualifiedName(node, () => node.target === undefined)}()` }
  }
  for (const child of childrenOf(node)) {
    const found = findGatewayCall(child)
    if (found !== undefined) return found
  }
  return undefined
}

const gatewayMacros: ReadonlySet<string> = new Set(['filterKeys', 'mapValues', 'with'])

function visit(node: Node, names: Names): NameIssue | undefined {
  switch (node.kind) {
    case 'constant':
      return undefined
    case 'identifier':
      return checkRoot(node, names)
    case 'select':
    case 'has':
      return visit(node.operand, names) ?? checkMember(node.operand, node.field, names)
    case 'call':
      return checkCall(node, names) ?? checkIndex(node, names)
    case 'list':
      return firstIssue(node.items, names)
    case 'map':
      return firstIssue(
        node.entries.flatMap(({ key, value }) => [key, value]),
        names,
      )
    case 'foreign':
      return firstIssue(node.parts, names)
    case 'apply':
      return firstIssue(node.args, names) ?? checkApply(node, names)
    case 'macro': {
      const inner = { ...names, locals: [...names.locals, node.variable] }
      const parts = [node.test, node.step].filter((part) => part !== undefined)
      return visit(node.range, names) ?? firstIssue(parts, inner)
    }
    default:
      return firstIssue(childrenOf(node), names)
  }
}

/** Checks the body of a custom function with the variables of the expression that calls it. */
function checkApply(
  { name, parameters, body, offset }: Extract<Node, { kind: 'apply' }>,
  names: Names,
): NameIssue | undefined {
  const issue = visit(body, { ...names, locals: parameters })
  return issue && { message: `in function ${name}: ${issue.message}`, offset }
}

function firstIssue(nodes: readonly Node[], names: Names): NameIssue | undefined {
  for (const node of nodes) {
    const issue = visit(node, names)
    if (issue !== undefined) return issue
  }
  return undefined
}

function checkRoot(
  { name, offset }: Extract<Node, { kind: 'identifier' }>,
  { known, roots, locals }: Names,
): NameIssue | undefined {
  if (locals.includes(name)) return undefined
  if (known.has(name)) {
    roots.add(name)
    return undefined
  }
  if (typeNames.has(name)) return undefined
  const candidates = [...known].filter((candidate) => !candidate.includes('.'))
  const nearestName = nearest(name, candidates)
  const hint =
    nearestName === undefined ? `known here: ${candidates.join(', ')}` : `did you mean "${nearestName}"?`
  return { message: `unknown variable "${name}"; ${hint}`, offset }
}

function checkMember(operand: Node, field: string, names: Names): NameIssue | undefined {
  const place = memberScopeOf(operand, names)
  if (place === undefined) return undefined
  const member = memberOf(place.members, place.path, field)
  return member.kind === 'missing' ? { message: member.message, offset: operand.offset } : undefined
}

/** `request["path"]`. */
function checkIndex({ name, args }: CallNode, names: Names): NameIssue | undefined {
  const [operand, index] = args
  if (name !== '_[_]' || operand === undefined || index?.kind !== 'constant') return undefined
  return typeof index.value === 'string' ? checkMember(operand, index.value, names) : undefined
}

type MemberScope = { members: Members; path: string }

/**
 * Resolves an expression of constant names below a variable to its members; undefined for any other
 * expression.
 */
function memberScopeOf(node: Node, names: Names): MemberScope | undefined {
  if (node.kind === 'identifier') {
    if (names.locals.includes(node.name) || !names.known.has(node.name)) return undefined
    return { members: membersOf(node.name, names.known), path: node.name }
  }
  if (node.kind === 'select') return innerScope(memberScopeOf(node.operand, names), node.field)
  if (node.kind !== 'call' || node.name !== '_[_]') return undefined
  const [operand, index] = node.args
  if (operand === undefined || index?.kind !== 'constant' || typeof index.value !== 'string') return undefined
  return innerScope(memberScopeOf(operand, names), index.value)
}

function innerScope(place: MemberScope | undefined, field: string): MemberScope | undefined {
  if (place === undefined) return undefined
  const member = memberOf(place.members, place.path, field)
  return member.kind === 'missing' ? undefined : { members: member.members, path: `${place.path}.${field}` }
}

function checkCall(node: CallNode, names: Names): NameIssue | undefined {
  const isOperator = !/^[a-zA-Z]/.test(node.name)
  const isVariable = (name: string) => names.locals.includes(name) || names.known.has(name)
  const qualified = qualifiedName(node, isVariable)
  const isQualified =
    qualified !== node.name && (functions.has(qualified) || namespaces.has(qualified.split('.', 1)[0] ?? ''))
  const target = node.target === undefined || isQualified ? [] : [node.target]
  if (node.name === 'variables' && node.target === undefined)
    for (const name of names.known) if (!name.includes('.')) names.roots.add(name)
  const call = { name: isQualified ? qualified : node.name, isMethod: target.length > 0 }
  const issue = isOperator ? undefined : checkForm(node, call)
  return issue ?? firstIssue([...target, ...node.args], names)
}

function checkForm(
  node: CallNode,
  { name, isMethod }: { name: string; isMethod: boolean },
): NameIssue | undefined {
  const { args, offset } = node
  if (isDefaultCall(node)) {
    if (args.length === 2 || (name === 'coalesce' && args.length > 0)) return undefined
    return {
      message: `${name}() takes ${name === 'default' ? '2' : '1 or more'} arguments, not ${args.length}`,
      offset,
    }
  }
  const forms = functions.get(name)
  if (forms === undefined) return { message: unknownFunction(name), offset }
  const fitting = forms.filter((form) => form.isMethod === isMethod)
  const call = isMethod ? `.${name}()` : `${name}()`
  if (fitting.length === 0) {
    return {
      message: `${name} is called as ${isMethod ? `${name}(x)` : `x.${name}(…)`}, not as ${call}`,
      offset,
    }
  }
  if (!fitting.some((form) => accepts(form, args.length))) {
    return { message: `${call} takes ${arities(fitting)}, not ${args.length}`, offset }
  }
  if (name === 'matches') return checkPattern(isMethod ? args[0] : args[1])
  return name === 'regexReplace' ? checkPattern(args[0]) : undefined
}

function accepts({ arity, isVariadic }: Form, count: number): boolean {
  return count === arity || (isVariadic === true && count > arity)
}

function arities(forms: readonly Form[]): string {
  const variadic = forms.find(({ isVariadic }) => isVariadic === true)
  if (variadic !== undefined) return `${variadic.arity} or more arguments`
  const counts = [...new Set(forms.map((form) => form.arity))]
  return `${counts.join(' or ')} ${counts.at(-1) === 1 ? 'argument' : 'arguments'}`
}

function checkPattern(pattern: Node | undefined): NameIssue | undefined {
  if (pattern?.kind !== 'constant' || typeof pattern.value !== 'string') return undefined
  const compiled = compilePattern(pattern.value)
  return compiled.ok ? undefined : { message: compiled.message, offset: pattern.offset }
}

function unknownFunction(name: string): string {
  const usage = macroUsage.get(name)
  if (usage !== undefined) return `${name} is used as ${usage}`
  const nearestName = nearest(name, functions.keys())
  return nearestName === undefined
    ? `unknown function "${name}"`
    : `unknown function "${name}"; did you mean "${nearestName}"?`
}

/** Functions that the library does not have. */
const ownFunctions: ReadonlyMap<string, string> = new Map([
  ['default', 'default(x, fallback)'],
  ['coalesce', 'coalesce(x, …)'],
])

const macroUsage: ReadonlyMap<string, string> = new Map([
  ['has', 'has(a.b)'],
  ['all', 'list.all(x, test)'],
  ['exists', 'list.exists(x, test)'],
  ['exists_one', 'list.exists_one(x, test)'],
  ['filter', 'list.filter(x, test)'],
  ['map', 'list.map(x, value) or list.map(x, test, value)'],
  ['filterKeys', 'map.filterKeys(key, test)'],
  ['mapValues', 'map.mapValues(value, result)'],
  ['with', 'x.with(name, result)'],
])
