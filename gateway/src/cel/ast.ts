import { parse } from '@bufbuild/cel'
import { doubleOf, intOf } from './closures/values.ts'

export type Macro = 'all' | 'exists' | 'exists_one' | 'filter' | 'map'

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
      /** Predicate of `all`, `exists`, `exists_one`, `filter` and of `map` with three arguments. */
      readonly test: Node | undefined
      /** Transformation of `map`. */
      readonly step: Node | undefined
    }
  /** Syntax that only the library evaluates: bytes, unsigned ints, messages. */
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

/** Parses an expression. Length and depth are limited, so that evaluation cannot exhaust the stack. */
export function parseCel(source: string): Parsed {
  if (source.length > maxSourceLength) {
    return { kind: 'issue', message: `expression is longer than ${maxSourceLength} characters`, offset: 0 }
  }
  try {
    const library = parse(source)
    if (library.expr === undefined) return { kind: 'issue', message: 'expression is empty', offset: 0 }
    return { kind: 'tree', node: createReader(library)(library.expr, 0), library }
  } catch (error) {
    return { kind: 'issue', ...syntaxIssue(error) }
  }
}

class TooDeep extends Error {}

function syntaxIssue(error: unknown): { message: string; offset: number } {
  if (error instanceof TooDeep || error instanceof RangeError) {
    return { message: `expression is nested more than ${maxDepth} levels deep`, offset: 0 }
  }
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

function createReader({ sourceInfo }: LibraryTree) {
  const positions = sourceInfo?.positions ?? {}
  const macros = sourceInfo?.macroCalls ?? {}

  function read(expr: Expr | undefined, depth: number): Node {
    if (expr === undefined) throw new Error('incomplete expression')
    if (depth > maxDepth) throw new TooDeep()
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
        return { kind: testOnly ? 'has' : 'select', operand: below(operand), field, offset }
      }
      case 'callExpr':
        return readCall(kind.value, offset, below)
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
    default:
      return { kind: 'foreign', parts: [], offset }
  }
}

function readCall(call: Call, offset: number, below: (part: Expr | undefined) => Node): Node {
  const args = call.args.map(below)
  if (call.target === undefined) return { kind: 'call', name: call.function, args, offset }
  return { kind: 'call', name: call.function, target: below(call.target), args, offset }
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
    case 'foreign':
      return node.parts
  }
}
