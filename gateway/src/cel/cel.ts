import { createPatternCache } from '../lib/pattern.ts'
import { countNodes, type LibraryTree, type Node, parseCel } from './ast.ts'
import { checkNames, findGatewayCall } from './check-names.ts'
import { compileClosures } from './closures/closures.ts'
import type { StepBudget } from './closures/macros.ts'
import { hasProperties, type Variables } from './closures/representation.ts'
import { toPlain } from './closures/values.ts'
import { compileDerivedVariables } from './derived-variables.ts'
import { CelEvaluationError, Failure } from './failure.ts'
import { compileWithLibrary } from './library.ts'
import { callsVariables, referencesField, revealsCredential } from './references.ts'
import { resetWorkBudget } from './work-budget.ts'

/** Compiled CEL expression. Evaluation is synchronous and retains no state between calls. */
export type CelProgram = {
  readonly source: string
  /** Variables that the expression references: `request`, `jwt`. */
  readonly roots: ReadonlySet<string>
  /** Whether the expression references `request.body`, which requires the body to be read first. */
  readonly readsBody: boolean
  /** Whether the expression references `response.body`. */
  readonly readsResponseBody: boolean
  /** Whether the expression references `jwt.rawToken` or `apiKey.key`. */
  readonly readsCredential: boolean
  /** Whether the expression calls `unredacted()`. */
  readonly revealsCredential: boolean
  /**
   * The result of `flatten()` or `flattenRecursive()`: log fields of its members, or of the members at every
   * depth.
   */
  readonly flattens: 'members' | 'all' | undefined
  /** `library`: evaluated by @bufbuild/cel, about ten times slower; for protobuf messages only. */
  readonly engine: 'closures' | 'library'
  /**
   * Evaluates to plain JavaScript values: an int is a number if that is exact, else a bigint; a timestamp or
   * duration is its JSON string. Variables are the own properties of the argument; undefined means unset.
   * Only referenced parts are read. The result may share objects with the variables. Throws
   * CelEvaluationError.
   */
  evaluate(variables: object): unknown
}

/** Error of an expression. Line and column start at 1; columns count UTF-16 units. */
export type CelIssue = { kind: 'issue'; message: string; line: number; column: number }

/** Limit of loop iterations per evaluation: clients control the length of lists. */
const maxSteps = 200_000

/** Work units of the library per loop iteration and node of the expression. */
const costOfLibraryNode = 300

/** Compiles an expression over the given variables; a reference to any other variable is an issue. */
export function compileCel(
  source: string,
  roots: ReadonlySet<string>,
): { kind: 'program'; program: CelProgram } | CelIssue {
  const parsed = parseCel(source)
  if (parsed.kind === 'issue') return issueAt(source, parsed)
  const checked = checkNames(parsed.node, roots)
  if (checked.issue !== undefined) return issueAt(source, checked.issue)
  const known = callsVariables(parsed.node) ? roots : checked.roots
  const program = createProgram(source, { roots: checked.roots, known }, parsed)
  const call = program.engine === 'library' ? findGatewayCall(parsed.node) : undefined
  if (call === undefined) return { kind: 'program', program }
  const message = `${call.name} does not combine with protobuf messages`
  return issueAt(source, { message, offset: call.node.offset })
}

/** Evaluates a rule. Throws CelEvaluationError if evaluation fails or the result is not a boolean. */
export function evaluateBoolean(program: CelProgram, variables: object): boolean {
  const value = program.evaluate(variables)
  if (typeof value === 'boolean') return value
  throw new CelEvaluationError(
    `expression must be true or false, not ${value === null ? 'null' : typeof value}`,
  )
}

export type CelResult =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly error: CelEvaluationError }

/** Evaluates an expression, and converts its value; a failure of both is a result. */
export function tryEvaluate(
  program: CelProgram,
  variables: object,
  convert?: (value: unknown) => unknown,
): CelResult {
  try {
    const value = program.evaluate(variables)
    return { kind: 'value', value: convert === undefined ? value : convert(value) }
  } catch (error) {
    if (error instanceof CelEvaluationError) return { kind: 'failed', error }
    throw error
  }
}

/** Variables of an expression; `known` also has dotted names if it reads all of them by `variables()`. */
type Names = { readonly roots: ReadonlySet<string>; readonly known: ReadonlySet<string> }

function createProgram(
  source: string,
  { roots, known }: Names,
  { node, library }: { node: Node; library: LibraryTree },
): CelProgram {
  const budget: StepBudget = { left: maxSteps, libraryStepWork: costOfLibraryNode * countNodes(node) }
  const reads = (root: string) =>
    known.has(`${root}.body`) || (roots.has(root) && referencesField(node, root, 'body'))
  const closures = compileClosures(node, { roots, locals: [], budget, patterns: createPatternCache(64) })
  const run = closures === undefined ? compileWithLibrary(library, roots, budget) : withPlainResult(closures)
  const derive = compileDerivedVariables(node, roots)
  return {
    source,
    roots,
    readsBody: reads('request'),
    readsResponseBody: reads('response'),
    readsCredential:
      callsVariables(node) ||
      referencesField(node, 'jwt', 'rawToken') ||
      referencesField(node, 'apiKey', 'key'),
    revealsCredential: revealsCredential(node),
    flattens: flatteningOf(node),
    engine: closures === undefined ? 'library' : 'closures',
    evaluate(variables) {
      if (!hasProperties(variables)) throw new CelEvaluationError('variables must be an object')
      budget.left = maxSteps
      resetWorkBudget()
      try {
        return run(derive === undefined ? variables : derive(variables))
      } catch (error) {
        throw evaluationError(error)
      }
    },
  }
}

function flatteningOf(node: Node): CelProgram['flattens'] {
  if (node.kind !== 'call' || node.target !== undefined) return undefined
  if (node.name === 'flatten') return 'members'
  return node.name === 'flattenRecursive' || node.name === 'flatten_recursive' ? 'all' : undefined
}

function withPlainResult(closures: (variables: Variables) => unknown): (variables: Variables) => unknown {
  return (variables) => {
    const value = closures(variables)
    if (typeof value !== 'object') return value
    if (value instanceof Failure) throw new CelEvaluationError(value.message)
    return toPlain(value)
  }
}

function evaluationError(error: unknown): CelEvaluationError {
  if (error instanceof CelEvaluationError) return error
  const message =
    error instanceof RangeError ? 'values are nested too deeply or too large' : 'evaluation failed'
  return new CelEvaluationError(message, { cause: error })
}

function issueAt(source: string, { message, offset }: { message: string; offset: number }): CelIssue {
  const before = source.slice(0, offset).split('\n')
  return { kind: 'issue', message, line: before.length, column: (before.at(-1)?.length ?? 0) + 1 }
}
