import type { Draft } from './draft.ts'

/** Style of a file, for the values that are added. */
export type YamlStyle = {
  /** Columns from a map to a map in it. */
  step: number
  /** Columns from a map to the dashes of a list in it. */
  listStep: number
  /** From a dash to the value after it, for lists of lists or maps. */
  dashStep: number
  eol: '\n' | '\r\n'
  quote: "'" | '"'
  /** Double quotes around every text. */
  json: boolean
  /**
   * Restricts output to forms that a comment below cannot alter: no block text; comments below a removed item
   * are removed too.
   */
  careful: boolean
  /** A space inside the braces of a single-line map. */
  braceSpace: boolean
}

/** A value in block style: the text after the key or dash, and the indented lines below. */
export type WrittenBlock = { head: string; body: string[] }

/**
 * Position of a value in block style: after a key or dash at a column. Content after a dash starts at
 * `inner`.
 */
export type BlockPlace = { after: 'key'; column: number } | { after: 'dash'; column: number; inner: number }

/** Writes a value without existing text. */
export function writeBlock(draft: Draft, place: BlockPlace, style: YamlStyle): WrittenBlock {
  const { after, column } = place
  const inner = after === 'dash' ? place.inner : column + style.step
  switch (draft.kind) {
    case 'kept':
      throw new Error('a value that stands in the text is not written again')
    case 'scalar':
      return writeBlockScalar(draft.value, inner, style)
    case 'map': {
      if (draft.entries.size === 0) return { head: '{}', body: [] }
      const lines = [...draft.entries].flatMap(([key, entry]) => writeEntry(key, entry.draft, inner, style))
      return after === 'dash' ? compact(lines) : { head: '', body: lines }
    }
    case 'list': {
      if (draft.items.length === 0) return { head: '[]', body: [] }
      const dashes = after === 'dash' ? inner : column + style.listStep
      const lines = draft.items.flatMap((item) =>
        writeItem(item.draft, { column: dashes, inner: dashes + style.dashStep }, style),
      )
      return after === 'dash' ? compact(lines) : { head: '', body: lines }
    }
  }
}

/** The lines of an entry of a block map with keys at a column. */
export function writeEntry(key: string, draft: Draft, column: number, style: YamlStyle): string[] {
  const { head, body } = writeBlock(draft, { after: 'key', column }, style)
  const start = `${' '.repeat(column)}${writeText(key, 'key', style)}:`
  return [head === '' ? start : `${start} ${head}`, ...body]
}

/** The lines of an item of a block list with dashes at a column, and content at `inner`. */
export function writeItem(
  draft: Draft,
  { column, inner }: { column: number; inner: number },
  style: YamlStyle,
): string[] {
  const { head, body } = writeBlock(draft, { after: 'dash', column, inner }, style)
  // Only a value that continues below must start at the column of those lines.
  const goesOn = draft.kind !== 'scalar' && head !== '[]' && head !== '{}'
  return [`${' '.repeat(column)}-${' '.repeat(goesOn ? inner - column - 1 : 1)}${head}`, ...body]
}

function compact(lines: string[]): WrittenBlock {
  const [first = '', ...body] = lines
  return { head: first.trimStart(), body }
}

/** Flow style. With `indent`, each item is on its own line and the closing bracket at that column. */
export function writeFlow(draft: Draft, style: YamlStyle, indent?: number): string {
  switch (draft.kind) {
    case 'kept':
      throw new Error('a value that stands in the text is not written again')
    case 'scalar':
      return writeScalar(draft.value, 'flow', style)
    case 'list':
      return bracketed('[', ']', flowItems(draft, style, indent), { style, indent })
    case 'map':
      return bracketed('{', '}', flowItems(draft, style, indent), { style, indent })
  }
}

/** The items or entries of a collection in flow style; `indent` is the column of the closing bracket. */
function flowItems(
  draft: Draft & { kind: 'map' | 'list' },
  style: YamlStyle,
  indent: number | undefined,
): string[] {
  const inner = indent === undefined ? undefined : indent + style.step
  if (draft.kind === 'list') return draft.items.map((item) => writeFlow(item.draft, style, inner))
  return [...draft.entries].map(([key, entry]) => flowEntry(key, entry.draft, style, inner))
}

/** `key: value` in flow style; `indent` is the column of a key on its own line. */
export function flowEntry(key: string, draft: Draft, style: YamlStyle, indent?: number): string {
  return `${writeText(key, 'flow', style)}: ${writeFlow(draft, style, indent)}`
}

function bracketed(
  open: string,
  close: string,
  items: readonly string[],
  { style, indent }: { style: YamlStyle; indent: number | undefined },
): string {
  if (items.length === 0) return open + close
  if (indent !== undefined) {
    const line = style.eol + ' '.repeat(indent + style.step)
    return `${open}${line}${items.join(`,${line}`)}${style.eol}${' '.repeat(indent)}${close}`
  }
  const space = open === '{' && style.braceSpace ? ' ' : ''
  return `${open}${space}${items.join(', ')}${space}${close}`
}

function writeBlockScalar(
  value: string | number | boolean | null,
  column: number,
  style: YamlStyle,
): WrittenBlock {
  if (typeof value !== 'string' || style.careful || !readsWellAsLines(value)) {
    return { head: writeScalar(value, 'block', style), body: [] }
  }
  const closed = value.endsWith('\n')
  const lines = (closed ? value.slice(0, -1) : value).split('\n')
  // Literal text has no escapes.
  return {
    head: closed ? '|' : '|-',
    body: lines.map((line) => (line === '' ? '' : ' '.repeat(column) + line)),
  }
}

/** Multi-line text that neither editors nor indentation can alter. */
function readsWellAsLines(text: string): boolean {
  if (!text.includes('\n') || /^[\s]/.test(text) || text.endsWith('\n\n')) return false
  return !/[ \t]\n|[ \t]$/.test(text) && !unprintable.test(text.replaceAll('\n', ''))
}

type Context = 'block' | 'flow' | 'key'

function writeScalar(value: string | number | boolean | null, context: Context, style: YamlStyle): string {
  return typeof value === 'string' ? writeText(value, context, style) : String(value)
}

// Line and paragraph separators end lines in some YAML readers; some drop a byte order mark.
const unprintable = /[\p{Cc}\p{Cs}\p{Cn}\p{Co}\u2028\u2029\u0085\uFEFF]/u

function writeText(text: string, context: Context, style: YamlStyle): string {
  if (style.json || unprintable.test(text)) return doubleQuoted(text)
  if (isPlain(text, context)) return text
  const single = !text.includes("'") && (style.quote === "'" || /["\\]/.test(text))
  const neither = text.includes("'") && /["\\]/.test(text)
  return single || neither ? `'${text.replaceAll("'", "''")}'` : doubleQuoted(text)
}

function doubleQuoted(text: string): string {
  return JSON.stringify(text).replace(/[\p{Cc}\p{Cs}\p{Cn}\p{Co}\u2028\u2029\u0085\uFEFF]/gu, escaped)
}

function escaped(character: string): string {
  let units = ''
  for (let index = 0; index < character.length; index++) {
    units += `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`
  }
  return units
}

/** Whether the text needs no quotes, for YAML 1.1 readers too. Quotes when in doubt. */
function isPlain(text: string, context: Context): boolean {
  if (text === '' || text.trim() !== text || /^[^\p{L}\p{N}_/.$(]/u.test(text)) return false
  if (/:(\s|$)|\s#/.test(text) || looksLikeOther(text)) return false
  if (context === 'block') return true
  return !/[,[\]{}:#&*!|>'"%@`?]/.test(text) && (context === 'flow' || text.length < maxPlainKey)
}

const maxPlainKey = 200

/** Text that could be read as a number, a boolean, a date or null without quotes. */
function looksLikeOther(text: string): boolean {
  return (
    /^(null|true|false|yes|no|on|off|y|n)$/i.test(text) ||
    /^[.\d][\d_.,:eExobaTtZ +-]*$/i.test(text) ||
    /^\.(inf|nan)$/i.test(text) ||
    /^0[xob]/i.test(text) ||
    /^\.\.\./.test(text)
  )
}
