import { runToCompletion } from '../../lib/scheduling/yielding.ts'
import { check, type Mistake } from '../../schema/check.ts'
import { formatPath, type Path } from '../../schema/path.ts'
import { printable } from '../../schema/printable.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { alternativesOf, childShapes, type Shape, shapeOf } from '../../schema/shape.ts'
import { findBackend } from '../../upstream/config.ts'
import { type Config, configChecks, configSchema } from '../schema.ts'
import { referencesOf } from '../traffic/attachments.ts'
import { type CheckedRoutes, createCheckedRoutes } from '../traffic/checked-routes.ts'
import { formatChecks } from './formats.ts'
import { checkInlineTexts } from './named-files.ts'

/** A configuration as plain JSON, from one or several sources. */
export type ConfigTree = Readonly<Record<string, unknown>>

const maxIssues = 50

/** Valid parts of earlier configurations, by identity: parts that stay the same objects are skipped. */
export type ValidatedParts = { readonly items: WeakSet<object>; readonly routes: CheckedRoutes }

export function createValidatedParts(): ValidatedParts {
  return { items: new WeakSet(), routes: createCheckedRoutes() }
}

/**
 * Validates a configuration that is not a text, with the schema, formats and checks of loading, without files
 * and network. Returns issues as lines of text. `validated` caches valid list items.
 */
export function validateConfig(tree: ConfigTree, validated?: ValidatedParts): string[] {
  return runToCompletion(validationSteps(tree, validated))
}

/** The steps of `validateConfig`, for cooperative execution. */
export function* validationSteps(
  tree: ConfigTree,
  validated: ValidatedParts = createValidatedParts(),
): Generator<void, string[]> {
  const steps = findIssues(tree, validated.items, (config, report) =>
    configChecks(config, report, validated.routes),
  )
  return lines(yield* steps)
}

/** An issue with the path of its value. */
export type LocatedIssue = { readonly path: Path; readonly message: string }

/**
 * Finds the issues of a configuration: those of the schema, else of formats, else of `checkValid`, which
 * receives a configuration without the other kinds.
 */
function* findIssues(
  tree: ConfigTree,
  validated: WeakSet<object>,
  checkValid: (config: Config, report: ReportIssue) => Generator<void, void>,
): Generator<void, readonly LocatedIssue[]> {
  const mistakes = yield* schemaMistakes(tree, validated)
  if (mistakes.length > 0) return mistakes
  const found: LocatedIssue[] = yield* formatMistakes(tree, validated)
  if (found.length > 0) return found
  yield* checkValid(checkedConfig(tree), (path, message) => found.push({ path, message }))
  return found
}

/**
 * A part of a configuration that is validated on its own, so that an invalid one can be replaced and its
 * neighbours stay. `policies` are those of a route of the kind `of`.
 */
export type ConfigPart =
  | { kind: 'route' | 'tcpRoute' | 'backend'; value: ConfigTree }
  | { kind: 'gateway'; name: string; value: ConfigTree }
  | { kind: 'policies'; of: 'http' | 'llm' | 'mcp'; value: ConfigTree }
  | { kind: 'frontendPolicies'; value: ConfigTree }

/** The valid parts that a part may refer to. */
export type PartSurroundings = Pick<Config, 'config' | 'gateways' | 'backends'>

type Section = 'routes' | 'tcpRoutes' | 'backends' | 'gateways' | 'frontendPolicies'

/** A configuration of one part and what it refers to. */
type SmallConfig = {
  tree: ConfigTree
  /** Path of the part. */
  path: readonly [Section, ...(string | number)[]]
}

/**
 * Validates one part with the schema, formats and checks of a whole configuration, without files and network.
 * Returns its issues with paths inside the part, in one line each. The cost depends on the part alone. Rules
 * between parts are not checked: unique names and ports, hosts of listeners, limits with one `id`.
 */
export function validatePart(part: ConfigPart, surroundings: PartSurroundings): LocatedIssue[] {
  const { tree, path } = smallConfigOf(part, surroundings)
  const steps = findIssues(tree, new WeakSet(), function* (config, report) {
    yield* configChecks(config, report, createCheckedRoutes())
    checkInlineTexts(config, report)
  })
  return runToCompletion(steps)
    .filter((issue) => path.every((step, index) => issue.path[index] === step))
    .map((issue) => ({ path: issue.path.slice(path.length), message: printable(issue.message) }))
}

/** The schema has no rules across list items, so valid items are skipped, and long lists divided. */
function* schemaMistakes(tree: ConfigTree, validated: WeakSet<object>): Generator<void, readonly Mistake[]> {
  for (const piece of piecesOf(withoutValidated(tree, validated))) {
    yield
    if (check(configSchema, piece).kind === 'valid') continue
    // Checks the whole tree for the correct paths.
    const checked = check(configSchema, tree)
    return checked.kind === 'valid' ? [] : checked.mistakes
  }
  return []
}

/** Items of a list that are checked in one step. */
const itemsPerStep = 100

/** The tree with the first items of its long lists, then their other items. */
function* piecesOf(tree: ConfigTree): Generator<ConfigTree> {
  const lists: [string, readonly unknown[]][] = []
  const entries = Object.entries(tree).map(([key, value]): [string, unknown] => {
    if (!Array.isArray(value) || value.length <= itemsPerStep) return [key, value]
    lists.push([key, value])
    return [key, value.slice(0, itemsPerStep)]
  })
  yield Object.fromEntries(entries)
  for (const [key, items] of lists) {
    for (let start = itemsPerStep; start < items.length; start += itemsPerStep)
      yield { [key]: items.slice(start, start + itemsPerStep) }
  }
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

function* formatMistakes(tree: ConfigTree, validated: WeakSet<object>): Generator<void, LocatedIssue[]> {
  const found: LocatedIssue[] = []
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
      if (isObject(entry) && validated.has(entry)) continue
      const step = Array.isArray(here) ? Number(key) : key
      visit(entry, childShapes(shapes, step), [...path, step])
    }
    if (typeof path.at(-1) === 'number' && found.length === before) validated.add(here)
  }
  const shapes = alternativesOf(shapeOf(configSchema))
  for (const [section, value] of Object.entries(tree)) {
    const ofSection = childShapes(shapes, section)
    if (!Array.isArray(value)) {
      visit(value, ofSection, [section])
      yield
      continue
    }
    const items: readonly unknown[] = value
    for (const [index, item] of items.entries()) {
      if (isObject(item) && validated.has(item)) continue
      visit(item, childShapes(ofSection, index), [section, index])
      yield
    }
  }
  return found
}

function lines(mistakes: readonly LocatedIssue[]): string[] {
  const shown = mistakes.slice(0, maxIssues).map(({ path, message }) => line(path, message))
  const more = mistakes.length - shown.length
  return more > 0 ? [...shown, `and ${more} more mistakes`] : shown
}

function line(path: Path, message: string): string {
  const place = formatPath(path)
  return printable(`${place === '' ? '' : `${place}: `}${message}`)
}

function smallConfigOf(part: ConfigPart, surroundings: PartSurroundings): SmallConfig {
  const { value } = part
  const { config } = surroundings
  const backends = backendsNamedIn(value, surroundings)
  const common = { ...(config && { config }), backends }
  switch (part.kind) {
    case 'gateway':
      return { tree: { ...common, gateways: { [part.name]: value } }, path: ['gateways', part.name] }
    case 'backend':
      return { tree: { ...common, backends: [value, ...backends] }, path: ['backends', 0] }
    case 'policies': {
      const route = { gateways: 'g', policies: value, backends: [backendOf[part.of]] }
      return {
        tree: { ...common, gateways: { g: { port: 0 } }, routes: [route] },
        path: ['routes', 0, 'policies'],
      }
    }
    case 'frontendPolicies':
      return { tree: { ...common, frontendPolicies: value }, path: ['frontendPolicies'] }
    case 'route':
    case 'tcpRoute': {
      const section = part.kind === 'route' ? 'routes' : 'tcpRoutes'
      const gateways = gatewaysNamedIn(value, surroundings)
      return { tree: { ...common, gateways, [section]: [value] }, path: [section, 0] }
    }
  }
}

const backendOf = {
  http: { host: 'localhost:80' },
  llm: { ai: { provider: { echo: {} } } },
  mcp: { mcp: { targets: [{ name: 'target', mcp: { host: 'http://localhost/mcp' } }] } },
}

/** The backends that members named `backend` of a value refer to. */
function backendsNamedIn(value: unknown, { backends = [] }: PartSurroundings): object[] {
  const found = new Set<object>()
  const visit = (here: unknown): void => {
    if (typeof here !== 'object' || here === null) return
    for (const [key, entry] of Object.entries(here)) {
      const backend =
        key === 'backend' && typeof entry === 'string' ? findBackend(entry, backends) : undefined
      if (backend !== undefined) found.add(backend)
      visit(entry)
    }
  }
  visit(value)
  return [...found]
}

function gatewaysNamedIn(value: ConfigTree, { gateways = {} }: PartSurroundings): ConfigTree {
  const { gateways: given } = value
  const written = typeof given === 'string' ? [given] : Array.isArray(given) ? given.map(String) : undefined
  const names = (referencesOf(written, gateways) ?? []).map((reference) => reference.split('/', 1)[0] ?? '')
  return Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(gateways, name) ? [[name, gateways[name]]] : [])),
  )
}
