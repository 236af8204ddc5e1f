import { createHash } from 'node:crypto'
import { type ExactJsonObject, isJsonObject, type JsonObject } from '../../../lib/json.ts'
import type { Headers } from '../../../net/headers.ts'
import type { OutgoingRequest, Reply } from '../../../net/send.ts'
import { fixtureExchange, textOf } from '../../../pipeline/fixtures.ts'
import {
  keySetOf,
  signingPair,
  signToken,
  throughAll,
  upstreamContext,
} from '../../../pipeline/jwt/fixtures.ts'
import type { McpAuthenticationConfig } from '../config.ts'
import { compileMcpAuthentication } from '../mcp-authentication.ts'

/** A gateway that fronts a provider without sockets, with the cookies of one browser and the requests of a client. */

export const origin = 'https://gw.test'
export const resource = `${origin}/mcp`
export const endpoints = `${origin}/.well-known/oauth-authorization-server/mcp`
export const providerIssuer = 'https://id.test'
export const redirectUri = 'http://127.0.0.1:3334/callback'
export const verifier = 'v'.repeat(64)
export const challenge = createHash('sha256').update(verifier).digest('base64url')
const sessionKey = 'ab'.repeat(32)

const pair = signingPair('k')
const metadata = {
  issuer: providerIssuer,
  authorization_endpoint: `${providerIssuer}/authorize`,
  token_endpoint: `${providerIssuer}/token`,
  jwks_uri: `${providerIssuer}/keys`,
  authorization_response_iss_parameter_supported: true,
}

const base: McpAuthenticationConfig = {
  issuer: providerIssuer,
  audiences: [resource],
  authorizationServers: 'front',
  clientId: 'the-gateway',
  clientSecret: 'the secret',
  resourceMetadata: { resource, scopesSupported: ['openid', 'mcp'] },
}

type Request = {
  method?: string
  query?: Record<string, string> | string
  form?: Record<string, string> | string
  headers?: Headers
  body?: string
  address?: string
}
type Answer = {
  reply: Reply
  status: number
  text: string
  json: JsonObject
  location: URL | undefined
  refusedBy: string | undefined
}

export function startFront(
  changed: Partial<McpAuthenticationConfig> = {},
  options: { key?: string | undefined; shared?: ReturnType<typeof upstreamContext> } = {},
) {
  const made = options.shared ?? upstreamContext()
  const { upstream } = made
  const context = { ...made.context, sessionKey: 'key' in options ? options.key : sessionKey }
  if (options.shared === undefined) context.clock.advance(1_700_000_000_000)
  const { clock } = context
  const provider = {
    metadata: { ...metadata } as Record<string, unknown>,
    claims: { sub: 'ada', groups: ['staff'] } as Record<string, unknown>,
    tokens: { expires_in: 300 } as Record<string, unknown>,
    fails: undefined as { status: number; error?: string } | undefined,
    /** Claims of its ID tokens; undefined sends none. */
    idClaims: undefined as Record<string, unknown> | undefined,
    /** Codes it has sent, each good once. */
    codes: new Set<string>(),
    requests: [] as URLSearchParams[],
    sends: 0,
  }
  upstream.answers.set(`${providerIssuer}/.well-known/oauth-authorization-server`, () =>
    replyOf(200, provider.metadata),
  )
  upstream.answers.set(`${providerIssuer}/keys`, { text: keySetOf(pair) })
  upstream.answers.set(`${providerIssuer}/token`, tokenEndpoint)

  async function tokenEndpoint(request: OutgoingRequest): Promise<Reply> {
    const form = new URLSearchParams(String(request.body))
    provider.requests.push(form)
    if (provider.fails !== undefined) return replyOf(provider.fails.status, { error: provider.fails.error })
    const code = form.get('code')
    if (code !== null && !provider.codes.delete(code)) return replyOf(400, { error: 'invalid_grant' })
    provider.sends += 1
    const aud = provider.claims['aud'] ?? resource
    const access = await signToken(pair, clock.now(), { iss: providerIssuer, ...provider.claims, aud })
    return replyOf(200, {
      access_token: access,
      refresh_token: `provider-refresh-${provider.sends}`,
      ...(provider.idClaims && { id_token: await idToken(provider.idClaims) }),
      ...provider.tokens,
    })
  }

  function idToken(claims: Record<string, unknown>): Promise<string> {
    return signToken(pair, clock.now(), { iss: providerIssuer, aud: 'the-gateway', ...claims })
  }

  const authentication = compileMcpAuthentication({ ...base, ...changed }, context)
  const cookies = new Map<string, string>()

  async function ask(endpoint: string, request: Request = {}): Promise<Answer> {
    const { method = 'GET', query = {}, form, headers = {}, address = '192.0.2.1' } = request
    const search = new URLSearchParams(query).toString()
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const body = request.body ?? (form === undefined ? undefined : new URLSearchParams(form).toString())
    const exchange = {
      ...fixtureExchange(
        {
          method: form === undefined ? method : 'POST',
          path: endpoint.startsWith('/')
            ? endpoint
            : `/.well-known/oauth-authorization-server/mcp/${endpoint}`,
          query: search === '' ? '' : `?${search}`,
          headers: {
            ...(cookie === '' ? {} : { cookie }),
            ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
            ...headers,
          },
        },
        { source: { address, port: 1 } },
      ),
      body: body === undefined ? undefined : Buffer.from(body),
    }
    const reply = await throughAll([authentication.documents], exchange)
    const set = reply.headers['set-cookie']
    if (typeof set === 'string') {
      const [name = '', value = ''] = (set.split(';', 1)[0] ?? '').split('=', 2)
      cookies.set(name, value)
    }
    const content = textOf(reply)
    const parsed: unknown = content.startsWith('{') ? JSON.parse(content) : {}
    const location = reply.headers['location']
    return {
      reply,
      status: reply.status,
      text: content,
      json: isJsonObject(parsed) ? parsed : {},
      location: typeof location === 'string' ? new URL(location) : undefined,
      refusedBy: exchange.refusedBy,
    }
  }

  async function register(redirectUris: unknown = [redirectUri], more: object = {}): Promise<Answer> {
    const body = JSON.stringify({ client_name: 'Chat', redirect_uris: redirectUris, ...more })
    return ask('register', { method: 'POST', body })
  }

  async function clientId(): Promise<string> {
    return String((await register()).json['client_id'])
  }

  const authorization = async (changes: Record<string, string> = {}) => ({
    response_type: 'code',
    client_id: changes['client_id'] ?? (await clientId()),
    redirect_uri: redirectUri,
    state: 'xyz',
    scope: 'openid mcp',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    resource,
    ...changes,
  })

  /** To the provider: its authorization request. */
  async function toProvider(parameters: Record<string, string>): Promise<URL> {
    const page = await ask('authorize', { query: parameters })
    const answer = await ask('consent', { form: { request: requestIn(page.text), decision: 'allow' } })
    if (answer.location === undefined) throw new Error(`no redirect: ${answer.status} ${answer.text}`)
    return answer.location
  }

  /** The provider's answer to the gateway, as query parameters. */
  function providerAnswer(request: URL, changes: Record<string, string> = {}) {
    const code = `provider-code-${provider.codes.size}-${provider.sends}`
    provider.codes.add(code)
    return { code, state: request.searchParams.get('state') ?? '', iss: providerIssuer, ...changes }
  }

  /** The whole way to a code of the gateway. */
  async function code(changes: Record<string, string> = {}) {
    const parameters = await authorization(changes)
    const answer = await ask('callback', { query: providerAnswer(await toProvider(parameters)) })
    const found = answer.location?.searchParams.get('code')
    if (!found) throw new Error(`no code: ${answer.status} ${answer.text} ${answer.location}`)
    return { code: found, parameters, location: answer.location }
  }

  async function redeem(changes: Record<string, string> = {}) {
    const granted = await code()
    const form = {
      grant_type: 'authorization_code',
      code: granted.code,
      client_id: granted.parameters.client_id,
      redirect_uri: redirectUri,
      code_verifier: verifier,
      resource,
      ...changes,
    }
    return { form, answer: await ask('token', { form }) }
  }

  return {
    ...{ context, clock, upstream, provider, shared: made, cookies, ask, register, clientId },
    ...{ authorization, toProvider, providerAnswer, code, redeem },
    /** The claims of a token as rules see them; the reason of a refusal. */
    async admit(token: unknown): Promise<ExactJsonObject | string> {
      const exchange = fixtureExchange({ path: '/mcp', headers: { authorization: `Bearer ${token}` } })
      const outcome = await authentication.check(exchange)
      return outcome?.kind === 'accepted' ? (exchange.facts.jwt ?? {}) : (exchange.refusedBy ?? '')
    },
  }
}

export function requestIn(page: string): string {
  return /name="request" value="([^"]+)"/.exec(page)?.[1] ?? ''
}

function replyOf(status: number, value: unknown): Reply {
  return { status, headers: {}, body: Buffer.from(JSON.stringify(value)) }
}
