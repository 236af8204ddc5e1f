import { GatewayError } from '../../lib/gateway-error.ts'
import type { Caller } from './caller.ts'
import {
  bearerLocation,
  type CredentialLocation,
  compileLocation,
  type LocationConfig,
} from './credential-location.ts'
import type { AuthorizedRequest } from './placement.ts'

/** A token of the request of the client. */
export type TokenSource = {
  /** Throws a `GatewayError` if the request has none. */
  read(caller: Caller): string
  /** The token; undefined if the request has none. */
  find(caller: Caller): string | undefined
  /** Removes the token from the request to the backend. */
  remove(request: AuthorizedRequest, token: string): void
}

/** The accepted token. The expression is not evaluated, so that no variable contains the token. */
const rawToken = /^\s*jwt\.rawToken(?:\.unredacted\(\))?\s*$/

/** Whether an expression is the accepted token. */
export function isRawToken(expression: string): boolean {
  return rawToken.test(expression)
}

/**
 * Compiles the source of a token. Default: the token that authentication accepted, else the bearer token of
 * the request.
 */
export function compileTokenSource(source: LocationConfig | undefined): TokenSource {
  if (source?.expression !== undefined && isRawToken(source.expression))
    return sourceOf((caller) => caller.token)
  const location = source === undefined ? bearerLocation : compileLocation(source)
  const isBearer = source === undefined || isBearerHeader(source)
  return sourceOf(
    (caller) => (isBearer ? caller.token : undefined) ?? (caller.facts && location.read(caller.facts)),
    location,
  )
}

function isBearerHeader({ header }: LocationConfig): boolean {
  return header?.name.toLowerCase() === 'authorization' && header.prefix?.trim().toLowerCase() === 'bearer'
}

function sourceOf(
  read: (caller: Caller) => string | undefined,
  location: CredentialLocation = bearerLocation,
): TokenSource {
  function find(caller: Caller): string | undefined {
    const token = read(caller)
    return token !== undefined && token.trim() !== '' ? token : undefined
  }

  return {
    find,
    read(caller) {
      const token = find(caller)
      if (token !== undefined) return token
      throw new GatewayError(
        'credential_missing',
        'the backend requires a token of the client, and the request has none',
      )
    },
    remove(request, token) {
      const mark = request.path.indexOf('?')
      const query = mark < 0 ? '' : request.path.slice(mark)
      const parts = { headers: request.headers, query }
      location.remove({ request: parts }, token)
      request.headers = parts.headers
      request.path = (mark < 0 ? request.path : request.path.slice(0, mark)) + parts.query
    },
  }
}
