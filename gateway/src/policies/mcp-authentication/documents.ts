import type { Reply } from '../../net/http-client/send.ts'
import type { Exchange, RequestFacts } from '../../pipeline/exchange.ts'
import type { Policy } from '../../pipeline/policy.ts'
import type { Addresses } from './addresses.ts'
import type { Front } from './front/front.ts'
import { jsonReply } from './json-reply.ts'
import { type Presentation, presentServerMetadata, type ServerMetadata } from './server-metadata.ts'

export type DocumentsOptions = {
  addresses: Addresses
  resourceMetadata: (request: RequestFacts, path: string) => string
  serverMetadata: ServerMetadata
  presentation: Presentation
  register: (exchange: Exchange) => Promise<Reply>
  /** Endpoints of the provider that clients reach through the gateway; undefined where they go there themselves. */
  relay: Relay | undefined
  /** Answers everything about the authorization server, if the gateway is one. */
  front: Front | undefined
}

export type Relay = {
  authorize(exchange: Exchange): Promise<Reply>
  token(exchange: Exchange): Promise<Reply>
}

/** What a path asks for; `path` is that of the MCP endpoint, empty at the root. */
type Placed<Kind> = { kind: Kind; path: string }
type Asked = Placed<'resource' | 'server' | (typeof serverActions)[number]>

/**
 * Answers what clients ask before they have a token: where the authorization server is, what it is like, and
 * registration. Open to every origin, as it is to everyone, and so before any other policy.
 */
export function compileDocuments(options: DocumentsOptions): Policy {
  const { addresses, resourceMetadata, serverMetadata, presentation, register, relay, front } = options

  async function describeServer({ facts: { request } }: Exchange, path: string): Promise<Reply> {
    const upstream = await serverMetadata()
    if (upstream === undefined) return unreachable
    const server = addresses.authorizationServer(request, path)
    const own = path === pathOf(server) ? server : addresses.origin(request) + path
    // The root document keeps the provider's issuer (specification); that of a path is what clients hold it against.
    const issuer = path === '' ? undefined : own
    const url = addresses.origin(request) + request.path
    return jsonReply(200, presentServerMetadata(upstream, presentation, { url, issuer }))
  }

  function answer(exchange: Exchange, { kind, path }: Asked): Reply | Promise<Reply> {
    switch (kind) {
      case 'resource':
        return jsonReply(200, resourceMetadata(exchange.facts.request, path))
      case 'server':
        return describeServer(exchange, path)
      case 'client-registration':
        return register(exchange)
      case 'authorize':
        return relay?.authorize(exchange) ?? notFound
      case 'token':
        return relay?.token(exchange) ?? notFound
    }
  }

  async function reply(exchange: Exchange, asked: Asked): Promise<Reply> {
    const { method } = exchange.facts.request
    const posted = asked.kind === 'client-registration' || asked.kind === 'token'
    if (method === 'OPTIONS') return withCors({ status: 204, headers: {}, body: undefined }, posted)
    const allowed = posted ? method === 'POST' : method === 'GET' || method === 'HEAD'
    return withCors(allowed ? await answer(exchange, asked) : methodNotAllowed(posted), posted)
  }

  return {
    name: 'mcp discovery',
    onRequest(exchange) {
      const { path } = exchange.facts.request
      if (front === undefined) {
        const asked = readPath(path, serverActions)
        return asked && reply(exchange, asked)
      }
      const asked = readPath(path, frontActions)
      if (asked === undefined) return undefined
      const { kind } = asked
      return kind === 'resource'
        ? reply(exchange, { kind, path: asked.path })
        : front.answer(exchange, { name: kind, path: asked.path })
    },
  }
}

const wellKnown = '/.well-known/'
const resourceNames: readonly string[] = ['oauth-protected-resource']
const serverNames: readonly string[] = ['oauth-authorization-server', 'openid-configuration']
const serverActions = ['client-registration', 'authorize', 'token'] as const
const frontActions = ['authorize', 'consent', 'callback', 'token', 'register'] as const

/** Well-known names stand before the path of the endpoint (RFC 8414, RFC 9728); older clients append them to it. */
function readPath<Action extends string>(
  path: string,
  actions: readonly Action[],
): Placed<'resource' | 'server' | Action> | undefined {
  const start = path.indexOf(wellKnown)
  if (start < 0) return undefined
  const rest = path.slice(start + wellKnown.length)
  const slash = rest.indexOf('/')
  const name = slash < 0 ? rest : rest.slice(0, slash)
  const after = slash < 0 ? '' : rest.slice(slash)
  const before = path.slice(0, start)
  if (resourceNames.includes(name)) return placed('resource', before, after)
  if (!serverNames.includes(name)) return undefined
  const action = actions.find((each) => after.endsWith(`/${each}`))
  if (action === undefined) return placed('server', before, after)
  return placed(action, before, after.slice(0, -action.length - 1))
}

function placed<Kind>(kind: Kind, before: string, after: string): Placed<Kind> | undefined {
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

const unreachable: Reply = jsonReply(
  503,
  { error: 'temporarily_unavailable', error_description: 'the identity provider does not answer' },
  { 'retry-after': '5' },
)

function methodNotAllowed(posted: boolean): Reply {
  return { status: 405, headers: { allow: posted ? 'POST, OPTIONS' : 'GET, HEAD, OPTIONS' }, body: undefined }
}

/** Documents for everyone may be read by the pages of every origin. Constants are copied: a reply may be changed later. */
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
