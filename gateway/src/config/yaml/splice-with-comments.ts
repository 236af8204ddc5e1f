import { type Draft, type DraftEntry, EditRefusal, type Original } from './draft.ts'
import type { SourceItem, SourceReference, SourceValue } from './source.ts'
import {
  afterLineBreak,
  columnAt,
  endsLine,
  lineBreakBefore,
  lineEnd,
  lineStart,
  nextNonSpace,
  spaceEnd,
  spaceStart,
  startsLine,
  withComments,
} from './text-lines.ts'
import {
  type BlockPlace,
  flowEntry,
  type WrittenBlock,
  writeBlock,
  writeEntry,
  writeFlow,
  writeItem,
  type YamlStyle,
} from './write.ts'

/** The text of a document, with its style and anchors. */
export type SplicedText = { text: string; style: YamlStyle; references: readonly SourceReference[] }

/**
 * Applies a draft to the text; all other bytes stay unchanged. `root` is the document as an item. Throws
 * `EditRefusal` for a change of an anchored value that aliases share.
 */
export function spliceText(source: SplicedText, root: SourceItem, draft: Draft): string {
  // Stable: splices at the same offset retain their order, inner values first.
  const splices = spliceRoot(source, root, draft).toSorted(
    (one, other) => one.start - other.start || Number(takesOut(one)) - Number(takesOut(other)),
  )
  refuseLostAnchors(splices, source.references)
  return applySplices(source.text, splices)
}

type Splice = { start: number; end: number; text: string }

type Opened = Draft & { kind: 'map' | 'list' } & { original: Original }

/** Context of an item's value: after a key or dash at a column, or between brackets. */
type Place = { kind: 'key' | 'dash'; column: number } | { kind: 'flow' }

function takesOut({ start, end }: Splice): boolean {
  return end > start
}

function replace(start: number, end: number, text: string): Splice[] {
  return start === end && text === '' ? [] : [{ start, end, text }]
}

function applySplices(text: string, splices: readonly Splice[]): string {
  const pieces: string[] = []
  let at = 0
  for (const splice of splices) {
    // Removed lines may overlap. Inserted text never does: the comparison afterwards would detect it.
    if (splice.start > at) pieces.push(text.slice(at, splice.start))
    pieces.push(splice.text)
    at = Math.max(at, splice.end)
  }
  pieces.push(text.slice(at))
  return pieces.join('')
}

function refuseLostAnchors(splices: readonly Splice[], references: readonly SourceReference[]): void {
  if (references.length === 0) return
  const out = splices.filter(takesOut)
  const isOut = (offset: number) => out.some(({ start, end }) => offset >= start && offset < end)
  if (references.some(({ anchor, alias }) => isOut(anchor) && !isOut(alias))) throw sharedRefusal()
}

function sharedRefusal(): EditRefusal {
  return new EditRefusal(
    'the value has an anchor (`&`) and is used in other places of the file too; edit it manually',
  )
}

function spliceRoot(source: SplicedText, root: SourceItem, draft: Draft): Splice[] {
  if (draft.kind === 'kept') return []
  const { text, style } = source
  const { value } = root
  if (isOpened(draft) && survivors(draft).length > 0) return spliceItems(source, draft, root)
  if (value !== undefined && isFilledFlow(value)) {
    return replace(value.start, value.end, writeFlow(draft, style, bracketColumn(text, value)))
  }
  const rootStyle = { ...style, listStep: style.step }
  const { head, body } = writeBlock(draft, { after: 'key', column: -style.step }, rootStyle)
  const written = head === '' ? body.join(style.eol) : head
  if (value !== undefined) return replace(value.start, lineEnd(text, value.end), written)
  const before = root.end > 0 && text[root.end - 1] !== '\n' ? style.eol : ''
  const after = before === '' ? style.eol : ''
  return replace(root.end, root.end, before + written + after)
}

function isOpened(draft: Draft): draft is Opened {
  return (draft.kind === 'map' || draft.kind === 'list') && draft.original !== undefined
}

function isFilledFlow(value: SourceValue): boolean {
  return value.kind.startsWith('flow') && value.items().length > 0
}

function survivors(draft: Opened): { entry: DraftEntry; item: SourceItem }[] {
  const found: { entry: DraftEntry; item: SourceItem }[] = []
  for (const entry of draft.kind === 'map' ? draft.entries.values() : draft.items) {
    if (entry.item !== undefined) found.push({ entry, item: entry.item })
  }
  return found
}

/** Splices inside a collection that retains at least one item. */
function spliceItems(source: SplicedText, draft: Opened, holder: SourceItem): Splice[] {
  const { items } = draft.original
  const kept = survivors(draft)
  const first = items[0]
  const last = kept.at(-1)?.item
  if (first === undefined || last === undefined) return []
  const flow = draft.original.source.kind.startsWith('flow')
  const column = columnAt(source.text, first.start)
  const place: Place = flow ? { kind: 'flow' } : { kind: draft.kind === 'map' ? 'key' : 'dash', column }
  const staying = new Set(kept.map(({ item }) => item))
  const floor = holder.props?.end ?? holder.valueAt ?? 0
  const splices = [
    ...kept.flatMap(({ entry, item }) => spliceValue(source, entry.draft, { item, place })),
    ...(flow
      ? removeFlowItems(source.text, draft, staying)
      : removeBlockItems(source, { items, staying, floor })),
    ...(flow ? addFlowItems(source, draft, last) : addBlockItems(source, draft, { last, column })),
  ]
  if (splices.length > 0) refuseShared(source, holder)
  return splices
}

function refuseShared({ references }: SplicedText, { props }: SourceItem): void {
  if (references.some(({ anchor }) => anchor === props?.anchor)) throw sharedRefusal()
}

function spliceValue(source: SplicedText, draft: Draft, at: { item: SourceItem; place: Place }): Splice[] {
  if (draft.kind === 'kept') return []
  const { item, place } = at
  const { value } = item
  if (isOpened(draft) && survivors(draft).length > 0) return spliceItems(source, draft, item)
  // A flow collection replaced by a collection stays in flow style.
  const alike = isOpened(draft) && size(draft) > 0 && value !== undefined && isFilledFlow(value)
  if (place.kind === 'flow' || alike) return replaceFlowValue(source, item, draft)
  const { kind: after, column } = place
  const inner = replacesInPlace(value) ? columnAt(source.text, startOf(item)) : column + 2
  const where: BlockPlace = after === 'dash' ? { after, column, inner } : { after, column }
  const written = writeBlock(draft, where, source.style)
  if (value === undefined) return fillBlockValue(source, item, written)
  switch (value.kind) {
    case 'block-map':
    case 'block-list':
      return replaceBlockCollection(source, { item, value, written })
    case 'block-scalar':
      return replaceBlockText(source, { item, value, written })
    default:
      return replaceInline(source, { item, value, written })
  }
}

/**
 * Whether the new value starts at the offset of the old one. A collection after a dash continues below at
 * that column.
 */
function replacesInPlace(value: SourceValue | undefined): boolean {
  return value !== undefined && value.kind !== 'block-map' && value.kind !== 'block-list'
}

/** Start of an item's value, with its anchor and tag. */
function startOf({ props, value, end }: SourceItem): number {
  return props?.start ?? value?.start ?? end
}

function size(draft: Draft & { kind: 'map' | 'list' }): number {
  return draft.kind === 'map' ? draft.entries.size : draft.items.length
}

type Replacement = { item: SourceItem; value: SourceValue; written: WrittenBlock }

/** `key:` and `-` without a value, with or without a comment. */
function fillBlockValue(source: SplicedText, item: SourceItem, { head, body }: WrittenBlock): Splice[] {
  const at = item.valueAt ?? item.end
  const colon = item.valueAt === undefined ? ':' : ''
  const end = item.props?.end ?? at
  return [...replace(at, end, colon + behind(head)), ...addLines(source, end, body)]
}

/** Anchor and tag are replaced with the old value. The comment after it stays. */
function replaceInline(source: SplicedText, { item, value, written }: Replacement): Splice[] {
  const { text, style } = source
  const { head, body } = written
  const at = item.valueAt ?? value.start
  const start = startOf(item)
  if (head !== '') return [...replace(start, value.end, head), ...addLines(source, value.end, body)]
  if (text.slice(at, start).includes('\n')) {
    return replace(lineStart(text, start), lineEnd(text, value.end), body.join(style.eol))
  }
  return [...replace(at, value.end, ''), ...addLines(source, value.end, body)]
}

function replaceBlockText(source: SplicedText, { item, value, written }: Replacement): Splice[] {
  const { head, body } = written
  const start = head === '' ? item.valueAt : item.props?.start
  const bodyStart = lineEnd(source.text, value.headerEnd)
  return [
    ...replace(start ?? value.start, value.headerEnd, head),
    ...replace(bodyStart, Math.max(bodyStart, value.end), below(source, body)),
  ]
}

function replaceBlockCollection(source: SplicedText, { item, value, written }: Replacement): Splice[] {
  const { text } = source
  const { head, body } = written
  const at = item.valueAt ?? value.start
  const lines = below(source, body)
  const end = lineEnd(text, value.end)
  if (!startsLine(text, value.start)) return replace(at, end, behind(head) + lines)
  const inlineEnd = item.props?.end ?? at
  const first = body.length > 0 ? lineStart(text, value.start) : withComments(text, value.start, inlineEnd)
  return [
    ...replace(at, inlineEnd, behind(head)),
    ...replace(lineBreakBefore(text, lineStart(text, first)), end, lines),
  ]
}

function behind(head: string): string {
  return head === '' ? '' : ` ${head}`
}

function below({ style }: SplicedText, lines: readonly string[]): string {
  return lines.map((line) => style.eol + line).join('')
}

/** Inserts lines below the line of an offset. */
function addLines(source: SplicedText, end: number, lines: readonly string[]): Splice[] {
  const at = lineEnd(source.text, end)
  return replace(at, at, below(source, lines))
}

function replaceFlowValue({ text, style }: SplicedText, item: SourceItem, draft: Draft): Splice[] {
  const { value } = item
  const own = startsLine(text, item.start) ? columnAt(text, item.start) : undefined
  const indent = value !== undefined && isFilledFlow(value) ? bracketColumn(text, value) : own
  const written = writeFlow(draft, style, indent)
  if (value !== undefined) return replace(startOf(item), value.end, written)
  const at = item.valueAt ?? item.end
  return replace(at, item.props?.end ?? at, `${item.valueAt === undefined ? ':' : ''} ${written}`)
}

/** Column of the closing bracket, if items and bracket are on lines of their own. */
function bracketColumn(text: string, value: SourceValue): number | undefined {
  const first = value.items()[0]
  const lines = first !== undefined && startsLine(text, first.start) && startsLine(text, value.end - 1)
  return lines ? columnAt(text, value.end - 1) : undefined
}

type BlockRemoval = {
  items: readonly SourceItem[]
  staying: ReadonlySet<SourceItem>
  /** After the key or dash of the collection: earlier comments do not belong to its items. */
  floor: number
}

function removeBlockItems({ text, style }: SplicedText, { items, staying, floor }: BlockRemoval): Splice[] {
  if (staying.size === items.length) return []
  const [first] = items
  const shares = first !== undefined && !startsLine(text, first.start)
  const firstStaying = items.findIndex((item) => staying.has(item))
  // The first item follows the dash of an enclosing list. The first remaining item replaces it.
  const last = shares ? items[firstStaying - 1] : undefined
  const splices =
    last === undefined || first === undefined
      ? []
      : replace(first.start, nextNonSpace(text, lineEnd(text, last.end)), '')
  const lines: Lines[] = []
  items.forEach((item, index) => {
    if (staying.has(item) || (shares && index < firstStaying)) return
    const before = items[index - 1]?.end ?? floor
    const end = style.careful ? afterHanging(text, item) : item.end
    lines.push({ start: withComments(text, item.start, before), end })
  })
  return [...splices, ...removeLines(text, lines)]
}

/** End of the comments below an item that are indented further, or of the item. */
function afterHanging(text: string, item: SourceItem): number {
  const column = columnAt(text, item.start)
  let end = item.end
  for (;;) {
    const ink = nextNonSpace(text, lineEnd(text, end))
    if (text[ink] !== '#' || columnAt(text, ink) <= column) return end
    end = ink
  }
}

/** From any offset in the first line to any offset in the last one. */
type Lines = { start: number; end: number }

function removeLines(text: string, all: readonly Lines[]): Splice[] {
  const splices: Splice[] = []
  for (const lines of all) {
    const start = lineStart(text, lines.start)
    const end = lineEnd(text, lines.end)
    const before = splices.at(-1)
    if (before !== undefined && before.end === start) before.end = afterLineBreak(text, end)
    // Prefers the line break before the lines: the last line may have none after it.
    else if (start === 0) splices.push({ start, end: afterLineBreak(text, end), text: '' })
    else splices.push({ start: lineBreakBefore(text, start), end, text: '' })
  }
  return splices
}

function addBlockItems(
  source: SplicedText,
  draft: Opened,
  { last, column }: { last: SourceItem; column: number },
): Splice[] {
  const { text, style } = source
  const inner = column + (dashStepOf(text, last) ?? style.dashStep)
  const lines =
    draft.kind === 'map'
      ? newEntries(draft).flatMap(([key, entry]) => writeEntry(key, entry.draft, column, style))
      : newItems(draft).flatMap((entry) => writeItem(entry.draft, { column, inner }, style))
  return addLines(source, last.end, lines)
}

function newEntries(draft: Draft & { kind: 'map' }): [string, DraftEntry][] {
  return [...draft.entries].filter(([, { item }]) => item === undefined)
}

function newItems(draft: Draft & { kind: 'list' }): DraftEntry[] {
  return draft.items.filter(({ item }) => item === undefined)
}

/** Columns from a dash to the collection on the same line. */
function dashStepOf(text: string, { start, value }: SourceItem): number | undefined {
  if (value?.kind !== 'block-map' && value?.kind !== 'block-list') return undefined
  return text.slice(start, value.start).includes('\n') ? undefined : value.start - start
}

function removeFlowItems(text: string, draft: Opened, staying: ReadonlySet<SourceItem>): Splice[] {
  const { items, source } = draft.original
  const splices = items.flatMap((item, index) => {
    if (staying.has(item)) return []
    const before = items[index - 1]
    const floor = before === undefined ? source.start + 1 : afterComma(before)
    const end = afterComma(item)
    if (startsLine(text, item.start) && endsLine(text, end)) {
      return removeLines(text, [{ start: withComments(text, item.start, floor), end }])
    }
    if (index < items.length - 1) return replace(item.start, spaceEnd(text, end), '')
    return replace(Math.max(floor, spaceStart(text, item.start)), end, '')
  })
  const last = items.findLast((item) => staying.has(item))
  const trailing = items.at(-1)?.comma !== undefined
  const needed = size(draft) > staying.size || trailing || last === items.at(-1)
  if (last?.comma === undefined || needed) return splices
  return [...splices, ...replace(last.comma, last.comma + 1, '')]
}

function addFlowItems({ text, style }: SplicedText, draft: Opened, last: SourceItem): Splice[] {
  const lines = startsLine(text, last.start)
  const indent = lines ? columnAt(text, last.start) : undefined
  const added =
    draft.kind === 'map'
      ? newEntries(draft).map(([key, entry]) => flowEntry(key, entry.draft, style, indent))
      : newItems(draft).map((entry) => writeFlow(entry.draft, style, indent))
  if (added.length === 0) return []
  const trailing = draft.original.items.at(-1)?.comma === undefined ? '' : ','
  const between = indent === undefined ? ' ' : style.eol + ' '.repeat(indent)
  const end = afterComma(last)
  const at = lines && endsLine(text, end) ? lineEnd(text, end) : end
  return [
    ...(last.comma === undefined ? replace(last.end, last.end, ',') : []),
    ...replace(at, at, between + added.join(`,${between}`) + trailing),
  ]
}

function afterComma({ comma, end }: SourceItem): number {
  return comma === undefined ? end : comma + 1
}
