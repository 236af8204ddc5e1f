// Lines and columns of a text, by offset. Line breaks are LF or CRLF.

/** Start of the line at an offset. */
export function lineStart(text: string, offset: number): number {
  return offset === 0 ? 0 : text.lastIndexOf('\n', offset - 1) + 1
}

/** End of the line at an offset, before its line break. */
export function lineEnd(text: string, offset: number): number {
  const at = text.indexOf('\n', offset)
  if (at === -1) return text.length
  return at > offset && text[at - 1] === '\r' ? at - 1 : at
}

/** Start of the next line. */
export function afterLineBreak(text: string, offset: number): number {
  const at = text.indexOf('\n', offset)
  return at === -1 ? text.length : at + 1
}

/** Start of the line break before the start of a line. */
export function lineBreakBefore(text: string, start: number): number {
  if (start === 0) return 0
  return text[start - 2] === '\r' ? start - 2 : start - 1
}

/** Number of characters of the line before an offset. */
export function columnAt(text: string, offset: number): number {
  return offset - lineStart(text, offset)
}

/** Whether only whitespace precedes on the line. */
export function startsLine(text: string, offset: number): boolean {
  return text.slice(lineStart(text, offset), offset).trim() === ''
}

/** Whether only a comment follows on the line. */
export function endsLine(text: string, offset: number): boolean {
  return /^[ \t]*(#.*)?\r?$/.test(text.slice(offset, lineEnd(text, offset)))
}

/** End of the spaces and tabs after an offset. */
export function spaceEnd(text: string, offset: number): number {
  let at = offset
  while (text[at] === ' ' || text[at] === '\t') at++
  return at
}

/** Start of the spaces and tabs before an offset. */
export function spaceStart(text: string, offset: number): number {
  let at = offset
  while (at > 0 && (text[at - 1] === ' ' || text[at - 1] === '\t')) at--
  return at
}

/** First offset that is neither space nor line break. */
export function nextNonSpace(text: string, offset: number): number {
  let at = offset
  while (at < text.length && /\s/.test(text[at] ?? '')) at++
  return at
}

/**
 * Start of the comments directly above an item, at its column, or of the item. `floor` is the end of the
 * preceding content, so that multi-line text is not taken for a comment. The schema line for editors stays.
 */
export function withComments(text: string, start: number, floor: number): number {
  const column = columnAt(text, start)
  const lowest = lineEnd(text, floor)
  let first = start
  for (;;) {
    const line = lineStart(text, first)
    if (line === 0) return first
    const above = lineStart(text, line - 1)
    const hash = spaceEnd(text, above)
    if (above < lowest && floor > 0) return first
    if (text[hash] !== '#' || hash - above !== column) return first
    if (text.startsWith('# yaml-language-server:', hash)) return first
    first = hash
  }
}
