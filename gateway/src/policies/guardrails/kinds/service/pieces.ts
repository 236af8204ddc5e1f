import type { GuardText } from '../../guard.ts'

/** Characters of a piece that the next one repeats, so that a match across the border is found. */
const overlap = 200

/** Splits a text into pieces of at most `most` UTF-16 units, which overlap. No piece has half a character. */
export function piecesOf(text: string, most: number): string[] {
  if (text.length <= most) return [text]
  const pieces: string[] = []
  for (let start = 0; ; ) {
    const end = characterStart(text, start + most)
    pieces.push(text.slice(start, end))
    if (end >= text.length) return pieces
    start = characterStart(text, end - overlap)
  }
}

/** Splits a text into parts of at most `most` UTF-16 units. */
export function slicesOf(text: string, most: number): string[] {
  const slices: string[] = []
  for (let start = 0; start < text.length; ) {
    const end = characterStart(text, start + most)
    slices.push(text.slice(start, end))
    start = end
  }
  return slices
}

/** The text around a border of two slices, which a match may cross. */
export type Seam = { readonly content: string; readonly border: number }

/** The seams between slices of `slicesOf`, in order. */
export function seamsOf(slices: readonly string[]): Seam[] {
  return slices.slice(1).map((slice, index) => {
    const previous = slices[index] ?? ''
    const end = previous.slice(characterStart(previous, Math.max(0, previous.length - overlap)))
    return { content: end + slice.slice(0, characterStart(slice, overlap)), border: end.length }
  })
}

/** Joins texts for services that check one text. */
export function joined(texts: readonly GuardText[]): string {
  return texts.map(({ content }) => content).join('\n')
}

/** Start of the character at an offset. */
function characterStart(text: string, offset: number): number {
  const code = text.charCodeAt(offset)
  return code >= 0xdc00 && code <= 0xdfff ? offset - 1 : offset
}

/** Calls in flight for one check. */
const concurrency = 4

/**
 * Calls `ask` for the items in order, a few at a time, until one returns a result. Throws the first failure.
 */
export async function findFirst<I, T>(
  items: readonly I[],
  ask: (item: I) => Promise<T | undefined>,
): Promise<T | undefined> {
  for (let start = 0; start < items.length; start += concurrency) {
    const results = await Promise.all(items.slice(start, start + concurrency).map(ask))
    const found = results.find((result) => result !== undefined)
    if (found !== undefined) return found
  }
  return undefined
}
