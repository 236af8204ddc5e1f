import { diffLines } from '../../../save/diff/line-diff.ts'

/** Lines of the base that a text replaces, `[start, end)`, and its lines. */
type Edit = { readonly start: number; readonly end: number; readonly lines: readonly string[] }

/**
 * Merges the changes of two texts on the same base, by line. Undefined if both change the same lines, or lines
 * next to each other, differently.
 */
export function mergeTexts(base: string, mine: string, theirs: string): string | undefined {
  if (mine === theirs || base === theirs) return mine
  if (base === mine) return theirs
  const own = editsOf(base, mine)
  const others = editsOf(base, theirs)
  const merged = [...own]
  for (const edit of others) {
    const clash = own.find((other) => other.start <= edit.end && edit.start <= other.end)
    if (clash === undefined) merged.push(edit)
    else if (!isSame(clash, edit)) return undefined
  }
  merged.sort((one, other) => one.start - other.start)
  const lines = linesOf(base)
  const result: string[] = []
  let at = 0
  for (const edit of merged) {
    result.push(...lines.slice(at, edit.start), ...edit.lines)
    at = edit.end
  }
  result.push(...lines.slice(at))
  return result.length === 0
    ? ''
    : `${result.join('\n')}${theirs.endsWith('\n') || mine.endsWith('\n') ? '\n' : ''}`
}

function editsOf(base: string, text: string): readonly Edit[] {
  const edits: { start: number; end: number; lines: string[] }[] = []
  let before = 0
  let open: { start: number; end: number; lines: string[] } | undefined
  for (const line of diffLines(base, text)) {
    if (line.kind === 'same') {
      open = undefined
      before += 1
      continue
    }
    if (open === undefined) {
      open = { start: before, end: before, lines: [] }
      edits.push(open)
    }
    if (line.kind === 'removed') {
      before += 1
      open.end = before
    } else open.lines.push(line.text)
  }
  return edits
}

function isSame(one: Edit, other: Edit): boolean {
  const same = one.start === other.start && one.end === other.end && one.lines.length === other.lines.length
  return same && one.lines.every((line, index) => line === other.lines[index])
}

function linesOf(text: string): readonly string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n')
}
