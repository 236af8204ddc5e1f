import { type CelProgram, compileCel } from './cel.ts'

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
