import type { FileMistake } from '../../../api/tools/config-file.ts'

/** Offsets of mistakes in a text: from their column to the end of the word. Without a line, the first line. */
export function rangesOf(
  text: string,
  mistakes: readonly FileMistake[],
): readonly { readonly from: number; readonly to: number; readonly message: string }[] {
  const starts = lineStarts(text)
  return mistakes.map(({ line = 1, column = 1, path, message }) => {
    const start = starts[Math.min(line, starts.length) - 1] ?? 0
    const end = (starts[line] ?? text.length + 1) - 1
    const from = Math.min(start + column - 1, end)
    const word = /^[^\s:,\]}]+/.exec(text.slice(from, end))
    const shown = path === '' || message.includes(path) ? message : `${path}: ${message}`
    return { from, to: Math.max(from + (word?.[0].length ?? 1), from), message: shown }
  })
}

/** Offset of the first character of each line. */
function lineStarts(text: string): readonly number[] {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}
