import { runToCompletion } from '../../lib/scheduling/yielding.ts'
import { check, type Mistake } from '../../schema/check.ts'
import { formatPath, type Path } from '../../schema/path.ts'
import { printable } from '../../schema/printable.ts'
import { alternativesOf, childShapes, type Shape, shapeOf } from '../../schema/shape.ts'
import { type Config, checkConfig, configSchema } from '../schema.ts'
import { formatChecks } from './formats.ts'

/** A configuration as plain JSON, whatever parts it was put together from. */
export type ConfigTree = Readonly<Record<string, unknown>>

const maxIssues = 50

/**
 * What is wrong with a configuration that did not come from a text, as lines for a person; none when it is valid. Runs the
 * same schema, formats and checks as loading does, without files and the network. `sound` remembers items of lists that are
 * right in themselves, so that one more among 10,000 routes takes a third of the time.
 */
export function validateConfig(tree: ConfigTree, sound?: WeakSet<object>): string[] {
  return runToCompletion(validationSteps(tree, sound))
}

/** The steps of `validateConfig`, so that traffic does not wait for all of them. */
export function* validationSteps(
  tree: ConfigTree,
  sound: WeakSet<object> = new WeakSet(),
): Generator<void, string[]> {
  const mistakes = schemaMistakes(tree, sound)
  if (mistakes.length > 0) return lines(mistakes)
  yield
  const found: { path: Path; message: string }[] = formatMistakes(tree, sound)
  yield
  if (found.length === 0) checkConfig(checkedConfig(tree), (path, message) => found.push({ path, message }))
  return lines(found)
}

/** The schema says nothing about how the items of a list go together, so those that are sound need no second look. */
function schemaMistakes(tree: ConfigTree, sound: WeakSet<object>): readonly Mistake[] {
  const news = check(configSchema, withoutSound(tree, sound))
  if (news.kind === 'valid') return []
  // With the places that mistakes have in the whole.
  const checked = check(configSchema, tree)
  return checked.kind === 'valid' ? [] : checked.mistakes
}

/** The tree with only those items of lists in it that are not known to be sound, and one more, as lists may have to have one. */
function withoutSound(tree: ConfigTree, sound: WeakSet<object>, depth = deepestList): ConfigTree {
  const entries = Object.entries(tree).map(([key, value]): [string, unknown] => {
    if (Array.isArray(value)) {
      const items: readonly unknown[] = value
      return [key, items.filter((item, index) => index === 0 || !isObject(item) || !sound.has(item))]
    }
    return [key, isTree(value) && depth > 0 ? withoutSound(value, sound, depth - 1) : value]
  })
  return Object.fromEntries(entries)
}

/** How deep lists may be that are long: `llm.models`. */
const deepestList = 1

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function isTree(value: unknown): value is ConfigTree {
  return isObject(value) && !Array.isArray(value)
}

/** The guard: the schema has found nothing, and changes nothing. */
function checkedConfig(tree: ConfigTree): Config {
  return tree as Config
}

function formatMistakes(tree: ConfigTree, sound: WeakSet<object>): { path: Path; message: string }[] {
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
    if (shapes.every((shape) => shape.kind === 'any') || sound.has(here)) return
    const before = found.length
    for (const [key, entry] of Object.entries(here)) {
      const step = Array.isArray(here) ? Number(key) : key
      visit(entry, childShapes(shapes, step), [...path, step])
    }
    if (typeof path.at(-1) === 'number' && found.length === before) sound.add(here)
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
