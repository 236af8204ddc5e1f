import { type Checked, check, type Mistake } from '../../schema/check.ts'
import type { Format, Schema } from '../../schema/dsl.ts'
import { formatPath, type Path, valueAt } from '../../schema/path.ts'
import { printable } from '../../schema/printable.ts'
import { type Shape, shapeOf } from '../../schema/shape.ts'
import { visitStrings } from '../../schema/visit-strings.ts'
import { unsupportedKeyMessage } from '../compat/known-keys.ts'
import { locate, type Position, readYaml, scalarAt, type YamlText, type YamlTree } from '../yaml/yaml.ts'
import type { Environment } from './environment.ts'
import { parsePlainJson } from './plain-json.ts'
import { type PlainValue, toPlainValue } from './plain-value.ts'
import { checkValidParts, wholeValue } from './valid-parts.ts'

/** A configuration error: its position, its path and the expected value. */
export type ConfigIssue = {
  file: string
  line: number
  column: number
  /** `llm.models[0].params.apiKey`; empty for the file as a whole. */
  path: string
  message: string
  /** The nearest known key or value, if there is one. */
  suggestion?: string
}

/** Reports a mistake at the value of a path, or at its key, or `at` characters into its text. */
export type ReportConfigIssue = (path: Path, message: string, at?: 'key' | number) => void

/** A rule across the configuration, beyond the schema: unique names, resolvable references. */
export type ConfigCheck<T> = (config: T, report: ReportConfigIssue) => void

/** The error in a text with a format, and its offset in characters, if known. */
export type FormatCheck = (text: string, shape: Shape) => { message: string; at?: number } | undefined

export type ConfigSource<T> = {
  text: string
  /** File name in issues. */
  file: string
  env: Environment
  schema: Schema<T>
  checks: readonly ConfigCheck<T>[]
  /** Changes the value of the text in place, before the schema and the checks read it. */
  prepare?: ((schema: Schema<T>, value: unknown) => void) | undefined
  /** Checks of texts with a format. They also run if the rest of the file has mistakes. */
  formats?: Partial<Record<Format, FormatCheck>>
}

export type LoadResult<T> =
  | {
      kind: 'config'
      config: T
      positions: (path: Path, part?: 'key' | 'value') => Position
      /** The text as a document, with positions and references. */
      document: () => YamlText
    }
  | { kind: 'issues'; issues: ConfigIssue[] }

/** Bound for files that are not configuration at all. */
const maxIssues = 500

/**
 * Loads the text of a configuration file: YAML, environment references, schema, checks. Reports all issues in
 * one run, in the order of the text. An empty text is an empty configuration.
 */
export function loadConfigText<T>(source: ConfigSource<T>): LoadResult<T> {
  const text = withoutByteOrderMark(source.text)
  return loadJson(text, source) ?? loadYaml(text, source)
}

/** Loads a text in JSON; undefined for other texts, and for errors, whose positions need the other reader. */
function loadJson<T>(text: string, source: ConfigSource<T>): LoadResult<T> | undefined {
  const value = parsePlainJson(text)
  if (value !== undefined) source.prepare?.(source.schema, value)
  const checked = value && check(source.schema, value)
  if (checked?.kind !== 'valid' || hasFormatMistakes(source, value)) return undefined
  let hasMistakes = false
  for (const run of source.checks) {
    run(checked.value, () => {
      hasMistakes = true
    })
  }
  if (hasMistakes) return undefined
  const positions = (path: Path, part: 'key' | 'value' = 'value') => {
    const yaml = readYaml(text)
    return yaml.position(locate(yaml.tree, path, part))
  }
  return { kind: 'config', config: checked.value, positions, document: () => readYaml(text) }
}

function loadYaml<T>(text: string, source: ConfigSource<T>): LoadResult<T> {
  const yaml = readYaml(text)
  const plain = toPlainValue(yaml.tree, shapeOf(source.schema), source.env)
  source.prepare?.(source.schema, plain.value)
  const checked = check(source.schema, plain.value, (path) => !plain.fromEnvironment.has(formatPath(path)))
  const unread: Found[] = [...yaml.mistakes.map((mistake) => ({ ...mistake, path: [] })), ...plain.mistakes]
  const found = [...unread, ...furtherMistakes(source, yaml, plain, checked, unread)]
  if (checked.kind === 'valid' && found.length === 0) {
    const positions = (path: Path, part: 'key' | 'value' = 'value') =>
      yaml.position(locate(yaml.tree, path, part))
    return { kind: 'config', config: checked.value, positions, document: () => yaml }
  }
  const ordered = found.toSorted((one, other) => one.offset - other.offset)
  return { kind: 'issues', issues: limited(ordered.map((mistake) => toIssue(mistake, source.file, yaml))) }
}

/** `file:line:column: path: message`, as editors and terminals understand it. */
export function formatIssue({ file, line, column, path, message }: ConfigIssue): string {
  return `${file}:${line}:${column}: ${path === '' ? '' : `${path}: `}${message}`
}

type Found = { offset: number; path: Path; message: string; suggestion?: string }

/**
 * Mistakes that the schema and the checks report, except at values that were not read or expanded: one issue
 * per cause.
 */
function furtherMistakes<T>(
  source: ConfigSource<T>,
  yaml: YamlText,
  plain: PlainValue,
  checked: Checked<T>,
  unread: readonly Found[],
): Found[] {
  if (unread.length > 0 && yaml.tree.kind === 'scalar') return []
  const explained = new Set(unread.map(({ offset }) => offset))
  for (const { path } of unread) if (path.length > 0) explained.add(locate(yaml.tree, path, 'value'))
  const mistakes =
    checked.kind === 'valid' ? [] : withoutConsequences(checked.mistakes, plain.value, shapeOf(source.schema))
  const ofFormats = formatMistakes(source, yaml.tree, plain.value)
  // Both report a text that does not compile; the format check has the exact position.
  const formatted = new Set(ofFormats.map(({ path }) => formatPath(path)))
  const ofChecks = checkMistakes(source, yaml.tree, plain.value, checked)
  return [
    ...mistakes.map((mistake) =>
      withOffset(mistake, { tree: yaml.tree, plain, shape: shapeOf(source.schema) }),
    ),
    ...ofFormats,
    ...ofChecks.filter(({ path }) => !formatted.has(formatPath(path))),
  ].filter(({ offset }) => !explained.has(offset))
}

/**
 * Omits mistakes that follow from an unsupported key of agentgateway in the same object: fields that are
 * missing beside it, and choices without it.
 */
function withoutConsequences(mistakes: readonly Mistake[], value: unknown, root: Shape): readonly Mistake[] {
  const incomplete = new Set<string>()
  for (const { path, part } of mistakes)
    if (part === 'key' && unsupportedKeyMessage(path, root) !== undefined)
      incomplete.add(formatPath(path.slice(0, -1)))
  if (incomplete.size === 0) return mistakes
  return mistakes.filter(({ path, part }) => {
    if (part === 'key') return true
    const isMissing = valueAt(value, path) === undefined
    return !incomplete.has(formatPath(isMissing ? path.slice(0, -1) : path))
  })
}

type Document = { tree: YamlTree; plain: PlainValue; shape: Shape }

function withOffset({ path, part, message, suggestion }: Mistake, { tree, plain, shape }: Document): Found {
  const offset = locate(tree, path, part)
  if (part === 'key') {
    const unsupported = unsupportedKeyMessage(path, shape)
    return unsupported === undefined
      ? { offset, path, message, ...optionally(suggestion) }
      : { offset, path, message: unsupported }
  }
  const quoted = plain.fromEnvironment.has(formatPath(path)) ? quotedReferenceHint(tree, path) : ''
  return { offset, path, message: message + quoted, ...optionally(suggestion) }
}

function quotedReferenceHint(tree: YamlTree, path: Path): string {
  const plainText = scalarAt(tree, path)?.plain === true
  return plainText ? ' from the environment' : ' from the environment; a reference in quotes is always text'
}

function optionally(suggestion: string | undefined): { suggestion?: string } {
  return suggestion === undefined ? {} : { suggestion }
}

function hasFormatMistakes<T>({ schema, formats }: ConfigSource<T>, value: unknown): boolean {
  let found = false
  if (formats === undefined) return found
  visitStrings(schema, value, (text, shapes) => {
    found ||= formatMistake(formats, text, shapes) !== undefined
  })
  return found
}

function formatMistake(
  formats: NonNullable<ConfigSource<unknown>['formats']>,
  text: string,
  shapes: readonly Shape[],
): ReturnType<FormatCheck> {
  const formatted = shapes.find((shape) => shape.kind === 'string' && shape.meta.format !== undefined)
  return formatted?.meta.format && formats[formatted.meta.format]?.(text, formatted)
}

/** Mistakes in texts whose field in the schema has a format with a check. */
function formatMistakes<T>(source: ConfigSource<T>, tree: YamlTree, value: unknown): Found[] {
  const formats = source.formats
  if (formats === undefined) return []
  const found: Found[] = []
  visitStrings(source.schema, value, (text, shapes, path) => {
    const wrong = formatMistake(formats, text, shapes)
    if (wrong) found.push({ offset: offsetInside(tree, path, wrong.at), path, message: wrong.message })
  })
  return found
}

/**
 * An offset inside a scalar, if its value is identical to its text in the file; otherwise the start of the
 * scalar.
 */
function offsetInside(tree: YamlTree, path: Path, at: number | undefined): number {
  const start = locate(tree, path, 'value')
  const scalar = scalarAt(tree, path)
  if (scalar === undefined || at === undefined || scalar.offset !== start) return start
  const length = String(scalar.value).length
  if (String(scalar.value).includes('\n') || at > length) return start
  const written = scalar.end - scalar.offset
  if (written === length) return start + at
  return !scalar.plain && written === length + 2 ? start + 1 + at : start
}

/**
 * Mistakes that the checks report. The checks rely on the schema, so they run on the configuration without
 * its invalid parts: one misspelt key must not hide further mistakes.
 */
function checkMistakes<T>(
  source: ConfigSource<T>,
  tree: YamlTree,
  value: unknown,
  checked: Checked<T>,
): Found[] {
  const valid =
    checked.kind === 'valid' ? wholeValue(checked.value) : checkValidParts(source.schema, value, checked)
  if (valid === undefined) return []
  const found: Found[] = []
  const report: ReportConfigIssue = (place, message, at) => {
    const path = valid.written(place)
    const offset = at === 'key' ? locate(tree, path, 'key') : offsetInside(tree, path, at)
    found.push({ offset, path, message })
  }
  for (const run of source.checks) run(valid.value, report)
  return found
}

function limited(issues: ConfigIssue[]): ConfigIssue[] {
  const [first] = issues
  if (issues.length <= maxIssues || first === undefined) return issues
  const message = `and ${issues.length - maxIssues} more mistakes`
  return [...issues.slice(0, maxIssues), { file: first.file, line: 1, column: 1, path: '', message }]
}

function toIssue({ offset, path, message, suggestion }: Found, file: string, yaml: YamlText): ConfigIssue {
  return {
    file,
    ...yaml.position(offset),
    path: printable(formatPath(path)),
    message: printable(message),
    ...optionally(suggestion),
  }
}

function withoutByteOrderMark(text: string): string {
  return text.startsWith('\uFEFF') ? text.slice(1) : text
}
