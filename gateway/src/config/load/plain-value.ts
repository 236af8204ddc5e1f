import type { Path } from '../../schema/path.ts'
import { formatPath } from '../../schema/path.ts'
import { alternativesOf, childShapes, type Shape } from '../../schema/shape.ts'
import { type AliasCost, createAliasCost, expandAlias, payForAlias } from '../yaml/alias-cost.ts'
import type { TextMistake, YamlEntry, YamlTree } from '../yaml/yaml.ts'
import { type Environment, expandReferences } from './environment.ts'

export type PlainValue = {
  value: unknown
  mistakes: (TextMistake & { path: Path })[]
  /** Paths, as text, of scalars with values of variables. Messages must not contain these values. */
  fromEnvironment: ReadonlySet<string>
}

/**
 * Converts a document to plain JSON: aliases become copies, references to the environment become values. The
 * shape determines the type of an unquoted scalar that is a single reference; a reference never becomes a
 * list or an object. A key without a value is removed unless the schema accepts null.
 */
export function toPlainValue(tree: YamlTree, shape: Shape, environment: Environment): PlainValue {
  const building: Building = {
    environment,
    path: [],
    mistakes: [],
    fromEnvironment: new Set(),
    aliases: createAliasCost(),
  }
  const value = build(tree, alternativesOf(shape), building)
  return { value: value ?? {}, mistakes: building.mistakes, fromEnvironment: building.fromEnvironment }
}

type Building = {
  environment: Environment
  /** Path of the current value; mutable. */
  path: (string | number)[]
  mistakes: (TextMistake & { path: Path })[]
  fromEnvironment: Set<string>
  aliases: AliasCost
}

function build(tree: YamlTree, shapes: readonly Shape[], building: Building): unknown {
  if (!payForAlias(tree, building.aliases, () => refuseAliases(tree, building))) return null
  switch (tree.kind) {
    case 'map':
      return buildMap(tree.entries, shapes, building)
    case 'list':
      return tree.items.map((item, index) => buildUnder(index, item, shapes, building))
    case 'scalar':
      return buildScalar(tree, shapes, building)
    case 'alias':
      return expandAlias(building.aliases, () => build(tree.target, shapes, building))
  }
}

function buildMap(
  entries: ReadonlyMap<string, YamlEntry>,
  shapes: readonly Shape[],
  building: Building,
): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  for (const [key, { value }] of entries) {
    const plain = buildUnder(key, value, shapes, building)
    if (plain === null && !takesNull(childShapes(shapes, key))) continue
    object[key] = plain
  }
  return object
}

function buildUnder(
  step: string | number,
  tree: YamlTree,
  shapes: readonly Shape[],
  building: Building,
): unknown {
  building.path.push(step)
  const value = build(tree, childShapes(shapes, step), building)
  building.path.pop()
  return value
}

function refuseAliases({ offset }: YamlTree, { mistakes, path }: Building): void {
  mistakes.push({
    offset,
    message: 'the aliases of this file expand to more than is allowed',
    path: [...path],
  })
}

function buildScalar(
  tree: YamlTree & { kind: 'scalar' },
  shapes: readonly Shape[],
  building: Building,
): unknown {
  if (typeof tree.value !== 'string') return tree.value
  const expansion = expandReferences(tree.value, building.environment)
  for (const { name, reference } of expansion.missing) {
    const message = `environment variable not found: ${name} (\`$$\` stands for a plain dollar sign)`
    building.mistakes.push({ offset: offsetInside(tree, reference), message, path: [...building.path] })
  }
  if (!expansion.replaced) return expansion.text
  building.fromEnvironment.add(formatPath(building.path))
  if (!expansion.whole || !tree.plain || expansion.missing.length > 0) return expansion.text
  return typed(expansion.text, shapes)
}

/** Converts a text to the type in the schema, or to the type in YAML if the schema accepts any. */
function typed(text: string, shapes: readonly Shape[]): unknown {
  const kinds = new Set(shapes.map((shape) => shape.kind))
  if (kinds.has('string') || kinds.has('enumeration')) return text
  const free = kinds.has('any')
  if (text === '' && !free) return null
  if ((kinds.has('number') || free) && isExactNumber(text)) return Number(text)
  if ((kinds.has('boolean') || free) && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

function isExactNumber(text: string): boolean {
  if (!/^[-+]?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/.test(text)) return false
  const value = Number(text)
  return Number.isFinite(value) && (Number.isSafeInteger(value) || !/^[-+]?\d+$/.test(text))
}

function takesNull(shapes: readonly Shape[]): boolean {
  return shapes.some((shape) => shape.kind === 'any')
}

/** Offset of a reference, if the value has the same length as its text in the file. */
function offsetInside(tree: YamlTree & { kind: 'scalar' }, reference: string): number {
  const text = typeof tree.value === 'string' ? tree.value : ''
  const at = text.indexOf(reference)
  if (text.includes('\n') || at === -1) return tree.offset
  if (tree.end - tree.offset === text.length) return tree.offset + at
  return tree.end - tree.offset === text.length + 2 ? tree.offset + 1 + at : tree.offset
}
