/** Encodes values as a cursor: opaque text of a URL. */
export function encodeCursor(values: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(values)).toString('base64url')
}

/** Decodes a cursor with a number of values, which the caller checks; undefined for any other text. */
export function decodeCursor(text: string, count: number): readonly unknown[] | undefined {
  try {
    const read: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return Array.isArray(read) && read.length === count ? read : undefined
  } catch {
    return undefined
  }
}
