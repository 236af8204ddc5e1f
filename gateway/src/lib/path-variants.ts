/**
 * Variants of a path: spellings that lenient servers derive from it. `unsafe` has the reason for a variant
 * without a safe spelling.
 */
export type PathVariants =
  | { readonly kind: 'unsafe'; readonly reason: string }
  | { readonly kind: 'paths'; readonly paths: readonly string[] }

/** Maximum length of a path with variants: each is matched against routes and rules. */
const maxLength = 2048

const nul = '\0'

/**
 * Derives the variants of a normalised path: escapes decoded once and twice, `\` as separator, path
 * parameters (`;x`, RFC 3986 section 3.3) removed, the rest behind an escaped `?` or `#` removed. Undefined
 * for a path without variants. Variants are normalised like paths of `parseRequestTarget`.
 */
export function findPathVariants(path: string): PathVariants | undefined {
  if (!path.includes('%') && !path.includes(';')) return undefined
  const once = decodeVisible(path)
  const twice = decodeVisible(once.replaceAll('%25', '%'))
  const found = new Set<string>()
  for (const text of new Set([path, once, twice])) {
    if (text.includes(nul)) return unsafe('a NUL character')
    const separated = text.replaceAll('\\', '/')
    for (const reading of [separated, withoutParameters(separated)]) {
      const reason = mistakeIn(reading)
      if (reason !== undefined) return unsafe(reason)
      found.add(normalEscapes(reading))
    }
  }
  found.delete(path)
  if (found.size === 0) return undefined
  return path.length > maxLength
    ? unsafe(`escapes or parameters and more than ${maxLength} characters`)
    : { kind: 'paths', paths: [...found] }
}

function unsafe(reason: string): PathVariants {
  return { kind: 'unsafe', reason }
}

/** Decodes the escapes of visible ASCII characters except `%`, and of NUL. */
function decodeVisible(text: string): string {
  return text.replace(/%([2-7][0-9A-Fa-f]|00)/g, (escaped, hex: string) => {
    const code = Number.parseInt(hex, 16)
    return code === 0x20 || code === 0x25 || code === 0x7f ? escaped : String.fromCharCode(code)
  })
}

function withoutParameters(path: string): string {
  const end = path.search(/[?#]/)
  const cut = end < 0 ? path : path.slice(0, end).replace(/(?<=.)\/$/, '')
  return cut.replace(/;[^/]*/g, '')
}

function mistakeIn(path: string): string | undefined {
  for (const segment of path.slice(1).split('/')) {
    if (segment === '') return path === '/' ? undefined : 'an empty segment'
    if (segment === '.' || segment === '..') return 'a dot segment'
  }
  return undefined
}

/** Escapes the characters not allowed in a path, with upper-case digits. */
function normalEscapes(path: string): string {
  return path
    .replace(/%(?![0-9A-Fa-f]{2})/g, '%25')
    .replace(/%[0-9A-Fa-f]{2}/g, (escaped) => escaped.toUpperCase())
    .replaceAll('?', '%3F')
    .replaceAll('#', '%23')
}
