import { runToCompletion } from '../../lib/scheduling/yielding.ts'
import { check, type Mistake } from '../../schema/check.ts'
import { formatPath, type Path } from '../../schema/path.ts'
import { printable } from '../../schema/printable.ts'
import { alternativesOf, childShapes, type Shape, shapeOf } from '../../schema/shape.ts'
import { type Config, checkConfig, configSchema } from '../schema.ts'
import { formatChecks } from './formats.ts'

/** A configuration as plain JSON, from one or several sources. */
export type ConfigTree = Readonly<Record<string, unknown>>

const maxIssues = 50

/**
 * Validates a configuration that is not a text, with the schema, formats and checks of loading, without files
 * and network. Returns issues as lines of text. `validated` caches valid list items: adding one to 10,000
 * routes takes a third of the time.
 */
export function validateConfig(tree: ConfigTree, validated?: WeakSet<object>): string[] {
  return runToCompletion(validationSteps(tree, validated))
}

/** The steps of `validateConfig`, for cooperative execution. */
export function* validationSteps(
  tree: ConfigTree,
  validated: WeakSet<object> = new WeakSet(),
): Generator<void, string[]> {
  const mistakes = schemaMistakes(tree, validated)
  if (mistakes.length > 0) return lines(mistakes)
  yield
  const found: { path: Path; message: string }[] = formatMistakes(tree, validated)
  yield
  if (found.length === 0) checkConfig(checkedConfig(tree), (path, message) => found.push({ path, message }))
  return lines(found)
}

/** The schema has no rules across list items, so valid items are skipped. */
function schemaMistakes(tree: ConfigTree, validated: WeakSet<object>): readonly Mistake[] {
  const news = check(configSchema, withoutValidated(tree, validated))
  if (news.kind === 'valid') return []
  // Checks the whole tree for the correct paths.
  const checked = check(configSchema, tree)
  return checked.kind === 'valid' ? [] : checked.mistakes
}

/** The tree without validated list items, except the first: a list may need one. */
function withoutValidated(tree: ConfigTree, validated: WeakSet<object>, depth = deepestList): ConfigTree {
  const entries = Object.entries(tree).map(([key, value]): [string, unknown] => {
    if (Array.isArray(value)) {
      const items: readonly unknown[] = value
      return [key, items.filter((item, index) => index === 0 || !isObject(item) || !validated.has(item))]
    }
    return [key, isTree(value) && depth > 0 ? withoutValidated(value, validated, depth - 1) : value]
  })
  return Object.fromEntries(entries)
}

/** Depth of long lists: `llm.models`. */
const deepestList = 1

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function isTree(value: unknown): value is ConfigTree {
  return isObject(value) && !Array.isArray(value)
}

/** The schema reported no mistakes, and changes no values. */
function checkedConfig(tree: ConfigTree): Config {
  return tree as Config
}

function formatMistakes(tree: ConfigTree, validated: WeakSet<object>): { path: Path; message: string }[] {
  const found: { path: Path; message: string }[] = []
  const visit = (here: unknown, shapes: readonly Shape[], path: Path): void => {
    if (typeof here === 'string') {
      const formatted = shapes.find((shape) => shape.kind === 'string' && shape.meta.format !== undefined)
      const wrong = formatted?.meta.format && formatChecks[formatted.meta.format]?.(here, formatted)
      if (wrong) found.push({ path, message: wrong.message })
      return
    }
    if (typeof here !== 'object' || here === null) return
    // Free JSON has no formats, and may be large.
    if (shapes.every((shape) => shape.kind === 'any') || validated.has(here)) return
    const before = found.length
    for (const [key, entry] of Object.entries(here)) {
      const step = Array.isArray(here) ? Number(key) : key
      visit(entry, childShapes(shapes, step), [...path, step])
    }
    if (typeof path.at(-1) === 'number' && found.length === before) validated.add(here)
  }
  visit(tree, alternativesOf(shapeOf(configSchema)), [])
  return found
}

function lines(mistakes: readonly { path: Path; message: string }[]): string[] {
  const shown = mistakes.slice(0, maxIssues).map(({ path, message }) => line(path, message))
  const more = mistakes.length - shown.length
  return more > 0 ? [...shown, `and ${more} more mistakes`] : shown
}

function line(path: Path, message: string): string {
  const place = formatPath(path)
  return printable(`${place === '' ? '' : `${place}: `}${message}`)
}
