import { escapeReferences } from '../../config/load/escape-references.ts'
import type { ConfigTree } from '../../config/load/validate.ts'
import { locate, type YamlText, type YamlTree } from '../../config/yaml/yaml.ts'
import { kinds } from '../kinds.ts'
import { fileParts } from './file-records.ts'

/**
 * What the text of a configuration file has beyond the configuration: the line of each record, and
 * references to the environment. Plain data, for transfer from a thread.
 */
export type FileIndex = {
  /** Lines by kind and then by the last step of the path of the record; of settings, by an empty text. */
  readonly lines: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly references: References | undefined
}

/** Texts with references by the path of their values. Lists have their indexes as members. */
export type References = { readonly [step: string]: References | string }

const noReferences: ReadonlySet<string> = new Set()

/** Index of a text and the configuration that it expands to. */
export function indexFile({ tree, position }: YamlText, config: ConfigTree): FileIndex {
  const lines: Record<string, Record<string, number>> = {}
  for (const kind of kinds) {
    const ofKind: Record<string, number> = {}
    for (const { path } of fileParts(config, kind)) {
      const step = path.length === kind.placement.path.length ? '' : String(path.at(-1))
      ofKind[step] = position(locate(tree, path, 'key')).line
    }
    lines[kind.name] = ofKind
  }
  return { lines, references: referencesIn(tree, config) }
}

/** The line of a record of the file; undefined if it is not in the index. */
export function lineOf(
  { lines }: FileIndex,
  {
    kind,
    path,
  }: { kind: { name: string; placement: { path: readonly string[] } }; path: readonly unknown[] },
): number | undefined {
  const step = path.length === kind.placement.path.length ? '' : String(path.at(-1))
  return lines[kind.name]?.[step]
}

/** Texts of a document whose value contains the value of a variable. */
function referencesIn(tree: YamlTree, value: unknown): References | undefined {
  const found: Record<string, References | string> = {}
  const add = (step: string | number, child: YamlTree) => {
    const below = Object.hasOwn(Object(value), step) ? Reflect.get(Object(value), step) : undefined
    const inside = child.kind === 'scalar' ? referenceIn(child, below) : referencesIn(child, below)
    if (inside !== undefined) found[step] = inside
  }
  switch (tree.kind) {
    case 'map':
      for (const [key, entry] of tree.entries) add(key, entry.value)
      break
    case 'list':
      for (const [index, item] of tree.items.entries()) add(index, item)
      break
    case 'alias':
      return referencesIn(tree.target, value)
    case 'scalar':
      return undefined
  }
  return Object.keys(found).length === 0 ? undefined : found
}

/** The text, unless it is the escaped form of its value. */
function referenceIn({ value: text }: YamlTree & { kind: 'scalar' }, value: unknown): string | undefined {
  if (typeof text !== 'string' || !text.includes('$')) return undefined
  return escapeReferences(value, noReferences) === text ? undefined : text
}

/** A value with references in place of the values of variables. */
export function withReferences(value: unknown, references: References | string | undefined): unknown {
  if (references === undefined) return value
  if (typeof references === 'string') return references
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item, index) => withReferences(item, references[index]))
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      withReferences(member, Object.hasOwn(references, key) ? references[key] : undefined),
    ]),
  )
}

/** The references at a path. */
export function referencesAt(
  references: References | undefined,
  path: readonly (string | number)[],
): References | string | undefined {
  let here: References | string | undefined = references
  for (const step of path) {
    if (typeof here !== 'object' || !Object.hasOwn(here, step)) return undefined
    here = here[step]
  }
  return here
}
