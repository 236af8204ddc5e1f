import { parse } from '@bufbuild/cel'
import { uintValue } from './closures/library-value.ts'
import { doubleOf, intOf } from './closures/representation.ts'
import { type CustomFunction, splitDefinitions } from './custom-functions.ts'

export type Macro = 'all' | 'exists' | 'exists_one' | 'filter' | 'map' | 'filterKeys' | 'mapValues' | 'with'

/** Syntax tree of an expression. `offset` counts UTF-16 units from the start of the source. */
export type Node = { readonly offset: number } & (
  | { readonly kind: 'constant'; readonly value: unknown }
  | { readonly kind: 'identifier'; readonly name: string }
  | { readonly kind: 'select'; readonly operand: Node; readonly field: string }
  | { readonly kind: 'has'; readonly operand: Node; readonly field: string }
  | { readonly kind: 'call'; readonly name: string; readonly target?: Node; readonly args: readonly Node[] }
  | { readonly kind: 'list'; readonly items: readonly Node[] }
  | { readonly kind: 'map'; readonly entries: readonly { key: Node; value: Node }[] }
  | {
      readonly kind: 'macro'
      readonly macro: Macro
      readonly range: Node
      readonly variable: string
      /** Predicate of quantifiers, `filter`, `filterKeys`, and of `map` with three arguments. */
      readonly test: Node | undefined
      /** Result of `map`, `mapValues` and `with`. */
      readonly step: Node | undefined
    }
  /** Call of a custom function. The first argument of a method is its target, the parameter `this`. */
  | {
      readonly kind: 'apply'
      readonly name: string
      readonly parameters: readonly string[]
      readonly args: readonly Node[]
      readonly body: Node
    }
  /** Syntax that only the library evaluates: messages. */
  | { readonly kind: 'foreign'; readonly parts: readonly Node[] }
)

/** Syntax tree of the library, for expressions that the closures do not support. */
export type LibraryTree = ReturnType<typeof parse>
type Expr = NonNullable<LibraryTree['expr']>
type Kind<C extends Expr['exprKind']['case']> = Extract<Expr['exprKind'], { case: C }>
type Call = Kind<'callExpr'>['value']
type Comprehension = Kind<'comprehensionExpr'>['value']

export type Parsed =
  | { kind: 'tree'; node: Node; library: LibraryTree }
  | { kind: 'issue'; message: string; offset: number }

const maxSourceLength = 16 * 1024
const maxDepth = 100

/**
 * Parses an expression with the custom functions behind it. Length and depth are limited, so that evaluation
 * cannot exhaust the stack.
 */
export function parseCel(source: string): Parsed {
  const { main, functions } = splitDefinitions(source)
  if (main.length > maxSourceLength) {
    return { kind: 'issue', message: `expression is longer than ${maxSourceLength} characters`, offset: 0 }
  }
  try {
    const library = parse(main)
    if (library.expr === undefined) return { kind: 'issue', message: 'expression is empty', offset: 0 }
    const custom = functions.length === 0 ? undefined : createCustomReader(functions)
    return { kind: 'tree', node: createReader(library, custom)(library.expr, 0), library }
  } catch (error) {
    return { kind: 'issue', ...syntaxIssue(error) }
  }
}

/** Error of a call, with the position of the call. */
class CallIssue extends Error {
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}

type Height = { depth: number; nodes: number }
type ReadBody = { readonly node: Node; readonly height: Height }

/** Reads calls of custom functions; undefined for another function. */
type CustomReader = (
  call: Call,
  offset: number,
  operands: readonly Node[],
) => { node: Node; height: Height } | undefined

/** Maximum size of an expression with the bodies of its functions in place. */
const maxNodes = 10_000

/** Reads each body once. Bodies stand in place of their calls, so recursion is an error. */
function createCustomReader(functions: readonly CustomFunction[]): CustomReader {
  const bodies = new Map<CustomFunction, ReadBody | 'in progress'>()

  const readBody = (found: CustomFunction, offset: number): ReadBody => {
    const known = bodies.get(found)
    if (known === 'in progress') throw new CallIssue(`function ${found.name} must not call itself`, offset)
    if (known !== undefined) return known
    bodies.set(found, 'in progress')
    const library = parse(found.body)
    const height: Height = { depth: 0, nodes: 0 }
    const read = { node: createReader(library, reader, height)(library.expr, 0), height }
    bodies.set(found, read)
    return read
  }

  const reader: CustomReader = (call, offset, operands) => {
    const isMethod = call.target !== undefined
    const found = functions.find((each) => each.name === call.function && each.isMethod === isMethod)
    if (found === undefined) return undefined
    const { name, parameters, rest } = found
    const given = operands.slice(isMethod ? 1 : 0)
    if (given.length < parameters.length || (rest === undefined && given.length > parameters.length)) {
      const least = rest === undefined ? '' : ' or more'
      throw new CallIssue(
        `${name}() takes ${parameters.length}${least} arguments, not ${given.length}`,
        offset,
      )
    }
    const { node: body, height } = readBody(found, offset)
    const others: Node[] =
      rest === undefined ? [] : [{ kind: 'list', items: given.slice(parameters.length), offset }]
    const args = [...operands.slice(0, isMethod ? 1 : 0), ...given.slice(0, parameters.length), ...others]
    const names = [...(isMethod ? ['this'] : []), ...parameters, ...(rest === undefined ? [] : [rest])]
    return { node: { kind: 'apply', name, parameters: names, args, body, offset }, height }
  }
  return reader
}

class TooDeep extends Error {}

function syntaxIssue(error: unknown): { message: string; offset: number } {
  if (error instanceof TooDeep || error instanceof RangeError) {
    return { message: `expression is nested more than ${maxDepth} levels deep`, offset: 0 }
  }
  if (error instanceof CallIssue) return { message: error.message, offset: error.offset }
  if (!(error instanceof Error)) return { message: 'syntax error', offset: 0 }
  const message = error.message.replace(/^<input>:\d+:\d+: /, '')
  return { message: `syntax error: ${message}`, offset: offsetOf(error) }
}

function offsetOf(error: Error): number {
  if (!('location' in error)) return 0
  const location: unknown = error.location
  if (typeof location !== 'object' || location === null || !('start' in location)) return 0
  const start: unknown = location.start
  if (typeof start !== 'object' || start === null || !('offset' in start)) return 0
  return typeof start.offset === 'number' ? start.offset : 0
}

function createReader(
  { sourceInfo }: LibraryTree,
  custom?: CustomReader,
  height: Height = { depth: 0, nodes: 0 },
) {
  const positions = sourceInfo?.positions ?? {}
  const macros = sourceInfo?.macroCalls ?? {}

  function read(expr: Expr | undefined, depth: number): Node {
    if (expr === undefined) throw new Error('incomplete expression')
    if (depth > maxDepth) throw new TooDeep()
    height.depth = Math.max(height.depth, depth)
    height.nodes += 1
    const offset = positions[String(expr.id)] ?? 0
    const below = (part: Expr | undefined) => read(part, depth + 1)
    const kind = expr.exprKind
    switch (kind.case) {
      case 'constExpr':
        return readConstant(kind, offset)
      case 'identExpr':
        return { kind: 'identifier', name: kind.value.name, offset }
      case 'selectExpr': {
        const { operand, field, testOnly } = kind.value
        const target = below(operand)
        // In the reference product `llm.cost` is a map; here it is the total.
        if (field === 'total' && isField(target, 'llm', 'cost')) return target
        return { kind: testOnly ? 'has' : 'select', operand: target, field: keyIn(target, field), offset }
      }
      case 'callExpr':
        return readCustomCall(kind.value, { offset, depth }) ?? readCall(kind.value, offset, below)
      case 'listExpr':
        return { kind: 'list', items: kind.value.elements.map(below), offset }
      case 'structExpr':
        return readStruct(kind, offset, below)
      case 'comprehensionExpr':
        return readMacro(macroName(macros[String(expr.id)]), kind.value, { offset, below })
      default:
        throw new Error('incomplete expression')
    }
  }

  function readCustomCall(
    call: Call,
    { offset, depth }: { offset: number; depth: number },
  ): Node | undefined {
    if (custom === undefined || !/^\w+$/.test(call.function)) return undefined
    const parts = call.target === undefined ? call.args : [call.target, ...call.args]
    const found = custom(
      call,
      offset,
      parts.map((part) => read(part, depth + 1)),
    )
    if (found === undefined) return undefined
    height.depth = Math.max(height.depth, depth + 1 + found.height.depth)
    height.nodes += found.height.nodes
    if (height.depth > maxDepth) throw new TooDeep()
    if (height.nodes > maxNodes)
      throw new CallIssue(`expression with its functions is larger than ${maxNodes} parts`, offset)
    return found.node
  }

  return read
}

function readConstant({ value }: Kind<'constExpr'>, offset: number): Node {
  const constant = value.constantKind
  switch (constant.case) {
    case 'nullValue':
      return { kind: 'constant', value: null, offset }
    case 'boolValue':
    case 'stringValue':
      return { kind: 'constant', value: constant.value, offset }
    case 'int64Value':
      return { kind: 'constant', value: intOf(constant.value), offset }
    case 'doubleValue':
      return { kind: 'constant', value: doubleOf(constant.value), offset }
    case 'bytesValue':
      return { kind: 'constant', value: constant.value, offset }
    case 'uint64Value':
      return { kind: 'constant', value: uintValue(constant.value), offset }
    default:
      return { kind: 'foreign', parts: [], offset }
  }
}

function readCall(call: Call, offset: number, below: (part: Expr | undefined) => Node): Node {
  const args = call.args.map(below)
  const binding = call.target && readBinding(call.function, args, { range: below(call.target), offset })
  if (binding !== undefined) return binding
  if (call.function === '_[_]') return readIndex(args, offset)
  if (call.target === undefined) return { kind: 'call', name: call.function, args, offset }
  return { kind: 'call', name: call.function, target: below(call.target), args, offset }
}

function readIndex([target, key]: readonly Node[], offset: number): Node {
  if (target === undefined || key === undefined) throw new Error('incomplete expression')
  const isText = key.kind === 'constant' && typeof key.value === 'string'
  const index = isText ? { ...key, value: keyIn(target, String(key.value)) } : key
  return { kind: 'call', name: '_[_]', args: [target, index], offset }
}

function isField(node: Node, root: string, field: string): boolean {
  return (
    node.kind === 'select' &&
    node.field === field &&
    node.operand.kind === 'identifier' &&
    node.operand.name === root
  )
}

const messages = ['request', 'response']

/** The key of a field: names of header fields are case-insensitive (RFC 9110 section 5.1). */
function keyIn(target: Node, key: string): string {
  return messages.some((root) => isField(target, root, 'headers')) ? key.toLowerCase() : key
}

/** `map.filterKeys(key, test)`, `map.mapValues(value, result)` and `value.with(name, result)`. */
function readBinding(
  name: string,
  [variable, body]: readonly Node[],
  { range, offset }: { range: Node; offset: number },
): Node | undefined {
  if (name !== 'filterKeys' && name !== 'mapValues' && name !== 'with') return undefined
  if (variable?.kind !== 'identifier' || body === undefined) return undefined
  const [test, step] = name === 'filterKeys' ? [body, undefined] : [undefined, body]
  return { kind: 'macro', macro: name, range, variable: variable.name, test, step, offset }
}

function readStruct(
  { value }: Kind<'structExpr'>,
  offset: number,
  below: (part: Expr | undefined) => Node,
): Node {
  if (value.messageName !== '') {
    return { kind: 'foreign', parts: value.entries.map((entry) => below(entry.value)), offset }
  }
  const entries = value.entries.map((entry) => {
    const key = entry.keyKind.case === 'mapKey' ? entry.keyKind.value : undefined
    return { key: below(key), value: below(entry.value) }
  })
  return { kind: 'map', entries, offset }
}

function macroName(macroCall: Expr | undefined): string {
  return macroCall?.exprKind.case === 'callExpr' ? macroCall.exprKind.value.function : ''
}

/** Reads the arguments of a macro from the loop that the parser expands it into. */
function readMacro(
  name: string,
  loop: Comprehension,
  { offset, below }: { offset: number; below: (part: Expr | undefined) => Node },
): Node {
  const range = below(loop.iterRange)
  const step = callArgs(loop.loopStep)
  const shape = { kind: 'macro', range, variable: loop.iterVar, offset } as const
  switch (name) {
    case 'all':
    case 'exists':
      return { ...shape, macro: name, test: below(step[1]), step: undefined }
    case 'exists_one':
    case 'existsOne':
      return { ...shape, macro: 'exists_one', test: below(step[0]), step: undefined }
    case 'filter':
      return { ...shape, macro: 'filter', test: below(step[0]), step: undefined }
    case 'map': {
      if (step.length < 3) return { ...shape, macro: 'map', test: undefined, step: below(collected(step[1])) }
      const appended = callArgs(step[1])[1]
      return { ...shape, macro: 'map', test: below(step[0]), step: below(collected(appended)) }
    }
    default:
      throw new Error(`unknown macro ${name}`)
  }
}

function callArgs(expr: Expr | undefined): readonly Expr[] {
  return expr?.exprKind.case === 'callExpr' ? expr.exprKind.value.args : []
}

function collected(list: Expr | undefined): Expr | undefined {
  return list?.exprKind.case === 'listExpr' ? list.exprKind.value.elements[0] : undefined
}

/** Counts the nodes of an expression. */
export function countNodes(node: Node): number {
  return childrenOf(node).reduce((sum, part) => sum + countNodes(part), 1)
}

/** Direct children of a node. */
export function childrenOf(node: Node): readonly Node[] {
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
    case 'apply':
      return [...node.args, node.body]
    case 'foreign':
      return node.parts
  }
}
