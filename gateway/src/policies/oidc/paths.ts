import type { RequestFacts } from '../../pipeline/exchange.ts'
import { isHttpUrl } from '../../schema/dsl.ts'

const defaultRedirectPath = '/oauth/callback'
const maxReturnLength = 2_048

/** Configured addresses (`OidcConfig`). */
type Addresses = { redirectURI?: string | undefined; logoutPath?: string | undefined }

/** Paths of the policy on its routes, normalised. */
export type LoginPaths = { readonly callback: string; readonly logout: string }

export function loginPaths({ redirectURI, logoutPath }: Addresses): LoginPaths {
  const callback = pathOf(redirectURI ?? defaultRedirectPath)
  return { callback, logout: logoutPath ?? `${callback}/logout` }
}

/** Addresses of the policy, as its browser reaches them. */
export type PublicUrls = {
  redirectUri(request: RequestFacts): string
  /** Completes a path with the public origin. */
  absolute(uri: string, request: RequestFacts): string
  isSecure(request: RequestFacts): boolean
}

/** A configured address applies to all requests; else scheme and host are those of each request. */
export function createPublicUrls({ redirectURI = defaultRedirectPath }: Addresses): PublicUrls {
  const origin = isHttpUrl(redirectURI) ? new URL(redirectURI).origin : undefined
  const originOf = ({ scheme, host }: RequestFacts) => origin ?? `${scheme}://${host}`
  return {
    redirectUri: (request) => (origin === undefined ? originOf(request) + redirectURI : redirectURI),
    absolute: (uri, request) => (isHttpUrl(uri) ? uri : originOf(request) + uri),
    isSecure: ({ scheme }) => (origin === undefined ? scheme === 'https' : origin.startsWith('https:')),
  }
}

/** The mistake in a redirect URI or path; undefined if there is none. */
export function checkCallbackPath(uri: string): string | undefined {
  if (!isHttpUrl(uri) && !isPath(uri)) return 'must be an address (https://...) or a path (/...)'
  const { username, password, search, hash, pathname } = new URL(uri, 'http://host')
  if (username !== '' || password !== '') return 'must not contain a user'
  if (search !== '' || hash !== '' || /[?#]/.test(uri)) return 'must not have a query or a fragment'
  if (pathname === '/') return 'must have a path other than /'
  const written = uri.replace(/^https?:\/\/[^/]*/i, '')
  if (written !== pathname || /\/\/|\/$|%|\/\.{1,2}(?:\/|$)/.test(pathname))
    return 'must have a normalised path: without encoded characters, dot segments, double or trailing slashes'
  return undefined
}

/** Whether a text is an absolute path, not a relative address of another host (`//host`). */
export function isPath(text: string): boolean {
  return /^\/(?![/\\])[^\\\s\p{Cc}]*$/u.test(text)
}

function pathOf(uri: string): string {
  return isHttpUrl(uri) ? new URL(uri).pathname : uri
}

/**
 * Path and query to return to after a login; `/` for a target that a browser could resolve to another origin,
 * directly or after decoding, and for the paths of the policy itself.
 */
export function returnTarget(target: string, paths: LoginPaths): string {
  if (target.length > maxReturnLength || !isSafe(target)) return '/'
  const path = target.split('?', 1)[0]
  return path === paths.callback || path === paths.logout ? '/' : target
}

function isSafe(target: string): boolean {
  if (!isPath(target)) return false
  const path = target.split(/[?#]/, 1)[0] ?? ''
  let decoded = path
  // Servers and browsers decode once; a second time detects a doubly encoded form.
  for (let times = 0; times < 2; times += 1) {
    try {
      decoded = decodeURIComponent(decoded)
    } catch {
      return false
    }
    if (!isPath(decoded.replaceAll(' ', '_'))) return false
  }
  return URL.parse(target, 'http://origin.invalid')?.host === 'origin.invalid'
}
