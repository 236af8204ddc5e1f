import { findPathVariants, type PathVariants } from './path-variants.ts'

/** A parsed and normalised request target. */
export type RequestTarget = {
  /**
   * Starts with a slash; without dot segments, empty segments or a trailing slash; escapes of unreserved
   * characters are decoded.
   */
  path: string
  /** With its question mark, as received; empty if absent. */
  query: string
  /** Whether the received path ends with a slash. Rules and routes ignore it; the backend may not. */
  trailingSlash: boolean
  /** Undefined for a path without variants. */
  variants: PathVariants | undefined
}

/** Paths that are normalised and have no variants. */
const plain = /^(?:\/[A-Za-z0-9_~:@!$&'()*+,=-][A-Za-z0-9._~:@!$&'()*+,=-]*)+$/

/**
 * Parses the target of an HTTP request (RFC 9112 section 3.2), so that rules and routes see one spelling of a
 * path (RFC 3986 section 6.2.2). Undefined for broken escapes, control characters, fragments and backslashes.
 */
export function parseRequestTarget(target: string): RequestTarget | undefined {
  const question = target.indexOf('?')
  const rawPath = question < 0 ? target : target.slice(0, question)
  const query = question < 0 ? '' : target.slice(question)
  if (query !== '' && /[\s#\0-\x1f\x7f]/.test(query)) return undefined
  if (plain.test(rawPath)) return { path: rawPath, query, trailingSlash: false, variants: undefined }
  const path = normalisePath(withoutAuthority(rawPath))
  if (path === undefined) return undefined
  // A last segment of one or two dots is a directory too (RFC 3986 section 5.2.4).
  const trailingSlash = path !== '/' && /\/(?:\.|%2e){0,2}$/i.test(rawPath)
  return { path, query, trailingSlash, variants: findPathVariants(path) }
}

/** Servers must accept absolute-form targets (`GET http://host/path`); the authority is ignored. */
function withoutAuthority(target: string): string {
  const scheme = /^https?:\/\/[^/]*/i.exec(target)
  return scheme ? target.slice(scheme[0].length) || '/' : target
}

function normalisePath(path: string): string | undefined {
  if (!path.startsWith('/') || /[\s\\#\0-\x1f\x7f]/.test(path)) return undefined
  const decoded = decodeUnreserved(path)
  if (decoded === undefined) return undefined
  const kept: string[] = []
  for (const segment of decoded.split('/')) {
    if (segment === '' || segment === '.') continue
    if (segment === '..') kept.pop()
    else kept.push(segment)
  }
  return `/${kept.join('/')}`
}

/** `%2F` remains escaped, because it is data and not a separator; `%61` is another spelling of `a`. */
function decodeUnreserved(path: string): string | undefined {
  if (!path.includes('%')) return path
  if (/%(?![0-9A-Fa-f]{2})/.test(path)) return undefined
  return path.replace(/%([0-9A-Fa-f]{2})/g, (escaped, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return /[A-Za-z0-9._~-]/.test(character) ? character : escaped.toUpperCase()
  })
}
