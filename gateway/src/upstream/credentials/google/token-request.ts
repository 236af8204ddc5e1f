import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { compileConnection } from '../../connection.ts'
import { createTokenFetch, type TokenFetch, unavailable } from '../cloud/fetch-token.ts'
import { isCredential } from '../credential.ts'
import type { TimedToken } from '../token-cache.ts'

const timeoutMs = 5_000

/** Lifetime of a token whose response has none. */
const defaultLifetimeMs = 300_000

/** A token to request. Access tokens are for all APIs of Google Cloud that the identity may use. */
export type Wanted = { readonly kind: 'access' } | { readonly kind: 'id'; readonly audience: string }

/** Requests a token. Rejects with `GatewayError` (`credential_unavailable`). */
export type RequestGoogleToken = (wanted: Wanted) => Promise<TimedToken>

export const cloudScope = 'https://www.googleapis.com/auth/cloud-platform'

/** A request to a service that issues credentials. */
export type TokenCall = {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Sends requests under the egress policy of a configuration object, within 5 seconds. */
export type CallTokenService = (call: TokenCall) => Promise<TokenFetch>

export function createTokenCall(node: object, context: CompileContext): CallTokenService {
  const connection = compileConnection({}, context.egress.of(node), context)
  const fetchToken = createTokenFetch(context.send, timeoutMs)
  return ({ url, method, headers = {}, body }) => {
    const { origin, pathname, search } = new URL(url)
    return fetchToken({
      origin,
      path: pathname + search,
      method,
      headers: { accept: 'application/json', ...headers },
      body: body === undefined ? undefined : Buffer.from(body),
      connection,
    })
  }
}

/** A form of RFC 6749. */
export function formCall(url: string, form: Readonly<Record<string, string>>): TokenCall {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  return { url, method: 'POST', headers, body: new URLSearchParams(form).toString() }
}

const errorForm = /^[A-Za-z_]{1,60}$/

/**
 * The response of a successful request. Descriptions of the server are not logged: they may contain tokens.
 */
export function accepted(
  { status, body, text }: TokenFetch,
  service: string,
): Pick<TokenFetch, 'body' | 'text'> {
  if (status === 200) return { body, text }
  const { error } = body
  const code = typeof error === 'object' && error !== null && 'status' in error ? error.status : error
  const known = typeof code === 'string' && errorForm.test(code) ? code : 'unknown'
  throw unavailable(`${service}: status ${status}, error ${known}`)
}

/** Reads the wanted token of a response of an OAuth endpoint. */
export function tokenIn(reply: TokenFetch, { kind }: Wanted, service: string): TimedToken {
  const { body } = accepted(reply, service)
  if (kind === 'id') return idToken(body['id_token'], service)
  const { access_token: token, expires_in: seconds } = body
  return {
    token: requiredToken(token, service),
    lifetimeMs: typeof seconds === 'number' && seconds >= 0 ? seconds * 1_000 : defaultLifetimeMs,
  }
}

/** An id token with the remaining lifetime of its claims. */
export function idToken(token: unknown, service: string): TimedToken {
  const text = requiredToken(token, service)
  return { token: text, lifetimeMs: lifetimeOf(text) ?? defaultLifetimeMs }
}

export function requiredToken(token: unknown, service: string): string {
  if (typeof token === 'string' && isCredential(token)) return token
  throw unavailable(`${service}: response without a valid token`)
}

/** Claims `exp` and `iat` of a JWT; the clock of the machine may be wrong. */
function lifetimeOf(jwt: string): number | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString())
    if (typeof claims !== 'object' || claims === null || !('exp' in claims) || !('iat' in claims))
      return undefined
    const { exp, iat } = claims
    return typeof exp === 'number' && typeof iat === 'number' ? Math.max(0, exp - iat) * 1_000 : undefined
  } catch {
    return undefined
  }
}
