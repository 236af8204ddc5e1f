import { isDeepStrictEqual } from 'node:util'
import type { ConfigTree } from '../../config/load/validate.ts'
import { configSchema } from '../../config/schema.ts'
import type { JsonValue } from '../../lib/json/json.ts'
import { formatPath, type Path } from '../../schema/path.ts'
import { alternativesOf, childShapes, type Shape, shapeOf } from '../../schema/shape.ts'
import { isTree } from '../hybrid/overlay.ts'
import { maskValue } from '../secrets/secret-paths.ts'
import { isFlagValue } from '../secrets/secret-text.ts'

/** A changed part of the configuration; an absent side is undefined. Values are masked. */
export type ConfigChange = {
  readonly path: string
  readonly before?: JsonValue
  readonly after?: JsonValue
}

/** A changed part with its values. */
export type ChangedPart = { readonly path: Path; readonly before: unknown; readonly after: unknown }

/** Maximum number of changes in a response. */
export const maxChanges = 200

/**
 * The parts in which two configurations differ. Unchanged parts that are the same objects are skipped, so
 * that 100,000 keys cost nothing. Items of lists are matched by name, else by position.
 */
export function* changedParts(before: ConfigTree, after: ConfigTree): Generator<ChangedPart> {
  yield* differing({ path: [], before, after })
}

function* differing(part: ChangedPart): Generator<ChangedPart> {
  const { before, after } = part
  if (before === after) return
  if (Array.isArray(before) && Array.isArray(after) && !hasFlagValue(before) && !hasFlagValue(after))
    yield* differingItems(part.path, before, after)
  else if (isTree(before) && isTree(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)]))
      yield* differing({ path: [...part.path, name], before: before[name], after: after[name] })
  } else if (!isDeepStrictEqual(before, after)) yield part
}

/** Whether an item is secret because of the preceding one. Such lists are compared and masked as a whole. */
function hasFlagValue(list: readonly unknown[]): boolean {
  return list.some((item, index) => typeof item === 'string' && isFlagValue(list, index))
}

/** Items are compared after the equal start and end of both lists. */
function* differingItems(
  path: Path,
  before: readonly unknown[],
  after: readonly unknown[],
): Generator<ChangedPart> {
  let start = 0
  const shorter = Math.min(before.length, after.length)
  while (start < shorter && isSame(before[start], after[start])) start += 1
  let end = 0
  while (end < shorter - start && isSame(before.at(-1 - end), after.at(-1 - end))) end += 1
  const old = new Map<string, unknown>()
  for (let index = start; index < before.length - end; index += 1)
    old.set(identityOf(before[index], index), before[index])
  for (let index = start; index < after.length - end; index += 1) {
    const identity = identityOf(after[index], index)
    const previous = old.get(identity)
    old.delete(identity)
    const place = [...path, index]
    if (previous === undefined) yield { path: place, before: undefined, after: after[index] }
    else yield* differing({ path: place, before: previous, after: after[index] })
  }
  for (const [index, item] of before.entries()) {
    if (index < start || index >= before.length - end) continue
    if (old.get(identityOf(item, index)) === item)
      yield { path: [...path, index], before: item, after: undefined }
  }
}

function isSame(one: unknown, other: unknown): boolean {
  return one === other || isDeepStrictEqual(one, other)
}

function identityOf(item: unknown, index: number): string {
  if (!isTree(item)) return typeof item === 'string' ? `text ${item}` : `#${index}`
  const name = item['name'] ?? item['id'] ?? (isTree(item['metadata']) ? item['metadata']['id'] : undefined)
  return typeof name === 'string' ? `name ${name}` : `#${index}`
}

/** The part for a response, with secrets masked. */
export function maskedChange({ path, before, after }: ChangedPart): ConfigChange {
  const shapes = shapesAt(path)
  const name = path.findLast((step) => typeof step === 'string')
  // The guard: configurations are JSON.
  const shown = (value: unknown) => maskValue(value as JsonValue, shapes, String(name ?? ''))
  return {
    path: formatPath(path),
    ...(before === undefined ? {} : { before: shown(before) }),
    ...(after === undefined ? {} : { after: shown(after) }),
  }
}

function shapesAt(path: Path): readonly Shape[] {
  let shapes: readonly Shape[] = alternativesOf(shapeOf(configSchema))
  for (const step of path) {
    // A part of a secret is secret.
    if (shapes.some(({ meta }) => meta.secret === true)) return shapes
    shapes = childShapes(shapes, step)
  }
  return shapes
}
