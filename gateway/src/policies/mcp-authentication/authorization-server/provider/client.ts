import { fetchDocument } from '../../../../identity/jwt/fetch-document.ts'
import { isSecureUrl } from '../../../../identity/provider/discovered-jwks-uri.ts'
import type { ServerMetadata } from '../../../../identity/provider/server-metadata.ts'
import { type JsonObject, parseJsonObject } from '../../../../lib/json/json.ts'
import type { Gauge } from '../../../../lib/planes/gauge.ts'
import type { Headers } from '../../../../net/http/headers.ts'
import type { Send } from '../../../../net/http-client/send.ts'
import type { Log } from '../../../../telemetry/log.ts'
import { describeError } from '../../../../telemetry/log.ts'

/** OAuth client of the provider: authorization code flow with PKCE, and refresh. */
export type ProviderClient = {
  /** Authorization request URL of a login; undefined while the provider is unavailable. */
  authorizationUrl(login: ProviderLogin): Promise<string | undefined>
  /** Whether `iss` of an authorization response is the provider (RFC 9207). */
  isIssuer(iss: string | undefined): Promise<boolean>
  redeem(code: string, verifier: string): Promise<ProviderTokenResponse>
  /** Sends no `scope`, which requests the same scopes as before (RFC 6749 section 6). */
  refresh(refreshToken: string): Promise<ProviderTokenResponse>
}

export type ProviderLogin = { state: string; challenge: string; nonce: string; scopes: readonly string[] }

export type ProviderTokens = {
  accessToken: string
  idToken: string | undefined
  refreshToken: string | undefined
  /** Seconds. */
  expiresIn: number | undefined
  /** Granted scopes, if in the response. */
  scope: string | undefined
}

export type ProviderTokenResponse =
  | { kind: 'tokens'; tokens: ProviderTokens }
  /** The code or the refresh token is invalid or expired. */
  | { kind: 'refused' }
  | { kind: 'unavailable' }

export type ProviderClientOptions = {
  /** Configured issuer; `metadataIssuer` is the issuer of its metadata. */
  issuer: string
  metadataIssuer: string
  serverMetadata: ServerMetadata
  /** Adjusts the metadata for the kind of provider. */
  adjust(metadata: JsonObject): JsonObject
  client: { id: string; secret: string | undefined }
  redirectUri: string
  /** Scopes in addition to those of the client. */
  scopes: readonly string[]
  /** Sent as `resource` (RFC 8707); undefined for a provider that refuses it. */
  resource: string | undefined
  send: Send
  log: Log
  /** Token requests in progress. */
  active: Gauge
}

const maxBytes = 256 * 1024
const timeoutMs = 10_000
/** Limit of concurrent token requests to the provider: the token endpoint is public. */
const maxActive = 32

export function createProviderClient(options: ProviderClientOptions): ProviderClient {
  const { issuer, metadataIssuer, serverMetadata, client, redirectUri, resource, send, log, active } = options

  async function metadata(): Promise<JsonObject | undefined> {
    const found = await serverMetadata()
    if (found === undefined) return undefined
    if (found['issuer'] === metadataIssuer) return options.adjust(found)
    log.warn({ issuer }, 'provider metadata refused: issuer differs')
    return undefined
  }

  function endpoint(found: JsonObject | undefined, name: string): string | undefined {
    const url = found?.[name]
    return typeof url === 'string' && isSecureUrl(url, issuer) ? url : undefined
  }

  async function requestTokens(form: Record<string, string>): Promise<ProviderTokenResponse> {
    const found = await metadata()
    const url = endpoint(found, 'token_endpoint')
    if (url === undefined || !active.tryAdd(1, maxActive)) return { kind: 'unavailable' }
    try {
      return await sendTokenRequest(url, form, found)
    } finally {
      active.subtract(1)
    }
  }

  async function sendTokenRequest(
    url: string,
    form: Record<string, string>,
    found: JsonObject | undefined,
  ): Promise<ProviderTokenResponse> {
    const { headers, fields } = credentials(client, found?.['token_endpoint_auth_methods_supported'])
    const body = new URLSearchParams({ ...form, ...fields, ...(resource === undefined ? {} : { resource }) })
    try {
      const request = { url, method: 'POST', headers, body: body.toString(), maxBytes, timeoutMs }
      return readTokenResponse(await fetchDocument(send, request), log)
    } catch (error) {
      log.warn({ url, err: describeError(error) }, 'provider token request failed')
      return { kind: 'unavailable' }
    }
  }

  return {
    async authorizationUrl({ state, challenge, nonce, scopes }) {
      const start = endpoint(await metadata(), 'authorization_endpoint')
      if (start === undefined) return undefined
      const url = new URL(start)
      const scope = [...new Set([...options.scopes, ...scopes])]
      const query = {
        response_type: 'code',
        client_id: client.id,
        redirect_uri: redirectUri,
        state,
        code_challenge: challenge,
        code_challenge_method: 'S256',
        ...(scope.length === 0 ? {} : { scope: scope.join(' ') }),
        ...(scope.includes('openid') ? { nonce } : {}),
        ...(resource === undefined ? {} : { resource }),
      }
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
      return url.href
    },
    async isIssuer(iss) {
      const found = await metadata()
      if (iss !== undefined) return iss === metadataIssuer || iss === issuer
      return found !== undefined && found['authorization_response_iss_parameter_supported'] !== true
    },
    redeem: (code, verifier) =>
      requestTokens({
        grant_type: 'authorization_code',
        code,
        redirect_uri: redirectUri,
        code_verifier: verifier,
      }),
    refresh: (token) => requestTokens({ grant_type: 'refresh_token', refresh_token: token }),
  }
}

/** Client authentication (RFC 6749 section 2.3.1), by the method that the provider supports. */
function credentials(
  { id, secret }: ProviderClientOptions['client'],
  methods: unknown,
): { headers: Headers; fields: Record<string, string> } {
  const headers: Headers = { 'content-type': 'application/x-www-form-urlencoded' }
  if (secret === undefined) return { headers, fields: { client_id: id } }
  const isPost = Array.isArray(methods) && !methods.includes('client_secret_basic')
  if (isPost) return { headers, fields: { client_id: id, client_secret: secret } }
  const pair = Buffer.from(`${formEncoded(id)}:${formEncoded(secret)}`).toString('base64')
  return { headers: { ...headers, authorization: `Basic ${pair}` }, fields: {} }
}

function formEncoded(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}

function readTokenResponse(
  { status, text }: { status: number; text: string },
  log: Log,
): ProviderTokenResponse {
  const body = parseJsonObject(text)
  if (status !== 200) {
    const { error } = body ?? {}
    if (status < 500 && error === 'invalid_grant') return { kind: 'refused' }
    const shown = typeof error === 'string' && /^[a-z_]{1,40}$/.test(error) ? error : undefined
    log.warn({ status, error: shown }, 'provider token request refused')
    return { kind: 'unavailable' }
  }
  const {
    access_token: accessToken,
    id_token: idToken,
    refresh_token: refreshToken,
    expires_in: expiresIn,
    scope,
  } = body ?? {}
  if (typeof accessToken !== 'string') return { kind: 'unavailable' }
  return {
    kind: 'tokens',
    tokens: {
      accessToken,
      idToken: typeof idToken === 'string' ? idToken : undefined,
      refreshToken: typeof refreshToken === 'string' ? refreshToken : undefined,
      expiresIn: typeof expiresIn === 'number' && expiresIn > 0 ? expiresIn : undefined,
      scope: typeof scope === 'string' ? scope : undefined,
    },
  }
}
