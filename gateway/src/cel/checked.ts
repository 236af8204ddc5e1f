import { type CelProgram, compileCel } from './cel.ts'
import { withComparableSecrets } from './secret-text.ts'

/** Reports the error of an expression in the configuration, with its position in the expression. */
export function checkCel(source: string, roots: ReadonlySet<string>, report: (message: string) => void) {
  const compiled = compileCel(source, roots)
  if (compiled.kind === 'program') return
  const { message, line, column } = compiled
  report(`${message} (${source.includes('\n') ? `line ${line}, ` : ''}column ${column} of the expression)`)
}

/** Compiles an expression that `checkCel` has accepted. Throws if it does not compile, which is a defect. */
export function compileCheckedCel(source: string, roots: ReadonlySet<string>): CelProgram {
  const compiled = compileCel(source, roots)
  if (compiled.kind === 'program') return compiled.program
  throw new Error(`expression does not compile: ${compiled.message}`)
}

/**
 * The same for an expression whose value is a key of a cache, limit or budget. A credential in the value is
 * its digest: `<redacted>` would be one key for all users.
 */
export function compileCheckedKey(source: string, roots: ReadonlySet<string>): CelProgram {
  const program = compileCheckedCel(source, roots)
  if (!program.readsCredential) return program
  return { ...program, evaluate: (variables) => program.evaluate(withComparableSecrets(variables)) }
}
