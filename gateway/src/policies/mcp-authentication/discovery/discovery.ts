import type { ServerMetadata } from '../../../identity/provider/server-metadata.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange, RequestFacts } from '../../../pipeline/exchange.ts'
import type { Policy } from '../../../pipeline/policy.ts'
import type { AuthorizationServer } from '../authorization-server/authorization-server.ts'
import { jsonReply } from '../json-reply.ts'
import type { GatewayUrls } from './gateway-urls.ts'
import { type PublicationRules, publishedServerMetadata } from './published-server-metadata.ts'

export type DiscoveryOptions = {
  urls: GatewayUrls
  resourceMetadata: (request: RequestFacts, path: string) => string
  serverMetadata: ServerMetadata
  presentation: PublicationRules
  register: (exchange: Exchange) => Promise<Reply>
  /** Proxy to endpoints of the provider; undefined if clients call the provider directly. */
  proxy: ProviderProxy | undefined
  /** Endpoints of the gateway as an authorization server, if configured. */
  authorizationServer: AuthorizationServer | undefined
}

export type ProviderProxy = {
  authorize(exchange: Exchange): Promise<Reply>
  token(exchange: Exchange): Promise<Reply>
}

/** Kind of request by its path. `path` is the path of the MCP endpoint, empty at the root. */
type AtPath<Kind> = { kind: Kind; path: string }
type DiscoveryRequest = AtPath<'resource' | 'server' | (typeof serverActions)[number]>

/**
 * Compiles the policy that serves requests of clients without a token: metadata of the protected resource and
 * of the authorization server, and client registration. Public, for every origin, and therefore before all
 * other policies.
 */
export function compileDiscovery(options: DiscoveryOptions): Policy {
  const { urls, resourceMetadata, serverMetadata, presentation, register, proxy, authorizationServer } =
    options

  async function describeServer({ facts: { request } }: Exchange, path: string): Promise<Reply> {
    const upstream = await serverMetadata()
    if (upstream === undefined) return providerUnavailable
    const server = urls.authorizationServer(request, path)
    const own = path === pathOf(server) ? server : urls.origin(request) + path
    // The root document retains the provider's issuer (specification); clients validate that of a path (RFC
    // 8414).
    const issuer = path === '' ? undefined : own
    const url = urls.origin(request) + request.path
    return jsonReply(200, publishedServerMetadata(upstream, presentation, { url, issuer }))
  }

  function answer(exchange: Exchange, { kind, path }: DiscoveryRequest): Reply | Promise<Reply> {
    switch (kind) {
      case 'resource':
        return jsonReply(200, resourceMetadata(exchange.facts.request, path))
      case 'server':
        return describeServer(exchange, path)
      case 'client-registration':
        return register(exchange)
      case 'authorize':
        return proxy?.authorize(exchange) ?? notFound
      case 'token':
        return proxy?.token(exchange) ?? notFound
    }
  }

  async function reply(exchange: Exchange, target: DiscoveryRequest): Promise<Reply> {
    const { method } = exchange.facts.request
    const posted = target.kind === 'client-registration' || target.kind === 'token'
    if (method === 'OPTIONS') return withCors({ status: 204, headers: {}, body: undefined }, posted)
    const allowed = posted ? method === 'POST' : method === 'GET' || method === 'HEAD'
    return withCors(allowed ? await answer(exchange, target) : methodNotAllowed(posted), posted)
  }

  return {
    name: 'mcp discovery',
    onRequest(exchange) {
      const { path } = exchange.facts.request
      if (authorizationServer === undefined) {
        const target = readPath(path, serverActions)
        return target && reply(exchange, target)
      }
      const target = readPath(path, frontActions)
      if (target === undefined) return undefined
      const { kind } = target
      return kind === 'resource'
        ? reply(exchange, { kind, path: target.path })
        : authorizationServer.handle(exchange, { name: kind, path: target.path })
    },
  }
}

const wellKnown = '/.well-known/'
const resourceNames: readonly string[] = ['oauth-protected-resource']
const serverNames: readonly string[] = ['oauth-authorization-server', 'openid-configuration']
const serverActions = ['client-registration', 'authorize', 'token'] as const
const frontActions = ['authorize', 'consent', 'callback', 'token', 'register'] as const

/** Well-known names precede the path of the endpoint (RFC 8414, RFC 9728); older clients append them. */
function readPath<Action extends string>(
  path: string,
  actions: readonly Action[],
): AtPath<'resource' | 'server' | Action> | undefined {
  const start = path.indexOf(wellKnown)
  if (start < 0) return undefined
  const rest = path.slice(start + wellKnown.length)
  const slash = rest.indexOf('/')
  const name = slash < 0 ? rest : rest.slice(0, slash)
  const after = slash < 0 ? '' : rest.slice(slash)
  const before = path.slice(0, start)
  if (resourceNames.includes(name)) return atPath('resource', before, after)
  if (!serverNames.includes(name)) return undefined
  const action = actions.find((each) => after.endsWith(`/${each}`))
  if (action === undefined) return atPath('server', before, after)
  return atPath(action, before, after.slice(0, -action.length - 1))
}

function atPath<Kind>(kind: Kind, before: string, after: string): AtPath<Kind> | undefined {
  return before !== '' && after !== '' ? undefined : { kind, path: before + after }
}

function pathOf(url: string): string {
  return new URL(url).pathname.replace(/\/+$/, '')
}

const notFound: Reply = {
  status: 404,
  headers: { 'content-type': 'text/plain' },
  body: Buffer.from('not found'),
}

const providerUnavailable: Reply = jsonReply(
  503,
  { error: 'temporarily_unavailable', error_description: 'the identity provider does not respond' },
  { 'retry-after': '5' },
)

function methodNotAllowed(posted: boolean): Reply {
  return { status: 405, headers: { allow: posted ? 'POST, OPTIONS' : 'GET, HEAD, OPTIONS' }, body: undefined }
}

/**
 * Adds CORS headers for every origin: the documents are public. Copies constants, because replies are
 * mutable.
 */
function withCors(reply: Reply, posted: boolean): Reply {
  const headers = {
    ...reply.headers,
    'access-control-allow-origin': '*',
    'access-control-allow-methods': posted ? 'POST, OPTIONS' : 'GET, OPTIONS',
    'access-control-allow-headers': posted
      ? 'content-type, authorization, mcp-protocol-version'
      : 'content-type, mcp-protocol-version',
  }
  return { ...reply, headers }
}
