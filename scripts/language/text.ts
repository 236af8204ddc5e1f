/**
 * A piece of English in a file. Each line break is one in the file, so that `line` is the line of the first.
 */
export type Text = { path: string; line: number; text: string }

/** The part of a source from `start` to `end`, with `blank` ranges replaced by spaces. */
export function cut(path: string, source: string, { start, end }: Range, blank: readonly Range[] = []): Text {
  let text = source.slice(start, end)
  for (const range of blank) text = blankOut(text, range.start - start, range.end - start)
  return { path, line: lineAt(source, start), text }
}

export type Range = { start: number; end: number }

/** The number of the line that contains an offset. */
export function lineAt(source: string, offset: number): number {
  let line = 1
  for (let at = source.indexOf('\n'); at >= 0 && at < offset; at = source.indexOf('\n', at + 1)) line += 1
  return line
}

/** Every match of a pattern replaced by spaces, line breaks retained. */
export function without(text: string, pattern: RegExp): string {
  return text.replace(pattern, (match) => match.replace(/[^\n]/g, ' '))
}

/** Removes code in backticks, URLs and paths of links: neither is English. */
export function withoutCode(text: string): string {
  return [/(`+)(?:(?!\n\s*\n)[\s\S])+?\1/g, /\]\([^)\s]*\)/g, /\b[a-z]+:\/\/[^\s)>'"]*/g].reduce(
    without,
    text,
  )
}

function blankOut(text: string, start: number, end: number): string {
  return text.slice(0, start) + without(text.slice(start, end), /[\s\S]+/g) + text.slice(end)
}
