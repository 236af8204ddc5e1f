import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { CompactSign, type CryptoKey, exportJWK, generateKeyPair, type JWK } from 'jose'
import { endAfter, type Lifetime } from './cleanup.ts'

/** Properties that distinguish the kinds of identity providers. */
export type ProviderShape = {
  /** Path of the issuer, as it stands in `iss`. */
  issuerPath: string
  keysPath: string
  metadataPath: string
  /** Path of the same document in the form of RFC 8414, if the provider has it. */
  insertedMetadataPath?: string
  tokenPath: string
  authorizePath: string
  /** Metadata besides issuer, keys and the two endpoints. */
  metadata(origin: string): Record<string, unknown>
  audience(request: TokenRequest): string
  claims(request: TokenRequest): Record<string, unknown>
  /** An OAuth error, or undefined where the request may be granted. */
  refuse(request: TokenRequest): string | undefined
  /** Further paths. */
  other?(request: SeenByProvider): ProviderAnswer | undefined
}

/** Content of an access token, from the form fields of its request. */
export type TokenRequest = {
  grantType: string
  clientId: string
  scopes: readonly string[]
  resource: string | undefined
  form: URLSearchParams
}

/** Response: JSON, or a redirect. */
export type ProviderAnswer = { status: number; body: unknown } | { location: string }

export type SeenByProvider = { method: string; path: string; body: string; authorization: string | undefined }

/**
 * A test double of an identity provider. It issues codes to any client, as for a logged-in user with consent.
 */
export type IdentityProvider = {
  issuer: string
  /** Everything it was asked so far. */
  seen: SeenByProvider[]
  /** A token of its own making; `claims` win over those of an ordinary token. */
  sign(claims?: Record<string, unknown>, header?: Record<string, unknown>): Promise<string>
  /** The public key that signs now. */
  publicKey(): JWK
  /** Signs with a new key from now on; the old one is no longer published. */
  rotateKeys(): Promise<void>
  /** Adds a key to the published set. */
  publish(key: JWK): void
  /** Answers every request with this status until reset. */
  failWith(status: number | undefined): void
  /** Closes the port. */
  stop(): Promise<void>
  /** Opens it again. */
  start(): Promise<void>
}

export type IdentityProviderOptions = {
  lifetime?: Lifetime
  /** Sends `iss` with every code (RFC 9207). */
  sendsIss?: boolean
  /** Seconds from now at which tokens of the token endpoint expire. */
  expiresInSeconds?: () => number
  /** Not listening yet; it will at this port. */
  startsLaterAt?: number
}

type SigningKey = { kid: string; privateKey: CryptoKey; jwk: JWK }
type Code = { challenge: string; request: Omit<TokenRequest, 'form' | 'grantType'>; redirectUri: string }

export async function startIdentityProvider(
  shape: ProviderShape,
  options: IdentityProviderOptions = {},
): Promise<IdentityProvider> {
  const { sendsIss = false, expiresInSeconds = () => 300 } = options
  const seen: SeenByProvider[] = []
  const extraKeys: JWK[] = []
  const codes = new Map<string, Code>()
  const refreshTokens = new Map<string, Code['request']>()
  let key = await createKey()
  let failure: number | undefined
  let origin = ''

  const server = createServer(async (request, response) => {
    const seenNow = await readRequest(request)
    seen.push(seenNow)
    send(response, failure === undefined ? await answer(seenNow) : { status: failure, body: 'out of order' })
  })

  async function answer(request: SeenByProvider): Promise<ProviderAnswer> {
    const url = new URL(request.path, origin)
    switch (url.pathname) {
      case shape.keysPath:
        return { status: 200, body: { keys: [...extraKeys, key.jwk] } }
      case shape.metadataPath:
      case shape.insertedMetadataPath:
        return { status: 200, body: metadata() }
      case shape.authorizePath:
        return authorize(url.searchParams)
      case shape.tokenPath:
        return grantToken(new URLSearchParams(request.body))
      default:
        return shape.other?.(request) ?? { status: 404, body: { error: 'not found' } }
    }
  }

  function metadata() {
    return {
      issuer: origin + shape.issuerPath,
      jwks_uri: origin + shape.keysPath,
      authorization_endpoint: origin + shape.authorizePath,
      token_endpoint: origin + shape.tokenPath,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none', 'client_secret_post'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      ...(sendsIss ? { authorization_response_iss_parameter_supported: true } : {}),
      ...shape.metadata(origin),
    }
  }

  function authorize(query: URLSearchParams): ProviderAnswer {
    const redirectUri = query.get('redirect_uri')
    const challenge = query.get('code_challenge')
    if (redirectUri === null || challenge === null || query.get('code_challenge_method') !== 'S256') {
      return { status: 400, body: { error: 'invalid_request' } }
    }
    const code = randomUUID()
    const request = {
      clientId: query.get('client_id') ?? '',
      scopes: scopesOf(query),
      resource: query.get('resource') ?? undefined,
    }
    codes.set(code, { challenge, request, redirectUri })
    const target = new URL(redirectUri)
    target.searchParams.set('code', code)
    const state = query.get('state')
    if (state !== null) target.searchParams.set('state', state)
    if (sendsIss) target.searchParams.set('iss', origin + shape.issuerPath)
    return { location: target.href }
  }

  async function grantToken(form: URLSearchParams): Promise<ProviderAnswer> {
    const granted = readGrant(form)
    if (typeof granted === 'string') return { status: 400, body: { error: granted } }
    const request = { ...granted, grantType: form.get('grant_type') ?? '', form }
    const refusal = shape.refuse(request)
    if (refusal !== undefined) return { status: 400, body: { error: refusal } }
    const refreshToken = randomUUID()
    refreshTokens.set(refreshToken, granted)
    const lifetime = expiresInSeconds()
    const claims = { ...shape.claims(request), aud: shape.audience(request), exp: now() + lifetime }
    const body = {
      access_token: await sign(claims),
      token_type: 'Bearer',
      expires_in: Math.max(1, lifetime),
      scope: granted.scopes.join(' '),
      ...(request.grantType === 'client_credentials' ? {} : { refresh_token: refreshToken }),
    }
    return { status: 200, body }
  }

  function readGrant(form: URLSearchParams): Code['request'] | string {
    switch (form.get('grant_type')) {
      case 'client_credentials':
        return {
          clientId: form.get('client_id') ?? '',
          scopes: scopesOf(form),
          resource: form.get('resource') ?? undefined,
        }
      case 'refresh_token': {
        const refreshToken = form.get('refresh_token') ?? ''
        const request = refreshTokens.get(refreshToken)
        refreshTokens.delete(refreshToken)
        return request ?? 'invalid_grant'
      }
      case 'authorization_code': {
        const code = codes.get(form.get('code') ?? '')
        codes.delete(form.get('code') ?? '')
        const proof = createHash('sha256').update(form.get('code_verifier') ?? '')
        if (code === undefined || code.challenge !== proof.digest('base64url')) return 'invalid_grant'
        const { request, redirectUri } = code
        const matches = form.get('client_id') === request.clientId && form.get('redirect_uri') === redirectUri
        return matches ? request : 'invalid_grant'
      }
      default:
        return 'unsupported_grant_type'
    }
  }

  async function sign(
    claims: Record<string, unknown> = {},
    header: Record<string, unknown> = {},
  ): Promise<string> {
    const payload = { iss: origin + shape.issuerPath, sub: 'alice', iat: now(), exp: now() + 300, ...claims }
    // Not `SignJWT`, which refuses to sign an attacker's tokens.
    return new CompactSign(Buffer.from(JSON.stringify(payload)))
      .setProtectedHeader({ alg: 'RS256', kid: key.kid, ...header })
      .sign(key.privateKey, { crit: { 'test-extension': true } })
  }

  let port = options.startsLaterAt
  async function start(): Promise<void> {
    port = await new Promise<number>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port ?? 0, '127.0.0.1', () => {
        const address = server.address()
        resolve(address !== null && typeof address === 'object' ? address.port : 0)
      })
    })
    origin = `http://127.0.0.1:${port}`
  }
  function stop(): Promise<void> {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(() => resolve()))
  }
  if (port === undefined) await start()
  else origin = `http://127.0.0.1:${port}`
  endAfter(options.lifetime ?? 'test', stop)

  return {
    issuer: origin + shape.issuerPath,
    seen,
    sign,
    publicKey: () => key.jwk,
    async rotateKeys() {
      key = await createKey()
    },
    publish(jwk) {
      extraKeys.push(jwk)
    },
    failWith(status) {
      failure = status
    },
    stop,
    start,
  }
}

async function createKey(): Promise<SigningKey> {
  const kid = randomUUID()
  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true })
  return { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, use: 'sig', alg: 'RS256' } }
}

async function readRequest(request: IncomingMessage): Promise<SeenByProvider> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const { method = '', url: path = '', headers } = request
  return { method, path, body: Buffer.concat(chunks).toString('utf8'), authorization: headers.authorization }
}

function send(response: ServerResponse, answer: ProviderAnswer): void {
  if ('location' in answer) response.writeHead(302, { location: answer.location }).end()
  else
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body))
}

function scopesOf(parameters: URLSearchParams): string[] {
  return (parameters.get('scope') ?? '').split(' ').filter((scope) => scope !== '')
}

function now(): number {
  return Math.floor(Date.now() / 1000)
}
