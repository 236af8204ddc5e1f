import { compilePattern } from '../lib/pattern.ts'
import { type CallNode, isFallback } from './closures.ts'
import { type FunctionForm, libraryFunctions } from './library.ts'
import type { Node } from './tree.ts'

/** What is wrong with a name in an expression, and where. */
export type NameIssue = { readonly message: string; readonly offset: number }

const functions = Map.groupBy(libraryFunctions(), (form) => form.name)

/** Names that stand for types: `type(x) == int`. */
const typeNames: ReadonlySet<string> = new Set([
  ...['bool', 'bytes', 'double', 'int', 'list', 'map', 'null_type', 'string', 'type', 'uint'],
  'google',
])

/**
 * Finds names that cannot exist: roots that are not in `known`, functions nobody defined, patterns that do not compile.
 * Answers the roots the expression names.
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

/** The first `default()` or `coalesce()` of an expression, which only the closures evaluate. */
export function findFallback(node: Node): Node | undefined {
  if (isFallback(node)) return node
  return partsOf(node)
    .map(findFallback)
    .find((found) => found !== undefined)
}

/** The parts of an expression one level down. */
export function partsOf(node: Node): readonly Node[] {
  switch (node.kind) {
    case 'constant':
    case 'identifier':
      return []
    case 'select':
    case 'has':
      return [node.operand]
    case 'call':
      return node.target === undefined ? node.args : [node.target, ...node.args]
    case 'list':
      return node.items
    case 'map':
      return node.entries.flatMap(({ key, value }) => [key, value])
    case 'macro':
      return [node.range, node.test, node.step].filter((part) => part !== undefined)
    case 'foreign':
      return node.parts
  }
}

function visit(node: Node, names: Names): NameIssue | undefined {
  switch (node.kind) {
    case 'constant':
      return undefined
    case 'identifier':
      return checkRoot(node, names)
    case 'select':
    case 'has':
      return visit(node.operand, names)
    case 'call':
      return checkCall(node, names)
    case 'list':
      return firstIssue(node.items, names)
    case 'map':
      return firstIssue(
        node.entries.flatMap(({ key, value }) => [key, value]),
        names,
      )
    case 'foreign':
      return firstIssue(node.parts, names)
    case 'macro': {
      const inner = { ...names, locals: [...names.locals, node.variable] }
      const parts = [node.test, node.step].filter((part) => part !== undefined)
      return visit(node.range, names) ?? firstIssue(parts, inner)
    }
    default:
      return firstIssue(partsOf(node), names)
  }
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
  const nearest = nearestName(name, known)
  const hint = nearest === undefined ? `known here: ${[...known].join(', ')}` : `did you mean "${nearest}"?`
  return { message: `unknown variable "${name}"; ${hint}`, offset }
}

function checkCall(node: CallNode, names: Names): NameIssue | undefined {
  const isOperator = !/^[a-zA-Z]/.test(node.name)
  const isQualified = node.target !== undefined && functions.has(`${pathOf(node.target)}.${node.name}`)
  const target = node.target === undefined || isQualified ? [] : [node.target]
  const issue = isOperator || isQualified ? undefined : checkForm(node)
  return issue ?? firstIssue([...target, ...node.args], names)
}

function checkForm(node: CallNode): NameIssue | undefined {
  const { name, target, args, offset } = node
  if (isFallback(node)) {
    if (args.length === 2 || (name === 'coalesce' && args.length > 0)) return undefined
    return {
      message: `${name}() takes ${name === 'default' ? '2' : '1 or more'} arguments, not ${args.length}`,
      offset,
    }
  }
  const forms = functions.get(name)
  if (forms === undefined) return { message: unknownFunction(name), offset }
  const isMethod = target !== undefined
  const fitting = forms.filter((form) => form.isMethod === isMethod)
  const call = isMethod ? `.${name}()` : `${name}()`
  if (fitting.length === 0) {
    return {
      message: `${name} is called as ${isMethod ? `${name}(x)` : `x.${name}(…)`}, not as ${call}`,
      offset,
    }
  }
  if (!fitting.some((form) => form.arity === args.length)) {
    return { message: `${call} takes ${arities(fitting)}, not ${args.length}`, offset }
  }
  return name === 'matches' ? checkPattern(args[0]) : undefined
}

function arities(forms: readonly FunctionForm[]): string {
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
  const nearest = nearestName(name, functions.keys())
  return nearest === undefined
    ? `unknown function "${name}"`
    : `unknown function "${name}"; did you mean "${nearest}"?`
}

const macroUsage: ReadonlyMap<string, string> = new Map([
  ['has', 'has(a.b)'],
  ['all', 'list.all(x, test)'],
  ['exists', 'list.exists(x, test)'],
  ['exists_one', 'list.exists_one(x, test)'],
  ['filter', 'list.filter(x, test)'],
  ['map', 'list.map(x, value) or list.map(x, test, value)'],
])

function pathOf(node: Node): string {
  if (node.kind === 'identifier') return node.name
  return node.kind === 'select' ? `${pathOf(node.operand)}.${node.field}` : ''
}

/** The closest of some names, when it is close enough to be meant. */
function nearestName(name: string, candidates: Iterable<string>): string | undefined {
  let nearest: string | undefined
  let best = Math.max(1, Math.floor(name.length / 3)) + 1
  for (const candidate of candidates) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (distance >= best) continue
    best = distance
    nearest = candidate
  }
  return nearest
}

/** Levenshtein distance. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= to.length; column += 1) {
      const replaced = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1)
      current.push(Math.min((previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, replaced))
    }
    previous = current
  }
  return previous[to.length] ?? 0
}
