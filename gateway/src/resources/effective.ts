import type { ConfigTree } from '../config/load/validate.ts'
import { configSchema } from '../config/schema.ts'
import { alternativesOf, childShapes, type Shape, shapeOf } from '../schema/shape.ts'
import { isTree } from './hybrid/overlay.ts'
import type { Resources } from './resources.ts'
import { isFlagValue, mask, maskText } from './secrets/secret-text.ts'

/** Source of a part of the effective configuration, by path. */
export type Source =
  | { readonly path: string; readonly source: 'file' | 'database' }
  /** `object` is `<kind>/<namespace>/<name>`. */
  | { readonly path: string; readonly source: 'object'; readonly object: string }

/**
 * The active configuration of file and database, with secrets masked, and the source of each part. List items
 * are created on iteration.
 */
export function effectiveConfig(resources: Resources): { config: unknown; sources: Iterable<Source> } {
  const { config, file, objectOf } = resources.effective()
  return {
    config: masked(config, alternativesOf(shapeOf(configSchema)), { name: '', isInList: false }),
    sources: sourcesOf(config, file, objectOf ?? (() => undefined)),
  }
}

type Place = {
  /** Name of the member with the value, or with its list. */
  readonly name: string
  readonly isInList: boolean
}

/** Masks every secret of a value; lists and maps marked as secret as a whole. */
function masked(value: unknown, shapes: readonly Shape[], { name, isInList }: Place): unknown {
  if (value === undefined || value === null) return value
  if (shapes.some(({ meta }) => meta.secret === true)) return mask
  if (typeof value === 'string') return maskText(value, name)
  if (typeof value !== 'object') return value
  if (Array.isArray(value)) {
    const list: readonly unknown[] = value
    const items = lazily(list, (item, index) =>
      typeof item === 'string' && isFlagValue(list, index)
        ? mask
        : masked(item, childShapes(shapes, 0), { name, isInList: true }),
    )
    return isInList ? [...items] : items
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [
      key,
      masked(entry, childShapes(shapes, key), { name: key, isInList }),
    ]),
  )
}

/** Maps a list on iteration, such as 100,000 keys. */
function* lazily<T, R>(items: readonly T[], change: (item: T, index: number) => R): Generator<R> {
  for (const [index, item] of items.entries()) yield change(item, index)
}

/** Parts from the file are the same objects as in the file; others are not. */
function* sourcesOf(
  config: ConfigTree,
  file: ConfigTree,
  objectOf: (path: readonly (string | number)[]) => string | undefined,
): Generator<Source> {
  const describe = (path: readonly (string | number)[], text: string, isOfFile: boolean): Source => {
    const object = objectOf(path)
    if (object !== undefined) return { path: text, source: 'object', object }
    return { path: text, source: isOfFile ? 'file' : 'database' }
  }
  const visit = function* (here: unknown, own: unknown, path: readonly string[]): Generator<Source> {
    if (Array.isArray(here)) {
      const items = new Set<unknown>(Array.isArray(own) ? own : [])
      for (const [index, item] of here.entries()) {
        yield describe([...path, index], `${path.join('.')}[${index}]`, items.has(item))
      }
    } else if (isTree(here) && (path.length < deepestSection || (own !== undefined && here !== own))) {
      for (const [key, entry] of Object.entries(here))
        yield* visit(entry, ownMember(own, key), [...path, key])
    } else yield describe(path, path.join('.'), here === own)
  }
  yield* visit(config, file, [])
}

/** Minimum depth of reported parts: `llm.models`, `gateways.default`. */
const deepestSection = 2

function ownMember(holder: unknown, key: string): unknown {
  if (typeof holder !== 'object' || holder === null || !Object.hasOwn(holder, key)) return undefined
  return Reflect.get(holder, key)
}
