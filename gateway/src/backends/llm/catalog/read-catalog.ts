import { messageOf } from '../../../lib/thrown.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { check } from '../../../schema/check.ts'
import { formatPath, type Path } from '../../../schema/path.ts'
import { type Catalog, catalogSchema, checkCatalog } from './config.ts'

const maxReported = 5

/** Reads a catalog file. Throws with its path if it cannot be read or is not a catalog. */
export function readCatalogFile(file: string, context: CompileContext): Catalog {
  const place = `config.modelCatalog: ${file}`
  const text = withContext(place, 'cannot be read', () => context.readFile(file))
  return readCatalog(text, place, context)
}

/** Reads the text of a catalog. Throws with its place in the configuration if it is not a catalog. */
export function readCatalog(text: string, place: string, { parseYaml }: CompileContext): Catalog {
  const read = check(
    catalogSchema,
    withContext(place, 'is neither JSON nor YAML', () => parseDocument(text, parseYaml)),
  )
  if (read.kind === 'mistakes') throw invalid(place, read.mistakes)
  const found: { path: Path; message: string }[] = []
  checkCatalog(read.value, (path, message) => found.push({ path, message }))
  if (found.length > 0) throw invalid(place, found)
  return read.value
}

/** JSON first: catalogs contain thousands of models, and JSON parses much faster than YAML. */
function parseDocument(text: string, parseYaml: CompileContext['parseYaml']): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // An empty file is an empty catalog, like an empty configuration.
    return parseYaml(text) ?? {}
  }
}

function withContext<T>(place: string, failure: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    const reason = messageOf(cause)
    throw new Error(`${place} ${failure}: ${reason}`, { cause })
  }
}

function invalid(place: string, mistakes: readonly { path: Path; message: string }[]): Error {
  const shown = mistakes.slice(0, maxReported).map(({ path, message }) => `${formatPath(path)}: ${message}`)
  const more = mistakes.length - shown.length
  return new Error(`${place}: ${shown.join('; ')}${more > 0 ? `; and ${more} more mistakes` : ''}`)
}
