import type { PemSource } from '../schema/dsl.ts'
import type { CompileContext } from './compile-context.ts'

/** Returns PEM text of the configuration or of the file that it names. Throws if the file is unreadable. */
export function readPem(source: PemSource, { readFile }: Pick<CompileContext, 'readFile'>): string {
  return typeof source === 'string' ? readFile(source) : source.inline
}
