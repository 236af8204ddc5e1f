import { type Inline, parseInline } from './parse-inline.ts'

/** Part of a Markdown text. */
export type Block =
  | { readonly kind: 'paragraph'; readonly content: readonly Inline[] }
  | { readonly kind: 'heading'; readonly level: number; readonly content: readonly Inline[] }
  | { readonly kind: 'code'; readonly language: string; readonly text: string }
  | { readonly kind: 'quote'; readonly blocks: readonly Block[] }
  | {
      readonly kind: 'list'
      readonly start: number | undefined
      readonly items: readonly (readonly Block[])[]
    }
  | {
      readonly kind: 'table'
      readonly head: readonly (readonly Inline[])[]
      readonly rows: readonly (readonly (readonly Inline[])[])[]
    }
  | { readonly kind: 'rule' }

type Step = { readonly block: Block; readonly next: number }

const maxDepth = 8
const itemPattern = /^(\s{0,3})(?:([-*+])|(\d{1,9})[.)])(?:\s+|$)/

/** Parses the Markdown of chat models: headings, lists, code, tables, quotes. An unfinished text is parsed as it is. */
export function parseBlocks(text: string): readonly Block[] {
  return blocksOf(text.replaceAll('\r\n', '\n').split('\n'), 0)
}

function blocksOf(lines: readonly string[], depth: number): readonly Block[] {
  const blocks: Block[] = []
  let at = 0
  while (at < lines.length) {
    if (lines[at]?.trim() === '') {
      at += 1
      continue
    }
    const step = blockAt(lines, at, depth)
    blocks.push(step.block)
    at = step.next
  }
  return blocks
}

function blockAt(lines: readonly string[], at: number, depth: number): Step {
  return (
    codeAt(lines, at) ??
    headingAt(lines, at) ??
    ruleAt(lines, at) ??
    tableAt(lines, at) ??
    (depth < maxDepth ? (quoteAt(lines, at, depth) ?? listAt(lines, at, depth)) : undefined) ??
    paragraphAt(lines, at)
  )
}

function codeAt(lines: readonly string[], at: number): Step | undefined {
  const [, indent = '', fence, info = ''] = /^(\s{0,3})(`{3,}|~{3,})\s*([^`]*)$/.exec(lines[at] ?? '') ?? []
  if (fence === undefined) return undefined
  let end = at + 1
  while (end < lines.length && !isClosing(lines[end] ?? '', fence)) end += 1
  const text = lines
    .slice(at + 1, end)
    .map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line))
    .join('\n')
  return { block: { kind: 'code', language: info.trim().split(/\s/)[0] ?? '', text }, next: end + 1 }
}

function isClosing(line: string, fence: string): boolean {
  const text = line.trim()
  return text.startsWith(fence) && text === (fence[0] ?? '').repeat(text.length)
}

function headingAt(lines: readonly string[], at: number): Step | undefined {
  const [, marks, text = ''] = /^\s{0,3}(#{1,6})\s+(.*)$/.exec(lines[at] ?? '') ?? []
  if (marks === undefined) return undefined
  const content = parseInline(text.replace(/\s#+\s*$/, ''))
  return { block: { kind: 'heading', level: marks.length, content }, next: at + 1 }
}

function ruleAt(lines: readonly string[], at: number): Step | undefined {
  const text = (lines[at] ?? '').replaceAll(/\s/g, '')
  return /^(?:-{3,}|\*{3,}|_{3,})$/.test(text) ? { block: { kind: 'rule' }, next: at + 1 } : undefined
}

function tableAt(lines: readonly string[], at: number): Step | undefined {
  const head = lines[at] ?? ''
  const border = lines[at + 1] ?? ''
  if (!head.includes('|') || !border.includes('-') || !border.includes('|')) return undefined
  if (!cellsOf(border).every((cell) => /^:?-+:?$/.test(cell))) return undefined
  const width = cellsOf(head).length
  if (cellsOf(border).length !== width) return undefined
  let end = at + 2
  while (end < lines.length && lines[end]?.includes('|')) end += 1
  const rows = lines.slice(at + 2, end).map((line) => {
    const cells = cellsOf(line)
    return Array.from({ length: width }, (_, column) => parseInline(cells[column] ?? ''))
  })
  return {
    block: { kind: 'table', head: cellsOf(head).map((cell) => parseInline(cell)), rows },
    next: end,
  }
}

function cellsOf(line: string): string[] {
  return line
    .trim()
    .replace(/^\|/, '')
    .replace(/\|$/, '')
    .split('|')
    .map((cell) => cell.trim())
}

function quoteAt(lines: readonly string[], at: number, depth: number): Step | undefined {
  if (!/^\s{0,3}>/.test(lines[at] ?? '')) return undefined
  let end = at
  while (end < lines.length && /^\s{0,3}>/.test(lines[end] ?? '')) end += 1
  const inner = lines.slice(at, end).map((line) => line.replace(/^\s{0,3}>\s?/, ''))
  return { block: { kind: 'quote', blocks: blocksOf(inner, depth + 1) }, next: end }
}

function listAt(lines: readonly string[], at: number, depth: number): Step | undefined {
  const first = itemPattern.exec(lines[at] ?? '')
  if (!first) return undefined
  const ordered = first[3] !== undefined
  const items: (readonly Block[])[] = []
  let position = at
  while (position < lines.length) {
    const item = itemPattern.exec(lines[position] ?? '')
    if (!item || (item[3] !== undefined) !== ordered || ruleAt(lines, position)) break
    const end = endOfItem(lines, position + 1, item[0].length)
    const inner = lines
      .slice(position + 1, end)
      .map((line) => line.slice(Math.min(leading(line), item[0].length)))
    items.push(blocksOf([(lines[position] ?? '').slice(item[0].length), ...inner], depth + 1))
    position = end
  }
  return {
    block: { kind: 'list', start: ordered ? Number(first[3]) : undefined, items },
    next: position,
  }
}

/** Lines of an item: those with more indent than its mark, and empty lines before such a line. */
function endOfItem(lines: readonly string[], from: number, width: number): number {
  const indent = Math.min(width, 2)
  let end = from
  for (let line = from; line < lines.length; line += 1) {
    const text = lines[line] ?? ''
    if (text.trim() === '') {
      // An empty line between two items belongs to the list.
      if (itemPattern.test(lines[line + 1] ?? '')) end = line + 1
      continue
    }
    if (leading(text) < indent) break
    end = line + 1
  }
  return end
}

function leading(line: string): number {
  return line.length - line.trimStart().length
}

function paragraphAt(lines: readonly string[], at: number): Step {
  let end = at + 1
  while (end < lines.length && lines[end]?.trim() !== '' && !beginsBlock(lines, end)) end += 1
  const text = lines
    .slice(at, end)
    .map((line) => line.trim())
    .join('\n')
  return { block: { kind: 'paragraph', content: parseInline(text) }, next: end }
}

function beginsBlock(lines: readonly string[], at: number): boolean {
  const line = lines[at] ?? ''
  return (
    /^\s{0,3}(?:#{1,6}\s|>|`{3,}|~{3,})/.test(line) ||
    itemPattern.test(line) ||
    tableAt(lines, at) !== undefined
  )
}
