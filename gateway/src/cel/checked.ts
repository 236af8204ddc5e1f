import { type CelProgram, compileCel } from './cel.ts'

/** Reports what is wrong with an expression of the configuration, with the position inside it. */
export function checkCel(source: string, roots: ReadonlySet<string>, report: (message: string) => void) {
  const compiled = compileCel(source, roots)
  if (compiled.kind === 'program') return
  const { message, line, column } = compiled
  report(`${message} (${source.includes('\n') ? `line ${line}, ` : ''}column ${column} of the expression)`)
}

/** The program of an expression that `checkCel` has accepted; that it does not compile now is a defect. */
export function compileCheckedCel(source: string, roots: ReadonlySet<string>): CelProgram {
  const compiled = compileCel(source, roots)
  if (compiled.kind === 'program') return compiled.program
  throw new Error(`expression does not compile: ${compiled.message}`)
}
