/** Codes of the structural characters of JSON (RFC 8259 section 2), in text and in UTF-8. */
export const quote = 0x22
export const comma = 0x2c
export const colon = 0x3a
export const backslash = 0x5c
export const openBracket = 0x5b
export const closeBracket = 0x5d
export const openBrace = 0x7b
export const closeBrace = 0x7d

/** Whether a code is JSON whitespace. */
export function isBlank(code: number | undefined): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

/** Whether a code ends a number or a literal. */
export function endsScalar(code: number): boolean {
  return code === comma || code === closeBrace || code === closeBracket || isBlank(code)
}
