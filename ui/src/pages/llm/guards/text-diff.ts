export type TextSegment = { readonly kind: 'same' | 'removed' | 'added'; readonly text: string }

/** More words than this are compared as a whole: the comparison takes quadratic time. */
const maxWords = 1_500

/** Differences of two texts by words, in the order of reading. */
export function diffText(before: string, after: string): readonly TextSegment[] {
  if (before === after) return before === '' ? [] : [{ kind: 'same', text: before }]
  const [one, other] = [wordsOf(before), wordsOf(after)]
  if (one.length > maxWords || other.length > maxWords)
    return merged([
      { kind: 'removed', text: before },
      { kind: 'added', text: after },
    ])
  return merged(diffWords(one, other))
}

/** Words, spaces and single other characters. */
function wordsOf(text: string): readonly string[] {
  return text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? []
}

function diffWords(one: readonly string[], other: readonly string[]): readonly TextSegment[] {
  const width = other.length + 1
  // Length of the longest common sequence of the rest, by position in both texts.
  const common = new Uint16Array((one.length + 1) * width)
  const at = (row: number, column: number) => common[row * width + column] ?? 0
  for (let row = one.length - 1; row >= 0; row--)
    for (let column = other.length - 1; column >= 0; column--)
      common[row * width + column] =
        one[row] === other[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1))
  const segments: TextSegment[] = []
  let [row, column] = [0, 0]
  while (row < one.length || column < other.length) {
    const [word, next] = [one[row], other[column]]
    if (word !== undefined && word === next) {
      segments.push({ kind: 'same', text: word })
      row += 1
      column += 1
    } else if (word !== undefined && (next === undefined || at(row + 1, column) >= at(row, column + 1))) {
      segments.push({ kind: 'removed', text: word })
      row += 1
    } else {
      segments.push({ kind: 'added', text: next ?? '' })
      column += 1
    }
  }
  return segments
}

/** Joins neighbours of one kind; removals of a change come before its additions. */
function merged(segments: readonly TextSegment[]): readonly TextSegment[] {
  const result: TextSegment[] = []
  const open = { removed: '', added: '' }
  const close = () => {
    for (const kind of ['removed', 'added'] as const) {
      if (open[kind] !== '') result.push({ kind, text: open[kind] })
      open[kind] = ''
    }
  }
  for (const { kind, text } of segments) {
    if (kind !== 'same') {
      open[kind] += text
      continue
    }
    close()
    const last = result.at(-1)
    if (last?.kind === 'same') result[result.length - 1] = { kind, text: last.text + text }
    else result.push({ kind, text })
  }
  close()
  return result
}
