import { messageOf } from '../../../lib/thrown.ts'
import type { Send } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { DiscoveryError, discoverServer, type FoundServer } from './discovery.ts'
import type { LoginOrigin } from './links.ts'
import {
  type RegisteredClient,
  registerClient,
  requestTokens,
  type TokenOutcome,
  type TokenRequest,
} from './oauth-client.ts'
import type { TokenStore } from './token-store.ts'
import { createUserTokens, type UserToken } from './user-tokens.ts'

/** Logins at one target, for all data planes. Requests and results are plain data. */
export type LoginService = {
  token(user: string, refused: string | undefined): Promise<UserToken>
  /** Address of the authorization server for a login, without `state`. */
  authorize(challenge: string): Promise<LoginStart | LoginFailure>
  /** Redeems a code and stores the tokens of the user. */
  redeem(login: CodeResponse): Promise<LoginDone | LoginFailure>
}

export type CodeResponse = {
  readonly user: string
  readonly code: string
  readonly verifier: string
  /** Server and client of the authorization request. */
  readonly origin: LoginOrigin
  /** `iss` of the response (RFC 9207). */
  readonly issuer: string | undefined
}

export type LoginStart = { readonly kind: 'started'; readonly address: string; readonly origin: LoginOrigin }
export type LoginDone = { readonly kind: 'done' }
/** `reason` is for pages and logs, without secrets. */
export type LoginFailure = { readonly kind: 'failed'; readonly reason: string }

export type LoginServiceOptions = {
  readonly target: string
  /** URL of the target. */
  readonly url: string
  readonly issuer: string | undefined
  readonly redirectUri: string
  /** Address of the document that describes the gateway as a client; undefined without HTTPS. */
  readonly documentUrl: string | undefined
  /** Configured client; undefined for the document, or to register one. */
  readonly client: { readonly id: string; readonly secret: string | undefined } | undefined
  readonly scopes: readonly string[] | undefined
  readonly store: TokenStore
  readonly send: Send
  /** Total time for metadata and registration. */
  readonly connectTimeoutMs?: number
}

type Connected = { readonly server: FoundServer; readonly client: RegisteredClient }

/** Metadata and registration are read again after this time. */
const freshMs = 10 * 60_000
const maxActive = 32
/** Each request has a limit of its own, but calls wait for all of them. */
const connectTimeoutMs = 15_000
const clientKey = 'client'
/** Errors of a client that the server does not know (any more). */
const clientErrors: ReadonlySet<string> = new Set(['invalid_client', 'unauthorized_client'])

/** Creates the service; it runs on the first data plane, so that each refresh token is used once. */
export function createLoginService(
  options: LoginServiceOptions,
  { clock, log }: Pick<CompileContext, 'clock' | 'log'>,
): LoginService {
  const { target, url, redirectUri, store, send } = options
  let latest: { promise: Promise<Connected>; until: number } | undefined
  let active = 0

  function connect(): Promise<Connected> {
    if (latest !== undefined && clock.monotonic() < latest.until) return latest.promise
    const discovered = discoverServer({ target: url, issuer: options.issuer, send }).then(async (server) => ({
      server,
      client: await clientAt(server),
    }))
    const promise = within(discovered, options.connectTimeoutMs ?? connectTimeoutMs)
    const attempt = { promise, until: clock.monotonic() + freshMs }
    latest = attempt
    promise.catch(() => {
      if (latest === attempt) latest = undefined
    })
    return promise
  }

  async function clientAt(server: FoundServer): Promise<RegisteredClient> {
    const { issuer } = server
    if (options.client !== undefined) return { ...options.client, issuer, expiresAt: undefined }
    const { documentUrl } = options
    // The server must reach the document, so registration precedes it.
    if (documentUrl !== undefined && server.readsDocuments && server.registrationEndpoint === undefined)
      return { id: documentUrl, secret: undefined, issuer, expiresAt: undefined }
    const stored = readClient((await store.read(clientKey)) ?? {})
    if (stored?.issuer === issuer && (stored.expiresAt ?? Number.POSITIVE_INFINITY) > clock.now())
      return stored
    const registered = await registerClient({ server, redirectUri, scopes: scopesOf(server), send })
    const { id, secret = null, expiresAt = null } = registered
    await store.write(clientKey, { id, secret, issuer, expiresAt })
    return registered
  }

  const scopesOf = ({ scopes }: FoundServer) => options.scopes ?? scopes

  /** The client of a login; undefined if it was registered anew. Another replica may have registered it. */
  async function clientOf(origin: LoginOrigin, { client }: Connected): Promise<RegisteredClient | undefined> {
    if (client.id === origin.clientId) return client
    const stored = options.client === undefined ? readClient((await store.read(clientKey)) ?? {}) : undefined
    return stored?.id === origin.clientId && stored.issuer === origin.issuer ? stored : undefined
  }

  /** Sends a code or refresh token, but only to the server and for the client of its login. */
  async function exchange(
    grant: Readonly<Record<string, string>>,
    origin: LoginOrigin,
  ): Promise<TokenOutcome> {
    const connected = await connect()
    if (connected.server.issuer !== origin.issuer)
      return { kind: 'foreign', reason: 'the login is of another authorization server' }
    const client = await clientOf(origin, connected)
    if (client === undefined) return { kind: 'foreign', reason: 'the login is of another client' }
    const request: TokenRequest = { server: connected.server, client, send, now: () => clock.now() }
    const outcome = await requestTokens(request, grant)
    if (outcome.kind === 'unavailable' && clientErrors.has(outcome.reason)) await forgetClient(client)
    return outcome
  }

  /** The server has forgotten the registration: the next login registers again. */
  async function forgetClient({ id }: RegisteredClient): Promise<void> {
    if (options.client !== undefined) return
    latest = undefined
    if (readClient((await store.read(clientKey)) ?? {})?.id === id) await store.remove(clientKey)
  }

  function report(reason: string): void {
    log.warn({ target, reason }, 'mcp target login failed')
  }

  /** Limits requests that browsers cause, and maps failures. */
  async function run<T extends { kind: string }>(
    work: () => Promise<T | LoginFailure>,
  ): Promise<T | LoginFailure> {
    if (active >= maxActive) return { kind: 'failed', reason: 'too many logins at the same time' }
    active += 1
    try {
      const result = await work()
      if ('reason' in result) report(result.reason)
      return result
    } catch (error) {
      report(messageOf(error))
      const isKnown = error instanceof DiscoveryError
      return { kind: 'failed', reason: isKnown ? error.message : 'the authorization server is not available' }
    } finally {
      active -= 1
    }
  }

  const tokens = createUserTokens({
    ...{ store, report, clock },
    refresh: (refreshToken, origin) =>
      exchange({ grant_type: 'refresh_token', refresh_token: refreshToken }, origin).catch(
        (error: unknown) => ({ kind: 'unavailable', reason: messageOf(error) }),
      ),
  })

  return {
    token: (user, refused) => tokens.token(user, refused),
    authorize: (challenge) =>
      run(async () => {
        const { server, client } = await connect()
        const address = new URL(server.authorizationEndpoint)
        const scope = scopesOf(server).join(' ')
        const query = {
          response_type: 'code',
          client_id: client.id,
          redirect_uri: redirectUri,
          code_challenge: challenge,
          code_challenge_method: 'S256',
          resource: server.resource,
          ...(scope === '' ? {} : { scope }),
        }
        for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value)
        return {
          kind: 'started',
          address: address.href,
          origin: { issuer: server.issuer, clientId: client.id },
        }
      }),
    redeem: ({ user, code, verifier, origin, issuer }) =>
      run(async () => {
        const { server } = await connect()
        // RFC 9207 section 2.4: responses of other servers must be rejected (mix-up attack).
        if (issuer === undefined ? server.sendsIssuer : issuer !== server.issuer)
          return { kind: 'failed', reason: 'the response is not from the authorization server' }
        const grant = {
          grant_type: 'authorization_code',
          code,
          code_verifier: verifier,
          redirect_uri: redirectUri,
        }
        const outcome = await exchange(grant, origin)
        if (outcome.kind === 'foreign') return { kind: 'failed', reason: outcome.reason }
        if (outcome.kind !== 'tokens')
          return { kind: 'failed', reason: `the authorization server returned an error: ${outcome.reason}` }
        await tokens.save(user, outcome.tokens)
        log.info({ target }, 'mcp target login completed')
        return { kind: 'done' }
      }),
  }
}

async function within<T>(work: Promise<T>, limitMs: number): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(new DiscoveryError('the authorization server does not respond in time')),
    limitMs,
  )
  timer.unref()
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

function readClient({
  id,
  secret,
  issuer,
  expiresAt,
}: Record<string, unknown>): RegisteredClient | undefined {
  if (typeof id !== 'string' || typeof issuer !== 'string') return undefined
  return {
    id,
    secret: typeof secret === 'string' ? secret : undefined,
    issuer,
    expiresAt: typeof expiresAt === 'number' ? expiresAt : undefined,
  }
}
