import { formatPath } from '../../schema/path.ts'
import { applyEdit, type Draft, EditRefusal, sameValue, type YamlEdit } from './draft.ts'
import type { SourceItem, SourceValue } from './source.ts'
import { spliceText } from './splice-with-comments.ts'
import { columnAt, lineStart } from './text-lines.ts'
import type { YamlStyle } from './write.ts'
import { readYaml, readYamlSource, type TextMistake, type YamlSource } from './yaml.ts'

export type YamlEditing = { kind: 'edited'; text: string } | { kind: 'refused'; message: string }

/**
 * Edits a YAML document (hence also JSON) in its text, in order; all other bytes stay unchanged, comments
 * included. New values follow the style of the file. A replaced value retains the text of its equal parts.
 * The result is read again and compared with the expected value; a mismatch is refused. Refused with a
 * message that quotes no values: documents with mistakes, paths that do not resolve, values shared through an
 * anchor, numbers that would be rounded.
 */
export function editYaml(text: string, edits: readonly YamlEdit[]): YamlEditing {
  const mark = text.startsWith('\uFEFF') ? '\uFEFF' : ''
  try {
    return { kind: 'edited', text: mark + edited(text.slice(mark.length), edits) }
  } catch (error) {
    if (error instanceof EditRefusal) return { kind: 'refused', message: error.message }
    throw error
  }
}

function edited(text: string, edits: readonly YamlEdit[]): string {
  const source = readYamlSource(text)
  const [mistake] = source.mistakes
  if (mistake !== undefined) {
    const { line, column } = source.position(mistake.offset)
    throw new EditRefusal(`the file has a mistake at line ${line}, column ${column}: ${mistake.message}`)
  }
  let draft: Draft = { kind: 'kept', tree: source.tree, source: source.value }
  for (const edit of edits) draft = applyEdit(draft, edit)
  if (draft.kind === 'kept') return text
  const style = styleOf(text, source.value)
  const item = documentItem(text, source)
  const result = spliceText({ text, style, references: source.references }, item, draft)
  const mistakes = mistakesOf(result, draft)
  if (mistakes === undefined) return result
  // A comment below block text can become a line of it.
  const careful = { text, style: { ...style, careful: true }, references: source.references }
  const second = spliceText(careful, item, draft)
  if (mistakesOf(second, draft) === undefined) return second
  throw new EditRefusal(unsuitable(edits, mistakes))
}

/** The mistakes of the edited text; undefined if it equals the draft. */
function mistakesOf(result: string, draft: Draft): TextMistake[] | undefined {
  const { tree, mistakes } = readYaml(result)
  const budget = { left: 4 * result.length + 1_000_000, depth: 0 }
  return mistakes.length === 0 && sameValue(draft, tree, budget) ? undefined : mistakes
}

function unsuitable(edits: readonly YamlEdit[], [mistake]: readonly TextMistake[]): string {
  const places = edits.slice(0, 3).map(({ path }) => formatPath(path))
  const why = mistake === undefined ? '' : ` (${mistake.message})`
  return `the file does not allow an edit in place, at ${places.join(', ')}${why}; edit it manually`
}

/** The document as an item. Without a value, its end is the insertion point. */
function documentItem(text: string, { value }: YamlSource): SourceItem {
  const marker = value === undefined ? text.search(/^\.\.\.\s*$/m) : -1
  const end = marker === -1 ? text.length : marker
  return { start: 0, valueAt: 0, props: undefined, value, end, comma: undefined, odd: false }
}

/** Enough to determine the style of a file. */
const maxObservations = 2_000

/** The most frequent style of the file; by default two columns and single quotes. */
function styleOf(text: string, root: SourceValue | undefined): YamlStyle {
  const seen: Observations = {
    left: maxObservations,
    steps: new Map(),
    listSteps: new Map(),
    dashSteps: new Map(),
    quotes: new Map(),
    braces: new Map(),
  }
  const first = root?.kind.startsWith('flow') ? root.items()[0] : undefined
  const json = first !== undefined && text[first.start] === '"'
  if (root !== undefined) observe(text, root, seen)
  return {
    step: mostSeen(seen.steps) ?? 2,
    listStep: mostSeen(seen.listSteps) ?? 2,
    dashStep: mostSeen(seen.dashSteps) ?? 2,
    eol: /\r\n/.test(text.slice(0, text.indexOf('\n') + 1)) ? '\r\n' : '\n',
    quote: mostSeen(seen.quotes) === '"' ? '"' : "'",
    json,
    careful: false,
    braceSpace: mostSeen(seen.braces) ?? !json,
  }
}

type Observations = {
  left: number
  steps: Map<number, number>
  listSteps: Map<number, number>
  dashSteps: Map<number, number>
  quotes: Map<string, number>
  braces: Map<boolean, number>
}

function observe(text: string, value: SourceValue, seen: Observations): void {
  if (seen.left-- <= 0) return
  if (value.kind === 'single-quoted') count(seen.quotes, "'")
  if (value.kind === 'double-quoted') count(seen.quotes, '"')
  const items = value.items()
  const first = items[0]
  if (first === undefined) return
  if (value.kind === 'flow-map' && !text.slice(value.start, first.start).includes('\n')) {
    count(seen.braces, first.start > value.start + 1)
  }
  for (const item of items) {
    if (seen.left <= 0) return
    if (item.value === undefined) continue
    observeStep(text, { around: value, item, value: item.value }, seen)
    observe(text, item.value, seen)
  }
}

type Nesting = { around: SourceValue; item: SourceItem; value: SourceValue }

function observeStep(text: string, { around, item, value }: Nesting, seen: Observations): void {
  const first = value.items()[0]
  if (first === undefined) return
  const below = text.slice(item.start, first.start).includes('\n')
  const columns = indentation(text, first.start) - indentation(text, item.start)
  if (value.kind.startsWith('flow')) {
    if (below && columns > 0) count(seen.steps, columns)
    return
  }
  if (around.kind === 'block-list') {
    if (!below) count(seen.dashSteps, first.start - item.start)
    return
  }
  const column = columnAt(text, first.start)
  const step = column - columnAt(text, item.start)
  if (value.kind === 'block-list') count(seen.listSteps, step)
  else if (step > 0) count(seen.steps, step)
}

function indentation(text: string, offset: number): number {
  const start = lineStart(text, offset)
  return text.slice(start, offset).search(/[^ ]|$/)
}

function count<T>(counts: Map<T, number>, value: T): void {
  counts.set(value, (counts.get(value) ?? 0) + 1)
}

function mostSeen<T>(counts: ReadonlyMap<T, number>): T | undefined {
  let best: T | undefined
  let most = 0
  for (const [value, times] of counts) if (times > most) [best, most] = [value, times]
  return best
}
