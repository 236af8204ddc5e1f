import { findPathVariants, type PathVariants } from './path-variants.ts'

/** A request target split and normalised. */
export type RequestTarget = {
  /** Starts with a slash; no dot segments, no empty segments, no trailing slash; escapes of unreserved characters undone. */
  path: string
  /** With its question mark, as sent; empty when there is none. */
  query: string
  /** The path was sent with a slash at its end. Rules and routes do not see it; the server it is forwarded to may. */
  trailingSlash: boolean
  /** Undefined for a path that every server reads alike. */
  variants: PathVariants | undefined
}

/** Paths that are normal and have one reading. */
const plain = /^(?:\/[A-Za-z0-9_~:@!$&'()*+,=-][A-Za-z0-9._~:@!$&'()*+,=-]*)+$/

/**
 * Reads the target of an HTTP request (RFC 9112 section 3.2), so that rules and routes see one spelling of a path
 * (RFC 3986 section 6.2.2). Undefined when it is none: broken escapes, control characters, fragments, backslashes.
 */
export function parseRequestTarget(target: string): RequestTarget | undefined {
  const question = target.indexOf('?')
  const rawPath = question < 0 ? target : target.slice(0, question)
  const query = question < 0 ? '' : target.slice(question)
  if (query !== '' && /[\s#\0-\x1f\x7f]/.test(query)) return undefined
  if (plain.test(rawPath)) return { path: rawPath, query, trailingSlash: false, variants: undefined }
  const path = normalisePath(withoutAuthority(rawPath))
  if (path === undefined) return undefined
  // A last segment of one or two dots names a directory, too (RFC 3986 section 5.2.4).
  const trailingSlash = path !== '/' && /\/(?:\.|%2e){0,2}$/i.test(rawPath)
  return { path, query, trailingSlash, variants: findPathVariants(path) }
}

/** Absolute-form targets (`GET http://host/path`) must be accepted by servers; the authority is not believed. */
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

/** `%2F` stays escaped, because it is data and not a separator; `%61` is just another way to write `a`. */
function decodeUnreserved(path: string): string | undefined {
  if (!path.includes('%')) return path
  if (/%(?![0-9A-Fa-f]{2})/.test(path)) return undefined
  return path.replace(/%([0-9A-Fa-f]{2})/g, (escaped, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return /[A-Za-z0-9._~-]/.test(character) ? character : escaped.toUpperCase()
  })
}
