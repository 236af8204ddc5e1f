import { createHash } from 'node:crypto'
import type { JsonObject } from '../../../lib/json/json.ts'

/** Validated authorization request of a client. Sealed, it passes from page to page. */
export type AuthorizationRequest = {
  /** Digest of the client id. */
  client: string
  redirectUri: string
  state: string | undefined
  /** PKCE challenge of the client, S256. */
  challenge: string
  scopes: readonly string[]
  /** Digest of the cookie of the browser. */
  browser: string
}

/** Digest of a client id, which may be long. */
export function clientDigest(id: string): string {
  return createHash('sha256').update(id).digest('base64url')
}

export function writeRequest(request: AuthorizationRequest): JsonObject {
  const { client, redirectUri, state, challenge, scopes, browser } = request
  return {
    c: client,
    r: redirectUri,
    p: challenge,
    o: scopes.join(' '),
    b: browser,
    ...(state === undefined ? {} : { s: state }),
  }
}

export function readRequest(value: JsonObject | undefined): AuthorizationRequest | undefined {
  if (value === undefined) return undefined
  const { c: client, r: redirectUri, s: state, p: challenge, o: scope, b: browser } = value
  if (typeof client !== 'string' || typeof redirectUri !== 'string' || typeof challenge !== 'string')
    return undefined
  if (typeof scope !== 'string' || typeof browser !== 'string') return undefined
  const scopes = scopesOf(scope)
  return {
    client,
    redirectUri,
    state: typeof state === 'string' ? state : undefined,
    challenge,
    scopes,
    browser,
  }
}

/** The scopes of a `scope` parameter (RFC 6749 section 3.3). */
export function scopesOf(scope: string | undefined): string[] {
  return [...new Set((scope ?? '').split(' ').filter((each) => each !== ''))]
}
