import { createPatternCache } from '../lib/pattern.ts'
import { countNodes, type LibraryTree, type Node, parseCel } from './ast.ts'
import { checkNames, findDefaultCall } from './check-names.ts'
import { compileClosures } from './closures/closures.ts'
import type { StepBudget } from './closures/macros.ts'
import { hasProperties, toPlain, type Variables } from './closures/values.ts'
import { compileDerivedVariables } from './derived-variables.ts'
import { CelEvaluationError, Failure, UnsupportedByClosures } from './failure.ts'
import { compileWithLibrary } from './library.ts'
import { referencesField } from './references.ts'
import { resetWorkBudget } from './work-budget.ts'

/** Compiled CEL expression. Evaluation is synchronous and retains no state between calls. */
export type CelProgram = {
  readonly source: string
  /** Variables that the expression references: `request`, `jwt`. */
  readonly roots: ReadonlySet<string>
  /** Whether the expression references `request.body`, which requires the body to be read first. */
  readonly readsBody: boolean
  /** `closures`: compiled by the gateway; `library`: evaluated by @bufbuild/cel, about ten times slower. */
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
  const program = createProgram(source, checked.roots, parsed)
  const fallback = program.engine === 'library' ? findDefaultCall(parsed.node) : undefined
  if (fallback === undefined) return { kind: 'program', program }
  const message =
    'default() and coalesce() do not combine with bytes, unsigned ints, types, timestamps or durations'
  return issueAt(source, { message, offset: fallback.offset })
}

/** Evaluates a rule. Throws CelEvaluationError if evaluation fails or the result is not a boolean. */
export function evaluateBoolean(program: CelProgram, variables: object): boolean {
  const value = program.evaluate(variables)
  if (typeof value === 'boolean') return value
  throw new CelEvaluationError(
    `expression must be true or false, not ${value === null ? 'null' : typeof value}`,
  )
}

function createProgram(
  source: string,
  roots: ReadonlySet<string>,
  { node, library }: { node: Node; library: LibraryTree },
): CelProgram {
  const budget: StepBudget = { left: maxSteps, libraryStepWork: costOfLibraryNode * countNodes(node) }
  const readsBody = roots.has('request') && referencesField(node, 'request', 'body')
  // The closures do not support bytes.
  const closures = readsBody
    ? undefined
    : compileClosures(node, { roots, locals: [], budget, patterns: createPatternCache(64) })
  const viaLibrary = () => compileWithLibrary(library, roots, budget)
  const run = closures === undefined ? viaLibrary() : withLibraryFallback(closures, viaLibrary)
  const derive = compileDerivedVariables(node, roots)
  return {
    source,
    roots,
    readsBody,
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

function withLibraryFallback(
  closures: (variables: Variables) => unknown,
  compileForLibrary: () => (variables: Variables) => unknown,
): (variables: Variables) => unknown {
  let viaLibrary: ((variables: Variables) => unknown) | undefined
  return (variables) => {
    let value: unknown
    try {
      value = closures(variables)
    } catch (error) {
      if (!(error instanceof UnsupportedByClosures)) throw error
      // Dates and bytes are rare in variables, so the library's plan is compiled at the first one.
      viaLibrary ??= compileForLibrary()
      return viaLibrary(variables)
    }
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
