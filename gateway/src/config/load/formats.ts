import { compileCel } from '../../cel/cel.ts'
import { revealingMistake } from '../../cel/secret-text.ts'
import { allVariables } from '../../policies/registry/cel-variables.ts'
import type { Format } from '../../schema/dsl.ts'
import type { FormatCheck } from './load.ts'

/** Checks of texts in a language, with the position of the error. */
export const formatChecks: Partial<Record<Format, FormatCheck>> = {
  cel(text, { meta }) {
    const roots = 'roots' in meta && meta.roots !== undefined ? new Set(meta.roots) : undefined
    const result = compileCel(text, roots ?? allVariables)
    if (result.kind === 'program')
      return result.program.revealsCredential && meta.reveals !== true ? revealing(text) : undefined
    return { message: result.message, at: offsetOf(text, result.line, result.column) }
  },
}

function offsetOf(text: string, line: number, column: number): number {
  const before = text.split('\n').slice(0, line - 1)
  return before.reduce((total, { length }) => total + length + 1, 0) + column - 1
}

function revealing(text: string): { message: string; at: number } {
  return { message: revealingMistake, at: Math.max(0, text.indexOf('unredacted')) }
}
