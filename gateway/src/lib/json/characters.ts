/** Codes of the characters of structure in JSON (RFC 8259 section 2), as text and as bytes of UTF-8. */
export const quote = 0x22
export const comma = 0x2c
export const colon = 0x3a
export const backslash = 0x5c
export const openBracket = 0x5b
export const closeBracket = 0x5d
export const openBrace = 0x7b
export const closeBrace = 0x7d
