/** Replaced range of the old text, `[start, end)`, and its new text. */
export type Hunk = { readonly start: number; readonly end: number; readonly text: string }

/**
 * Maximum number of differing words. Above it, the change is one hunk from the first to the last difference.
 */
const maxDifferences = 200

/** Returns the differences of two texts by word, in order. */
export function findHunks(before: string, after: string): Hunk[] {
  if (before === after) return []
  const start = commonStart(before, after)
  const rest = commonEnd(before, after, start)
  const oldMiddle = before.slice(start, before.length - rest)
  const newMiddle = after.slice(start, after.length - rest)
  const fine = oldMiddle === '' || newMiddle === '' ? undefined : diffWords(oldMiddle, newMiddle)
  if (fine === undefined) return [{ start, end: start + oldMiddle.length, text: newMiddle }]
  return fine.map((hunk) => ({ ...hunk, start: hunk.start + start, end: hunk.end + start }))
}

/**
 * Distributes `after`, a modification of `parts` joined by `separator`, to the parts. A change belongs to the
 * part in which it begins. Undefined if there are no parts.
 */
export function writeBack(
  parts: readonly string[],
  separator: string,
  after: string,
): readonly string[] | undefined {
  if (parts.length === 1) return [after]
  const before = parts.join(separator)
  const places = placesOf(parts, separator)
  const filled = places.filter(({ start, end }) => end > start)
  if (filled.length === 0) return parts.length === 0 ? undefined : [after, ...parts.slice(1)]
  const hunks = findHunks(before, after)
  const owned = hunks.map((hunk) => filled.findLast(({ start }) => start <= hunk.start) ?? filled[0])
  return places.map((place) => {
    let text = ''
    let copied = place.start
    for (const [index, hunk] of hunks.entries()) {
      if (hunk.start > copied) text += before.slice(copied, Math.min(hunk.start, place.end))
      copied = Math.max(copied, Math.min(hunk.start, place.end))
      if (owned[index] === place) text += hunk.text
      copied = Math.max(copied, Math.min(hunk.end, place.end))
    }
    return text + before.slice(copied, place.end)
  })
}

/** Creates a rewriter of a text in pieces: each call maps the next piece to its replacement. */
export function createRewriter(before: string, after: string): (piece: string) => string {
  const hunks = endInside(findHunks(before, after), before)
  let next = 0
  let offset = 0
  return (piece) => {
    const pieceEnd = offset + piece.length
    let text = ''
    let copied = offset
    for (;;) {
      const hunk = hunks[next]
      if (hunk === undefined || hunk.start >= pieceEnd) break
      if (hunk.start >= offset) text += before.slice(copied, hunk.start) + hunk.text
      copied = Math.max(copied, Math.min(hunk.end, pieceEnd))
      if (hunk.end > pieceEnd) break
      next += 1
    }
    offset = pieceEnd
    return text + before.slice(copied, pieceEnd)
  }
}

/** Attaches an addition at the end to the last character, because the last piece is not known as such. */
function endInside(hunks: Hunk[], before: string): Hunk[] {
  const last = hunks.at(-1)
  if (last === undefined || last.start < before.length || before === '') return hunks
  const start = before.length - 1
  return [...hunks.slice(0, -1), { start, end: before.length, text: before.slice(start) + last.text }]
}

type Place = { readonly start: number; readonly end: number }

function placesOf(parts: readonly string[], separator: string): Place[] {
  let start = 0
  return parts.map((part) => {
    const place = { start, end: start + part.length }
    start = place.end + separator.length
    return place
  })
}

/** Returns the length of the common prefix, in whole words, or in whole characters if words are long. */
function commonStart(one: string, other: string): number {
  const most = Math.min(one.length, other.length)
  let count = 0
  while (count < most && one.charCodeAt(count) === other.charCodeAt(count)) count += 1
  if (count === one.length && count === other.length) return count
  for (let back = 0; back <= Math.min(longestWord, count); back += 1) {
    if (back === count || isBlank(one.charCodeAt(count - back - 1))) return count - back
  }
  return isHighSurrogate(one.charCodeAt(count - 1)) ? count - 1 : count
}

function commonEnd(one: string, other: string, start: number): number {
  const most = Math.min(one.length, other.length) - start
  const at = (count: number) => one.charCodeAt(one.length - 1 - count)
  let count = 0
  while (count < most && at(count) === other.charCodeAt(other.length - 1 - count)) count += 1
  for (let back = 0; back <= Math.min(longestWord, count); back += 1) {
    if (back === count || isBlank(at(count - back - 1))) return count - back
  }
  return isLowSurrogate(at(count - 1)) ? count - 1 : count
}

/** In characters. Some scripts have no blanks between words. */
const longestWord = 40

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x09 || code === 0x0d
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff
}

/** Myers' O(ND) difference over words and blanks; undefined above `maxDifferences`. */
function diffWords(before: string, after: string): Hunk[] | undefined {
  const old = before.match(words) ?? []
  const now = after.match(words) ?? []
  const trace = searchPath(old, now)
  return trace === undefined ? undefined : hunksOf(old, now, trace)
}

const words = /\s+|[^\s]+/g

/** Returns the reach of each diagonal per number of differences, until one reaches both ends. */
function searchPath(old: readonly string[], now: readonly string[]): Int32Array[] | undefined {
  const offset = maxDifferences + 1
  const reach = new Int32Array(2 * offset + 1)
  const trace: Int32Array[] = []
  for (let differences = 0; differences <= maxDifferences; differences += 1) {
    trace.push(reach.slice())
    for (let diagonal = -differences; diagonal <= differences; diagonal += 2) {
      const below = reach[offset + diagonal + 1] ?? 0
      const above = reach[offset + diagonal - 1] ?? 0
      const down = diagonal === -differences || (diagonal !== differences && above < below)
      let x = down ? below : above + 1
      while (x < old.length && x - diagonal < now.length && old[x] === now[x - diagonal]) x += 1
      reach[offset + diagonal] = x
      if (x >= old.length && x - diagonal >= now.length) return trace
    }
  }
  return undefined
}

/** Traces the path back and joins adjacent differences. */
function hunksOf(old: readonly string[], now: readonly string[], trace: readonly Int32Array[]): Hunk[] {
  const offset = maxDifferences + 1
  const oldStarts = startsOf(old)
  const nowStarts = startsOf(now)
  const newText = nowStarts.at(-1) === undefined ? '' : now.join('')
  const hunks: { start: number; end: number; newStart: number; newEnd: number }[] = []
  let x = old.length
  let y = now.length
  for (let differences = trace.length - 1; differences > 0; differences -= 1) {
    const reach = trace[differences]
    const diagonal = x - y
    const below = reach?.[offset + diagonal + 1] ?? 0
    const above = reach?.[offset + diagonal - 1] ?? 0
    const down = diagonal === -differences || (diagonal !== differences && above < below)
    const fromX = down ? below : above
    const fromY = fromX - (down ? diagonal + 1 : diagonal - 1)
    const step = {
      start: oldStarts[fromX] ?? 0,
      end: oldStarts[down ? fromX : fromX + 1] ?? 0,
      newStart: nowStarts[fromY] ?? 0,
      newEnd: nowStarts[down ? fromY + 1 : fromY] ?? 0,
    }
    const behind = hunks[0]
    if (behind !== undefined && behind.start === step.end && behind.newStart === step.newEnd) {
      behind.start = step.start
      behind.newStart = step.newStart
    } else hunks.unshift(step)
    x = fromX
    y = fromY
  }
  return hunks.map(({ start, end, newStart, newEnd }) => ({
    start,
    end,
    text: newText.slice(newStart, newEnd),
  }))
}

/** Returns the start of each word and the end of the text. */
function startsOf(pieces: readonly string[]): number[] {
  const starts = [0]
  let at = 0
  for (const piece of pieces) {
    at += piece.length
    starts.push(at)
  }
  return starts
}
