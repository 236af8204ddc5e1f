// Lines and columns of a text, by offset. Line breaks are LF or CRLF.

/** Where the line of an offset starts. */
export function lineStart(text: string, offset: number): number {
  return offset === 0 ? 0 : text.lastIndexOf('\n', offset - 1) + 1
}

/** Where the line of an offset ends, before its line break. */
export function lineEnd(text: string, offset: number): number {
  const at = text.indexOf('\n', offset)
  if (at === -1) return text.length
  return at > offset && text[at - 1] === '\r' ? at - 1 : at
}

/** Where the next line starts. */
export function afterLineBreak(text: string, offset: number): number {
  const at = text.indexOf('\n', offset)
  return at === -1 ? text.length : at + 1
}

/** Where the line break before the start of a line begins. */
export function lineBreakBefore(text: string, start: number): number {
  if (start === 0) return 0
  return text[start - 2] === '\r' ? start - 2 : start - 1
}

/** How many characters of its line stand before an offset. */
export function columnAt(text: string, offset: number): number {
  return offset - lineStart(text, offset)
}

/** Whether only space stands before on the line. */
export function startsLine(text: string, offset: number): boolean {
  return text.slice(lineStart(text, offset), offset).trim() === ''
}

/** Whether nothing but a comment follows on the line. */
export function endsLine(text: string, offset: number): boolean {
  return /^[ \t]*(#.*)?\r?$/.test(text.slice(offset, lineEnd(text, offset)))
}

/** The end of the spaces and tabs from an offset on. */
export function spaceEnd(text: string, offset: number): number {
  let at = offset
  while (text[at] === ' ' || text[at] === '\t') at++
  return at
}

/** The start of the spaces and tabs before an offset. */
export function spaceStart(text: string, offset: number): number {
  let at = offset
  while (at > 0 && (text[at - 1] === ' ' || text[at - 1] === '\t')) at--
  return at
}

/** The first character from an offset on that is no space or line break. */
export function nextNonSpace(text: string, offset: number): number {
  let at = offset
  while (at < text.length && /\s/.test(text[at] ?? '')) at++
  return at
}
