import { fileURLToPath } from 'node:url'
import { runProgram } from './run-program.ts'

/**
 * The lines that `tollgate --validate-only` would print for configuration files, each with its environment:
 * none for a valid file. One process validates all of them, because a start takes longer than a validation.
 */
export async function printedLines(
  files: readonly (readonly [file: string, env: Record<string, string>])[],
): Promise<Record<string, string[]>> {
  const program = fileURLToPath(new URL('validate-files.ts', import.meta.url))
  const { stdout, stderr } = await runProgram(program, [JSON.stringify(files)])
  if (stderr !== '') throw new Error(`the validation failed: ${stderr}`)
  return JSON.parse(stdout)
}
