import type { Draft } from './draft.ts'

/** How a file is written, so that what is added looks like the rest. */
export type YamlStyle = {
  /** Columns from a map to a map in it. */
  step: number
  /** Columns from a map to the dashes of a list in it. */
  listStep: number
  /** From a dash to what stands after it, for a list of lists or maps. */
  dashStep: number
  eol: '\n' | '\r\n'
  quote: "'" | '"'
  /** Only double quotes, and every text in them. */
  json: boolean
  /**
   * Nothing that a comment below could turn into something else: no text in lines of its own, and the comments that hang
   * below an item to be removed go with it.
   */
  careful: boolean
  /** A space inside the braces of a map on one line. */
  braceSpace: boolean
}

/** A value in block style: what stands behind the key or the dash, and the lines below it with their indentation. */
export type WrittenBlock = { head: string; body: string[] }

/** Where in block style a value stands: behind a key, or behind a dash, of this column. What is behind a dash starts at `inner`. */
export type BlockPlace = { after: 'key'; column: number } | { after: 'dash'; column: number; inner: number }

/** Writes a value that has no place in the text yet. */
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

/** The lines of an entry of a block map whose keys stand at a column. */
export function writeEntry(key: string, draft: Draft, column: number, style: YamlStyle): string[] {
  const { head, body } = writeBlock(draft, { after: 'key', column }, style)
  const start = `${' '.repeat(column)}${writeText(key, 'key', style)}:`
  return [head === '' ? start : `${start} ${head}`, ...body]
}

/** The lines of an item of a block list whose dashes stand at a column, and what is behind them at `inner`. */
export function writeItem(
  draft: Draft,
  { column, inner }: { column: number; inner: number },
  style: YamlStyle,
): string[] {
  const { head, body } = writeBlock(draft, { after: 'dash', column, inner }, style)
  // Only what goes on below has to start where the lines below do.
  const goesOn = draft.kind !== 'scalar' && head !== '[]' && head !== '{}'
  return [`${' '.repeat(column)}-${' '.repeat(goesOn ? inner - column - 1 : 1)}${head}`, ...body]
}

function compact(lines: string[]): WrittenBlock {
  const [first = '', ...body] = lines
  return { head: first.trimStart(), body }
}

/** In flow style. With `indent` each item has a line of its own, and the bracket that closes stands at that column. */
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

/** The items or entries of a collection in flow style; `indent` is the column of the bracket that closes. */
function flowItems(
  draft: Draft & { kind: 'map' | 'list' },
  style: YamlStyle,
  indent: number | undefined,
): string[] {
  const inner = indent === undefined ? undefined : indent + style.step
  if (draft.kind === 'list') return draft.items.map((item) => writeFlow(item.draft, style, inner))
  return [...draft.entries].map(([key, entry]) => flowEntry(key, entry.draft, style, inner))
}

/** `key: value` in flow style; `indent` is the column of the key where it has a line of its own. */
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
  // Literal text never means anything but itself.
  return {
    head: closed ? '|' : '|-',
    body: lines.map((line) => (line === '' ? '' : ' '.repeat(column) + line)),
  }
}

/** Text of several lines, without what an editor or the indentation could change. */
function readsWellAsLines(text: string): boolean {
  if (!text.includes('\n') || /^[\s]/.test(text) || text.endsWith('\n\n')) return false
  return !/[ \t]\n|[ \t]$/.test(text) && !unprintable.test(text.replaceAll('\n', ''))
}

type Context = 'block' | 'flow' | 'key'

function writeScalar(value: string | number | boolean | null, context: Context, style: YamlStyle): string {
  return typeof value === 'string' ? writeText(value, context, style) : String(value)
}

// Line and paragraph separators end lines for some YAML readers; a byte order mark is dropped by some.
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

/** Whether the text can stand without quotes, for readers of YAML 1.1 as well. Rather quotes too many than one too few. */
function isPlain(text: string, context: Context): boolean {
  if (text === '' || text.trim() !== text || /^[^\p{L}\p{N}_/.$(]/u.test(text)) return false
  if (/:(\s|$)|\s#/.test(text) || looksLikeOther(text)) return false
  if (context === 'block') return true
  return !/[,[\]{}:#&*!|>'"%@`?]/.test(text) && (context === 'flow' || text.length < maxPlainKey)
}

const maxPlainKey = 200

/** Text that unquoted would be, or could be taken for, a number, a truth value, a date or nothing. */
function looksLikeOther(text: string): boolean {
  return (
    /^(null|true|false|yes|no|on|off|y|n)$/i.test(text) ||
    /^[.\d][\d_.,:eExobaTtZ +-]*$/i.test(text) ||
    /^\.(inf|nan)$/i.test(text) ||
    /^0[xob]/i.test(text) ||
    /^\.\.\./.test(text)
  )
}
