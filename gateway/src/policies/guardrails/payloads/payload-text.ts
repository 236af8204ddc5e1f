import type { GuardText } from '../guard.ts'
import type { Search } from '../kinds/regex/search.ts'

/**
 * Characters beyond the stored ones that are searched, so that the start of a match is not stored without its
 * mask because the rest is cut off. Longer than keys and certificates in PEM.
 */
export const redactionMargin = 8 * 1024

/** Maximum work of redaction on the thread of traffic, in microseconds. */
const maxWork = 20_000
/** Bytes of a text besides its content. */
const overhead = 32
const maxRoleCharacters = 32
const ellipsis = '…'

export type PayloadLimits = {
  readonly searches: readonly Search[]
  /** Bytes of all contents. */
  readonly maxBytes: number
}

/** JSON text of the list of `maskedTexts`; undefined without content. */
export function payloadText(texts: readonly GuardText[], limits: PayloadLimits): string | undefined {
  const kept = maskedTexts(texts, limits)
  return kept.every(({ content }) => content === '') ? undefined : JSON.stringify(kept)
}

/**
 * Texts with masked matches. The end is cut off beyond `maxBytes`, or earlier if the patterns are expensive
 * to search.
 */
export function maskedTexts(
  texts: readonly GuardText[],
  { searches, maxBytes }: PayloadLimits,
): readonly GuardText[] {
  const cost = searches.reduce((sum, search) => sum + search.cost, 0)
  const wanted = maxBytes + redactionMargin
  const affordable = cost === 0 ? wanted : Math.min(wanted, Math.floor(maxWork / cost))
  const searched = cut(texts, affordable, charactersOf)
  const isCut = searched.length < texts.length || searched.at(-1)?.content.endsWith(ellipsis) === true
  // The end of a cut text may be the start of a match.
  const stored = isCut ? Math.min(maxBytes, affordable - Math.min(redactionMargin, affordable / 2)) : maxBytes
  const masked = searches.reduce(
    (contents, search) => search.mask(contents) ?? contents,
    searched.map(({ content }) => content),
  )
  return cut(
    searched.map(({ role }, index) => ({ role, content: masked[index] ?? '' })),
    Math.floor(stored),
    Buffer.byteLength,
  )
}

/** The first texts up to a size. The last one is cut and ends with an ellipsis. */
function cut(texts: readonly GuardText[], size: number, sizeOf: (text: string) => number): GuardText[] {
  const kept: GuardText[] = []
  let left = size
  for (const { role, content } of texts) {
    const contentSize = sizeOf(content)
    if (contentSize > left) {
      if (left > 0)
        kept.push({ role: shortRole(role), content: `${start(content, left, sizeOf)}${ellipsis}` })
      return kept
    }
    kept.push({ role: shortRole(role), content })
    left -= contentSize + overhead
  }
  return kept
}

function shortRole(role: string): string {
  return role.slice(0, maxRoleCharacters)
}

function charactersOf(text: string): number {
  return text.length
}

/** The start of a text up to a size, without half of a character. */
function start(text: string, size: number, sizeOf: (text: string) => number): string {
  const characters = text.slice(0, size)
  if (sizeOf === charactersOf) return characters.toWellFormed()
  return Buffer.from(characters).subarray(0, size).toString().replace(/�+$/, '')
}
