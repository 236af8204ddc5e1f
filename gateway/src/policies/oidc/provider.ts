import { fetchDocument } from '../../identity/jwt/fetch-document.ts'
import { isSecureUrl } from '../../identity/provider/discovered-jwks-uri.ts'
import type { ServerMetadata } from '../../identity/provider/server-metadata.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject } from '../../lib/json/json.ts'
import type { Gauge } from '../../lib/planes/gauge.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { Send } from '../../net/http-client/send.ts'
import { describeError, type Log } from '../../telemetry/log.ts'

/** OpenID Connect client of a provider. */
export type LoginProvider = {
  /** Authorization request of a login. */
  authorizationUrl(login: AuthorizationLogin): Promise<ProviderResult<string>>
  /** Redeems the code of an authorization response, with checks of `state`, `iss` and `nonce`. */
  redeem(response: AuthorizationResponse): Promise<ProviderResult<LoginTokens>>
  refresh(refreshToken: string): Promise<ProviderResult<LoginTokens>>
  /** Claims of the UserInfo endpoint; an empty object if the provider has none. */
  userinfo(accessToken: string, subject: string): Promise<ProviderResult<JsonObject>>
  /** Logout at the provider; undefined if it has no logout endpoint. */
  endSessionUrl(parameters: Record<string, string>): Promise<string | undefined>
  /** Revokes a refresh token, if the provider has an endpoint for it. Never rejects. */
  revoke(refreshToken: string): Promise<void>
}

export type AuthorizationLogin = { redirectUri: string; state: string; nonce: string; verifier: string }

export type AuthorizationResponse = AuthorizationLogin & {
  /** Query of the response, with its question mark. */
  query: string
}

export type LoginTokens = {
  accessToken: string
  idToken: string | undefined
  refreshToken: string | undefined
  /** Seconds. */
  expiresIn: number | undefined
}

/** `reason` is for the page and the log: no secrets, no text of the provider. */
export type ProviderResult<T> =
  | { kind: 'found'; value: T }
  | { kind: 'refused'; reason: string }
  | { kind: 'unavailable'; reason: string }

export type LoginProviderOptions = {
  issuer: string
  client: { id: string; secret: string | undefined }
  scopes: readonly string[]
  serverMetadata: ServerMetadata
  /** Client authentication in place of the one that the metadata supports. */
  authentication: 'clientSecretBasic' | 'clientSecretPost' | undefined
  send: Send
  log: Log
  /** Requests in progress, in all data planes. */
  active: Gauge
}

type Library = typeof import('openid-client')
type Configuration = InstanceType<Library['Configuration']>
type Connected = { library: Library; configuration: Configuration }

const maxBytes = 256 * 1024
const timeoutMs = 10_000
/** Anybody can cause requests to the provider. */
const maxActive = 32
const leewaySeconds = 60
/** Algorithms that `identity/jwt` verifies. */
const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
]

/** Creates the client of a provider. The library is loaded with the first login. Owner of openid-client. */
export function createLoginProvider(options: LoginProviderOptions): LoginProvider {
  const { issuer, scopes, serverMetadata, log } = options
  let latest: { metadata: JsonObject; connected: Connected } | undefined

  async function connect(): Promise<ProviderResult<Connected>> {
    const metadata = await serverMetadata()
    if (metadata === undefined) return { kind: 'unavailable', reason: `${issuer} does not respond` }
    if (metadata['issuer'] !== issuer) {
      log.warn({ issuer }, 'provider metadata refused: issuer differs')
      return { kind: 'unavailable', reason: `the metadata of ${issuer} has another issuer` }
    }
    if (latest?.metadata !== metadata) {
      const library = await import('openid-client')
      latest = { metadata, connected: { library, configuration: configure(library, metadata, options) } }
    }
    return { kind: 'found', value: latest.connected }
  }

  /** Sends requests of `work`, and maps failures. */
  async function run<T>(
    purpose: string,
    work: (connected: Connected) => Promise<T>,
  ): Promise<ProviderResult<T>> {
    const connected = await connect()
    if (connected.kind !== 'found') return connected
    if (connected.value.configuration.serverMetadata().token_endpoint === undefined)
      return { kind: 'unavailable', reason: `${issuer} has no usable token endpoint` }
    if (!options.active.tryAdd(1, maxActive))
      return { kind: 'unavailable', reason: 'too many logins at the same time' }
    try {
      return { kind: 'found', value: await work(connected.value) }
    } catch (error) {
      const failure = failureOf(connected.value.library, error)
      log.warn(
        { issuer, purpose, reason: failure.reason, err: withoutBody(error) },
        'provider request failed',
      )
      return failure
    } finally {
      options.active.subtract(1)
    }
  }

  return {
    async authorizationUrl({ redirectUri, state, nonce, verifier }) {
      const connected = await connect()
      if (connected.kind !== 'found') return connected
      const { library, configuration } = connected.value
      if (configuration.serverMetadata().authorization_endpoint === undefined)
        return { kind: 'unavailable', reason: `${issuer} has no usable authorization endpoint` }
      const url = library.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: scopes.join(' '),
        state,
        nonce,
        code_challenge: await library.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      })
      return { kind: 'found', value: url.href }
    },
    redeem: ({ redirectUri, query, state, nonce, verifier }) =>
      run('code', async ({ library, configuration }) => {
        const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier }
        const url = new URL(redirectUri + query)
        return readTokens(await library.authorizationCodeGrant(configuration, url, checks))
      }),
    refresh: (refreshToken) =>
      run('refresh', async ({ library, configuration }) =>
        readTokens(await library.refreshTokenGrant(configuration, refreshToken)),
      ),
    userinfo: (accessToken, subject) =>
      run('userinfo', async ({ library, configuration }) => {
        if (configuration.serverMetadata().userinfo_endpoint === undefined) return {}
        const claims: unknown = await library.fetchUserInfo(configuration, accessToken, subject)
        return isJsonObject(claims) ? claims : {}
      }),
    async endSessionUrl(parameters) {
      const connected = await connect()
      if (connected.kind !== 'found') return undefined
      const { library, configuration } = connected.value
      if (configuration.serverMetadata().end_session_endpoint === undefined) return undefined
      return library.buildEndSessionUrl(configuration, parameters).href
    },
    async revoke(refreshToken) {
      await run('revocation', async ({ library, configuration }) => {
        if (configuration.serverMetadata().revocation_endpoint === undefined) return
        await library.tokenRevocation(configuration, refreshToken, { token_type_hint: 'refresh_token' })
      })
    },
  }
}

function configure(library: Library, metadata: JsonObject, options: LoginProviderOptions): Configuration {
  const { issuer, client, authentication, send } = options
  const { id_token_signing_alg_values_supported: signing, ...rest } = metadata
  // Plain HTTP is refused here, except on loopback and for issuers with plain HTTP.
  const usable = Object.entries(rest).filter(
    ([name, value]) =>
      !name.endsWith('_endpoint') || (typeof value === 'string' && isSecureUrl(value, issuer)),
  )
  const server = {
    ...Object.fromEntries(usable),
    issuer,
    id_token_signing_alg_values_supported: Array.isArray(signing)
      ? signing.filter((name) => typeof name === 'string')
      : algorithms,
  }
  const configuration = new library.Configuration(
    server,
    client.id,
    { [library.clockTolerance]: leewaySeconds },
    authenticationOf(library, client.secret, authentication ?? supportedAuthentication(metadata)),
  )
  configuration[library.customFetch] = (url, request) => fetchThrough(send, url, request)
  library.allowInsecureRequests(configuration)
  return configuration
}

function supportedAuthentication(metadata: JsonObject): 'clientSecretBasic' | 'clientSecretPost' {
  const methods = metadata['token_endpoint_auth_methods_supported']
  return Array.isArray(methods) && !methods.includes('client_secret_basic')
    ? 'clientSecretPost'
    : 'clientSecretBasic'
}

function authenticationOf(
  library: Library,
  secret: string | undefined,
  method: 'clientSecretBasic' | 'clientSecretPost',
) {
  if (secret === undefined) return library.None()
  return method === 'clientSecretPost' ? library.ClientSecretPost(secret) : library.ClientSecretBasic(secret)
}

type FetchRequest = { method: string; headers: Record<string, string>; body?: unknown }

/** Sends a request of the library under the egress policy and the limits of the gateway. */
async function fetchThrough(send: Send, url: string, request: FetchRequest): Promise<Response> {
  const { method, headers, body } = request
  const text = body instanceof URLSearchParams ? body.toString() : body
  if (text !== undefined && text !== null && typeof text !== 'string')
    throw new GatewayError('internal', 'unexpected body of a provider request')
  const lower: Headers = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  )
  const reply = await fetchDocument(send, {
    ...{ url, method, headers: lower, maxBytes, timeoutMs },
    ...(typeof text === 'string' ? { body: text } : {}),
  })
  const type = reply.headers['content-type']
  const found = Object.entries({
    'content-type': type,
    'www-authenticate': reply.headers['www-authenticate'],
  })
  const pairs = found.flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' ? [[name, value]] : [],
  )
  const hasBody = reply.status !== 204 && reply.status !== 304
  return new Response(hasBody ? reply.text : null, { status: reply.status, headers: pairs })
}

function readTokens(tokens: {
  access_token: string
  id_token?: string | undefined
  refresh_token?: string | undefined
  expires_in?: number | undefined
}): LoginTokens {
  return {
    accessToken: tokens.access_token,
    idToken: tokens.id_token,
    refreshToken: tokens.refresh_token,
    expiresIn: tokens.expires_in,
  }
}

const errorForm = /^[a-z_]{1,40}$/

function failureOf(
  library: Library,
  error: unknown,
): Extract<ProviderResult<never>, { kind: 'refused' | 'unavailable' }> {
  if (error instanceof library.AuthorizationResponseError)
    return { kind: 'refused', reason: `the provider returned ${shown(error.error)}` }
  if (error instanceof library.ResponseBodyError) {
    const isRefused = error.status < 500 && error.error === 'invalid_grant'
    return {
      kind: isRefused ? 'refused' : 'unavailable',
      reason: `the provider returned ${shown(error.error)}`,
    }
  }
  const cause = error instanceof library.ClientError ? error.cause : error
  if (cause instanceof GatewayError) return { kind: 'unavailable', reason: `the provider does not respond` }
  if (error instanceof library.ClientError) {
    const status = cause instanceof Response ? cause.status : undefined
    if (status !== undefined && status >= 300)
      return { kind: 'unavailable', reason: `the provider returned status ${status}` }
    return { kind: 'refused', reason: 'the response of the provider is not valid' }
  }
  return { kind: 'unavailable', reason: 'the request to the provider failed' }
}

function shown(error: string): string {
  return errorForm.test(error) ? error : 'an error'
}

/** Error without texts of the provider, which could repeat a code or a token. */
function withoutBody(error: unknown): object {
  const { name, code } = { name: 'Error', code: undefined, ...(isErrorLike(error) ? error : {}) }
  const cause = isErrorLike(error) && error.cause instanceof GatewayError ? error.cause : undefined
  return cause === undefined ? { type: name, code } : describeError(cause)
}

function isErrorLike(error: unknown): error is { name: string; code?: string; cause?: unknown } {
  return typeof error === 'object' && error !== null && 'name' in error
}
