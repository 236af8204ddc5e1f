import { fetchDocument } from '../../../identity/jwt/fetch-document.ts'
import { parseJsonObject } from '../../../lib/json/json.ts'
import type { Headers } from '../../../net/http/headers.ts'
import type { Send } from '../../../net/http-client/send.ts'
import { isCredential } from '../../../upstream/credentials/credential.ts'
import type { FoundServer } from './discovery.ts'
import type { LoginOrigin } from './links.ts'

/** Client of the gateway at an authorization server. */
export type RegisteredClient = {
  readonly id: string
  readonly secret: string | undefined
  readonly issuer: string
  /** Milliseconds since the epoch; undefined for a client without expiry. */
  readonly expiresAt: number | undefined
}

/** Tokens of a user. */
export type LoginTokens = {
  readonly origin: LoginOrigin
  readonly accessToken: string
  readonly refreshToken: string | undefined
  /** Milliseconds since the epoch. */
  readonly expiresAt: number | undefined
}

/** `reason` is for logs: no secrets, no text of the server. */
export type TokenOutcome =
  | { readonly kind: 'tokens'; readonly tokens: LoginTokens }
  /** The code or refresh token is invalid. */
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'unavailable'; readonly reason: string }
  /** The code or refresh token is of another server or client; nothing was sent. */
  | { readonly kind: 'foreign'; readonly reason: string }

const maxBytes = 256 * 1024
const timeoutMs = 10_000

/**
 * Metadata of the gateway as a client without a secret (RFC 7591; OpenID Connect Dynamic Client
 * Registration).
 */
export function clientMetadata(redirectUri: string) {
  const { hostname } = new URL(redirectUri)
  const isLocal = /^(?:localhost|127\.0\.0\.1|\[::1\])$/.test(hostname)
  return {
    client_name: 'Tollgate',
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    application_type: isLocal ? 'native' : 'web',
  }
}

export type RegistrationRequest = {
  readonly server: FoundServer
  readonly redirectUri: string
  readonly scopes: readonly string[]
  readonly send: Send
}

/** Registers the gateway (RFC 7591). Throws with a reason for logs. */
export async function registerClient({
  server,
  redirectUri,
  scopes,
  send,
}: RegistrationRequest): Promise<RegisteredClient> {
  const { registrationEndpoint: url, authMethods = ['client_secret_basic'], issuer } = server
  if (url === undefined) throw new Error(`${issuer} registers no clients: set clientId`)
  const method = ['none', 'client_secret_basic', 'client_secret_post'].find((name) =>
    authMethods.includes(name),
  )
  const body = JSON.stringify({
    ...clientMetadata(redirectUri),
    token_endpoint_auth_method: method ?? 'none',
    ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }),
  })
  const headers = { 'content-type': 'application/json' }
  const reply = await fetchDocument(send, { url, method: 'POST', headers, body, maxBytes, timeoutMs })
  const {
    client_id: id,
    client_secret: secret,
    client_secret_expires_at: end,
  } = parseJsonObject(reply.text) ?? {}
  if (reply.status >= 300 || typeof id !== 'string' || id === '')
    throw new Error(`${issuer} refused the registration with status ${reply.status}`)
  return {
    id,
    secret: typeof secret === 'string' && method !== 'none' ? secret : undefined,
    issuer,
    expiresAt: typeof end === 'number' && end > 0 ? end * 1_000 : undefined,
  }
}

export type TokenRequest = {
  readonly server: FoundServer
  readonly client: RegisteredClient
  readonly send: Send
  /** Milliseconds since the epoch. */
  now(): number
}

/** Sends a token request (RFC 6749 section 4.1.3 and 6) with the resource of RFC 8707. Never rejects. */
export async function requestTokens(
  { server, client, send, now }: TokenRequest,
  grant: Readonly<Record<string, string>>,
): Promise<TokenOutcome> {
  const { headers, fields } = authentication(client, server.authMethods)
  const body = new URLSearchParams({ ...grant, ...fields, resource: server.resource }).toString()
  try {
    const request = { url: server.tokenEndpoint, method: 'POST', headers, body, maxBytes, timeoutMs }
    const { status, text } = await fetchDocument(send, request)
    const origin = { issuer: server.issuer, clientId: client.id }
    return readTokens({ status, text, origin, now: now(), previous: grant['refresh_token'] })
  } catch {
    return { kind: 'unavailable', reason: 'the authorization server does not respond' }
  }
}

function authentication(
  { id, secret }: RegisteredClient,
  methods: readonly string[] = ['client_secret_basic'],
): { headers: Headers; fields: Record<string, string> } {
  const headers: Headers = { 'content-type': 'application/x-www-form-urlencoded' }
  if (secret === undefined) return { headers, fields: { client_id: id } }
  if (!methods.includes('client_secret_basic'))
    return { headers, fields: { client_id: id, client_secret: secret } }
  const pair = Buffer.from(`${formEncoded(id)}:${formEncoded(secret)}`).toString('base64')
  return { headers: { ...headers, authorization: `Basic ${pair}` }, fields: {} }
}

function formEncoded(text: string): string {
  return new URLSearchParams({ x: text }).toString().slice(2)
}

type TokenResponse = {
  readonly status: number
  readonly text: string
  readonly origin: LoginOrigin
  readonly now: number
  /** The refresh token of the request. */
  readonly previous: string | undefined
}

function readTokens({ status, text, origin, now, previous }: TokenResponse): TokenOutcome {
  const body = parseJsonObject(text) ?? {}
  if (status !== 200) {
    const { error } = body
    const shown = typeof error === 'string' && /^[a-z_]{1,40}$/.test(error) ? error : `status ${status}`
    // Errors of the client, such as `invalid_client`, do not concern the grant of the user.
    return { kind: status < 500 && error === 'invalid_grant' ? 'refused' : 'unavailable', reason: shown }
  }
  const {
    access_token: accessToken,
    refresh_token: refreshToken,
    expires_in: seconds,
    token_type: type,
  } = body
  if (typeof accessToken !== 'string' || !isCredential(accessToken))
    return { kind: 'unavailable', reason: 'no access token in the response' }
  if (typeof type === 'string' && type.toLowerCase() !== 'bearer')
    return { kind: 'unavailable', reason: 'another token type than Bearer' }
  const lifetime = typeof seconds === 'number' && seconds > 0 ? seconds * 1_000 : undefined
  return {
    kind: 'tokens',
    tokens: {
      origin,
      accessToken,
      // Without a new one, the previous refresh token remains valid (RFC 6749 section 6).
      refreshToken: typeof refreshToken === 'string' ? refreshToken : previous,
      expiresAt: lifetime === undefined ? undefined : now + lifetime,
    },
  }
}
