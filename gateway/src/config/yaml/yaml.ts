import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  parseDocument,
  type Scalar,
  stringify,
} from 'yaml'
import { referencesOf, type SourceReference, type SourceValue, sourceValue, type Token } from './source.ts'

/** A YAML document as values with offsets, before references and aliases are expanded. */
export type YamlTree =
  | { kind: 'map'; offset: number; entries: ReadonlyMap<string, YamlEntry> }
  | { kind: 'list'; offset: number; items: YamlTree[] }
  /** `plain` is false for quoted and block text; `end` is the offset after the last character. */
  | { kind: 'scalar'; offset: number; end: number; value: string | number | boolean | null; plain: boolean }
  | { kind: 'alias'; offset: number; target: YamlTree }

export type YamlEntry = { keyOffset: number; value: YamlTree }

export type YamlSource = YamlText & { value: SourceValue | undefined; references: SourceReference[] }

/** A mistake at an offset of the text. */
export type TextMistake = { offset: number; message: string }

export type Position = { line: number; column: number }

export type YamlText = { tree: YamlTree; mistakes: TextMistake[]; position(offset: number): Position }

const maxDepth = 100

/**
 * Reads one YAML 1.2 (hence also JSON) document. Never throws: `mistakes` contains the errors, the tree the
 * rest. Messages never quote the text, which may contain secrets. Merge keys and duplicate keys are refused.
 */
export function readYaml(text: string): YamlText {
  return readDocument(text, false).yaml
}

/** As `readYaml`, with the tokens for an edit of the text. */
export function readYamlSource(text: string): YamlSource {
  const { yaml, token } = readDocument(text, true)
  const value = token === undefined ? undefined : sourceValue(token)
  const references = token !== undefined && text.includes('*') ? referencesOf(token) : []
  return { ...yaml, value, references }
}

/** As `readYaml`, for a stream of documents, such as manifests. */
export function readYamlDocuments(text: string): YamlText[] {
  const lines = new LineCounter()
  const documents: readonly Document.Parsed[] = parseAllDocuments(text, { lineCounter: lines, ...parsing })
  return documents.map((document) => yamlOf(document, text, lines))
}

// The library compares each key with every other; `entriesOf` uses a Set.
const parsing = { intAsBigInt: true, prettyErrors: false, uniqueKeys: false }

function readDocument(text: string, keepSourceTokens: boolean): { yaml: YamlText; token?: Token } {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, keepSourceTokens, ...parsing })
  const yaml = yamlOf(document, text, lines)
  const isClean = document.errors.length === 0 && document.warnings.length === 0
  const token = isClean ? document.contents?.srcToken : undefined
  return token === undefined ? { yaml } : { yaml, token }
}

function yamlOf(document: Document.Parsed, text: string, lines: LineCounter): YamlText {
  const position = (offset: number) => toPosition(lines, offset)
  const [error] = [...document.errors, ...document.warnings].toSorted(
    (one, other) => one.pos[0] - other.pos[0],
  )
  // After the first syntax error the tree is a guess, and mistakes found in it would mislead.
  if (error !== undefined) {
    const mistake = unquotedReference(text, error.pos[0]) ?? {
      offset: error.pos[0],
      message: syntaxMessage(error.code, error.message),
    }
    return { tree: emptyTree, mistakes: [mistake], position }
  }
  const reading: Reading = { mistakes: [], anchors: new Map() }
  const tree = treeOf(document.contents, reading, 0)
  return { tree, mistakes: reading.mistakes, position }
}

/** Parses a YAML 1.2 document other than configuration. Throws an error with the mistake and its position. */
export function parseYaml(text: string): unknown {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false })
  const [error] = document.errors
  if (error === undefined) return document.toJS({ maxAliasCount: 100 })
  const { line, column } = toPosition(lines, error.pos[0])
  throw new Error(`${syntaxMessage(error.code, error.message)} (line ${line}, column ${column})`)
}

/** Formats plain JSON as a YAML document that readers of YAML 1.1 and 1.2 understand alike. */
export function formatYaml(value: unknown): string {
  return stringify(value, { version: '1.1', aliasDuplicateObjects: false, lineWidth: 0 })
}

/** The offset of the value at a path, or of its key; otherwise of the nearest enclosing value. */
export function locate(tree: YamlTree, path: readonly (string | number)[], part: 'key' | 'value'): number {
  let here = target(tree)
  let offset = tree.offset
  for (const step of path) {
    const entry = entryAt(here, step)
    if (entry === undefined) return offset
    offset = part === 'key' ? entry.keyOffset : entry.value.offset
    here = target(entry.value)
  }
  return offset
}

/** The scalar at a path, for offsets inside it. */
export function scalarAt(
  tree: YamlTree,
  path: readonly (string | number)[],
): (YamlTree & { kind: 'scalar' }) | undefined {
  let here = target(tree)
  for (const step of path) {
    const entry = entryAt(here, step)
    if (entry === undefined) return undefined
    here = target(entry.value)
  }
  return here.kind === 'scalar' ? here : undefined
}

type Reading = {
  mistakes: TextMistake[]
  /** Anchors so far, in text order as YAML requires; `open` while their value is being read. */
  anchors: Map<string, YamlTree | 'open'>
}

const emptyTree: YamlTree = { kind: 'scalar', offset: 0, end: 0, value: null, plain: true }

function treeOf(node: Node | null | undefined, reading: Reading, depth: number): YamlTree {
  if (node === null || node === undefined) return emptyTree
  const offset = node.range?.[0] ?? 0
  if (depth > maxDepth) {
    reading.mistakes.push(depthMistake(offset))
    return { ...emptyTree, offset }
  }
  if (isAlias(node)) return aliasTree(node.source, offset, reading)
  const anchor = 'anchor' in node ? node.anchor : undefined
  if (anchor !== undefined) reading.anchors.set(anchor, 'open')
  const tree = contentTree(node, offset, reading, depth)
  if (anchor !== undefined) reading.anchors.set(anchor, tree)
  return tree
}

function contentTree(node: Node, offset: number, reading: Reading, depth: number): YamlTree {
  if (isScalar(node)) return scalarTree(node, offset, reading)
  if (isSeq<Node>(node)) {
    return { kind: 'list', offset, items: node.items.map((item) => treeOf(item, reading, depth + 1)) }
  }
  if (isMap<Node, Node>(node)) {
    return { kind: 'map', offset, entries: entriesOf(node.items, offset, reading, depth) }
  }
  return { ...emptyTree, offset }
}

/** Resolves anchors here: the library searches the whole document for each alias. */
function aliasTree(source: string, offset: number, reading: Reading): YamlTree {
  const anchored = reading.anchors.get(source)
  if (anchored !== undefined && anchored !== 'open') return { kind: 'alias', offset, target: anchored }
  const message =
    anchored === 'open'
      ? 'this alias is inside the value of its anchor'
      : 'this alias has no preceding anchor'
  reading.mistakes.push({ offset, message })
  return { ...emptyTree, offset }
}

function scalarTree(node: Scalar, offset: number, reading: Reading): YamlTree {
  const value = plainValue(node.value)
  const plain = node.type === 'PLAIN' || node.type === undefined
  const end = node.range?.[1] ?? offset
  if (value !== undefined) return { kind: 'scalar', offset, end, value, plain }
  reading.mistakes.push({ offset, message: unusableScalar(node.value) })
  return { ...emptyTree, offset }
}

function plainValue(value: unknown): string | number | boolean | null | undefined {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : undefined
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

function unusableScalar(value: unknown): string {
  if (typeof value === 'bigint') {
    return `this whole number is beyond ${Number.MAX_SAFE_INTEGER} and would be rounded; put it in quotes if it is text`
  }
  return typeof value === 'number' ? 'this is not a finite number' : 'this YAML type is not supported'
}

function entriesOf(
  pairs: Pair<Node, Node | null>[],
  mapOffset: number,
  reading: Reading,
  depth: number,
): Map<string, YamlEntry> {
  const entries = new Map<string, YamlEntry>()
  for (const { key: keyNode, value } of pairs) {
    const keyOffset = keyNode?.range?.[0] ?? mapOffset
    const key = isScalar(keyNode) ? keyText(keyNode) : undefined
    const problem = keyProblem(key, entries)
    if (problem !== undefined || key === undefined) {
      reading.mistakes.push({ offset: keyOffset, message: problem ?? 'a key must be text' })
      continue
    }
    const tree = treeOf(value, reading, depth + 1)
    // A key without a value has no offset for it.
    entries.set(key, { keyOffset, value: tree === emptyTree ? { ...emptyTree, offset: keyOffset } : tree })
  }
  return entries
}

function keyText(node: Scalar): string | undefined {
  if (typeof node.value === 'string') return node.value
  return node.source ?? undefined
}

function keyProblem(key: string | undefined, taken: ReadonlyMap<string, unknown>): string | undefined {
  if (key === undefined || key === '') return 'a key must be text'
  if (key === '<<') return 'YAML merge keys (`<<`) are not supported'
  if (key === '__proto__') return 'the key `__proto__` is not allowed'
  return taken.has(key) ? `duplicate key \`${key}\`` : undefined
}

function target(tree: YamlTree): YamlTree {
  return tree.kind === 'alias' ? target(tree.target) : tree
}

function entryAt(tree: YamlTree, step: string | number): { keyOffset: number; value: YamlTree } | undefined {
  if (tree.kind === 'map') return tree.entries.get(String(step))
  if (tree.kind !== 'list') return undefined
  const item = tree.items[Number(step)]
  return item === undefined ? undefined : { keyOffset: item.offset, value: item }
}

const syntaxWords: Record<string, string> = {
  BAD_ALIAS: 'this alias is malformed',
  BAD_SCALAR_START: 'text cannot start with this character; put it in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a nested mapping cannot start here; put text that contains `: ` in quotes',
  BLOCK_IN_FLOW: 'a value inside brackets must have brackets or quotes',
  DUPLICATE_KEY: 'duplicate key',
  MULTILINE_IMPLICIT_KEY: 'a key must be on one line',
  MULTIPLE_ANCHORS: 'a value can have only one anchor',
  MULTIPLE_DOCS: 'the file contains more than one YAML document; exactly one is supported',
  MULTIPLE_TAGS: 'a value can have only one tag',
  RESOURCE_EXHAUSTION: `nested more than ${maxDepth} levels deep`,
  TAB_AS_INDENT: 'YAML does not allow tabs as indentation; use spaces',
  TAG_RESOLVE_FAILED: 'this YAML tag is not supported, or does not fit its value',
  UNEXPECTED_TOKEN: 'unexpected token; a quote, bracket or comma is missing or superfluous',
}

function syntaxMessage(code: string, message: string): string {
  const words = syntaxWords[code]
  if (words !== undefined) return words
  // Messages of the library may contain text of the document, so they only select one of ours.
  if (code === 'MISSING_CHAR' && message.includes('closing')) return 'unclosed quote here or before'
  if (code === 'MISSING_CHAR') return 'missing comma, space, or `:` after a key'
  if (code === 'BAD_INDENT' && message.startsWith('Flow')) {
    return 'unclosed bracket before, or content with too little indentation'
  }
  if (code === 'BAD_INDENT') return 'wrong indentation'
  return `YAML syntax error (${code.toLowerCase().replaceAll('_', ' ')})`
}

/** In a flow collection the brace of `${NAME}` opens a mapping. The name of a variable is not secret. */
function unquotedReference(text: string, brace: number): TextMistake | undefined {
  const offset = Math.max(0, brace - 1)
  const [found] = /^\$\{[^{}\n]{1,100}\}/.exec(text.slice(offset, offset + 110)) ?? []
  if (found === undefined) return undefined
  return { offset, message: `a reference to the environment inside brackets must be in quotes: '${found}'` }
}

function depthMistake(offset: number): TextMistake {
  return { offset, message: `nested more than ${maxDepth} levels deep` }
}

function toPosition(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset)
  return { line: Math.max(1, line), column: Math.max(1, col) }
}
