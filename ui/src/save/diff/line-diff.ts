/** A line of a comparison: in both texts, or in one of them. Line numbers start at 1. */
export type DiffLine =
  | { readonly kind: 'same'; readonly text: string; readonly before: number; readonly after: number }
  | { readonly kind: 'removed'; readonly text: string; readonly before: number }
  | { readonly kind: 'added'; readonly text: string; readonly after: number }

/** Larger differences than this many lines are shown as one block. */
const maxEdits = 2_000

/** Compares two texts by line, with the fewest changes (Myers, 1986). */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const old = linesOf(before)
  const now = linesOf(after)
  const start = commonStart(old, now)
  const end = commonEnd(old, now, start)
  const middle = editsOf(old.slice(start, old.length - end), now.slice(start, now.length - end))
  const kinds = [
    ...new Array<DiffLine['kind']>(start).fill('same'),
    ...middle,
    ...new Array<DiffLine['kind']>(end).fill('same'),
  ]
  return numbered(kinds, old, now)
}

function linesOf(text: string): readonly string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n')
}

function commonStart(old: readonly string[], now: readonly string[]): number {
  let count = 0
  while (count < old.length && count < now.length && old[count] === now[count]) count++
  return count
}

function commonEnd(old: readonly string[], now: readonly string[], start: number): number {
  const most = Math.min(old.length, now.length) - start
  let count = 0
  while (count < most && old[old.length - 1 - count] === now[now.length - 1 - count]) count++
  return count
}

function editsOf(old: readonly string[], now: readonly string[]): DiffLine['kind'][] {
  const traces = forward(old, now)
  if (traces === undefined) {
    return [
      ...new Array<DiffLine['kind']>(old.length).fill('removed'),
      ...new Array<DiffLine['kind']>(now.length).fill('added'),
    ]
  }
  return backtrack(traces, old.length, now.length)
}

/** Furthest positions on each diagonal after each number of edits. */
function forward(old: readonly string[], now: readonly string[]): Map<number, number>[] | undefined {
  const traces: Map<number, number>[] = []
  const furthest = new Map([[1, 0]])
  for (let edits = 0; edits <= Math.min(maxEdits, old.length + now.length); edits++) {
    traces.push(new Map(furthest))
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const left = furthest.get(diagonal - 1) ?? -1
      const right = furthest.get(diagonal + 1) ?? -1
      let x = diagonal === -edits || (diagonal !== edits && left < right) ? right : left + 1
      let y = x - diagonal
      while (x < old.length && y < now.length && old[x] === now[y]) {
        x++
        y++
      }
      furthest.set(diagonal, x)
      if (x >= old.length && y >= now.length) return traces
    }
  }
  return undefined
}

function backtrack(traces: readonly Map<number, number>[], oldLength: number, nowLength: number) {
  const kinds: DiffLine['kind'][] = []
  let x = oldLength
  let y = nowLength
  for (let edits = traces.length - 1; edits >= 0; edits--) {
    const furthest = traces[edits] ?? new Map<number, number>()
    const diagonal = x - y
    const left = furthest.get(diagonal - 1) ?? -1
    const right = furthest.get(diagonal + 1) ?? -1
    const isDown = diagonal === -edits || (diagonal !== edits && left < right)
    const from = isDown ? diagonal + 1 : diagonal - 1
    const fromX = furthest.get(from) ?? 0
    const fromY = fromX - from
    while (x > fromX && y > fromY && x > 0 && y > 0) {
      kinds.push('same')
      x--
      y--
    }
    if (edits > 0) kinds.push(isDown ? 'added' : 'removed')
    x = fromX
    y = fromY
  }
  return kinds.reverse()
}

function numbered(
  kinds: readonly DiffLine['kind'][],
  old: readonly string[],
  now: readonly string[],
): readonly DiffLine[] {
  let before = 0
  let after = 0
  return kinds.map((kind): DiffLine => {
    if (kind === 'removed') return { kind, text: old[before] ?? '', before: ++before }
    if (kind === 'added') return { kind, text: now[after] ?? '', after: ++after }
    return { kind, text: now[after] ?? '', before: ++before, after: ++after }
  })
}
