import { locate, readYamlDocuments, type YamlText } from '../../../config/yaml/yaml.ts'
import type { JsonLimits } from '../../../lib/json/limits.ts'
import { readJsonObject } from '../../../lib/json/text.ts'
import { printable } from '../../../schema/printable.ts'
import { type ReadOutcome, readObject } from '../read-object.ts'
import { treeValue } from './tree-value.ts'

/** A file with manifests; `name` is relative to its folder. */
export type ManifestFile = { readonly name: string; readonly text: string }

/** Position in a file; the line counts from 1. */
export type Place = { readonly file: string; readonly line: number }

export type ManifestProblem = Place & { readonly message: string }

/** The objects of a file, and its mistakes outside of objects. */
export type ParsedManifest = {
  readonly objects: readonly (Place & { readonly outcome: ReadOutcome })[]
  readonly mistakes: readonly ManifestProblem[]
}

const maxItems = 100_000
const jsonLimits: JsonLimits = { maxDepth: 100, maxMembers: 10_000_000, maxElements: 20_000_000 }

/**
 * Parses a file of YAML documents, or of one JSON document. Items of a `List` count as documents. Never
 * throws. Mistakes do not quote the text.
 */
export function parseManifest(file: ManifestFile): ParsedManifest {
  return parseJson(file) ?? parseYaml(file)
}

/** Parses JSON, which takes a fraction of the time of YAML; undefined for YAML and for mistakes. */
function parseJson({ name, text }: ManifestFile): ParsedManifest | undefined {
  if (!/^\s*\{/.test(text) || text.includes('__proto__')) return undefined
  const json = readJsonObject(text, jsonLimits)
  if (json.kind !== 'object' || json.hasLargeNumbers === true) return undefined
  const lines = { file: name, line: 1 }
  const items = itemsOf(json.value)
  if (items.length > maxItems) return { objects: [], mistakes: [{ ...lines, message: tooManyItems }] }
  return { objects: items.map((item) => ({ ...lines, outcome: readObject(item.value) })), mistakes: [] }
}

function parseYaml({ name, text }: ManifestFile): ParsedManifest {
  const objects: (Place & { outcome: ReadOutcome })[] = []
  const mistakes: ManifestProblem[] = []
  for (const document of readYamlDocuments(text)) {
    const { value, mistakes: wrong } = treeValue(document.tree)
    const found = [...document.mistakes, ...wrong]
    for (const { offset, message } of found) {
      mistakes.push({ file: name, line: document.position(offset).line, message: printable(message) })
    }
    // A document of comments is empty.
    if (found.length > 0 || value === null) continue
    const items = itemsOf(value)
    if (objects.length + items.length > maxItems) {
      mistakes.push({ file: name, line: lineOf(document, []), message: tooManyItems })
      break
    }
    for (const item of items) {
      objects.push({ file: name, line: lineOf(document, item.path), outcome: readObject(item.value) })
    }
  }
  return { objects, mistakes }
}

const tooManyItems = `a file must contain at most ${maxItems} objects: split it`

type Item = { readonly path: readonly (string | number)[]; readonly value: unknown }

/** The items of a `List`, or the value itself. */
function itemsOf(value: unknown): Item[] {
  if (typeof value !== 'object' || value === null || !('kind' in value) || value.kind !== 'List') {
    return [{ path: [], value }]
  }
  const items: readonly unknown[] = 'items' in value && Array.isArray(value.items) ? value.items : []
  return items.map((item, index) => ({ path: ['items', index], value: item }))
}

function lineOf(document: YamlText, path: Item['path']): number {
  return document.position(locate(document.tree, path, 'value')).line
}
