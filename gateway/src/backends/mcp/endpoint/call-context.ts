import { clientNetwork } from '../../../lib/address/client-network.ts'
import type { ExactJsonObject, ExactJsonValue, JsonObject } from '../../../lib/json/json.ts'
import { exactText } from '../../../lib/json/text.ts'
import { createHeaderFilter } from '../../../net/http/headers.ts'
import type { Exchange, McpState } from '../../../pipeline/exchange.ts'
import type { McpItem } from '../../../pipeline/mcp-item.ts'
import { isWithheldHeader } from '../../../upstream/withheld-headers.ts'
import type { Federation } from '../federation/federation.ts'
import { type CallTarget, callTargetOf } from '../message/items.ts'
import type { ClientMessage } from '../message/json-rpc.ts'
import type { Revision } from '../message/protocol.ts'
import type { SessionClient } from '../sessions/sessions.ts'
import type { CallContext, Permissions } from '../targets/target.ts'

/** Rules about single tools, prompts and resources (`mcpAuthorization`). */
export type McpRules = {
  permits(exchange: Exchange, item: McpItem, at: 'list' | 'call'): boolean
  /** For methods that name no tool, prompt or resource. */
  permitsMethod(exchange: Exchange, method: string): boolean
}

/** What targets get to know of the client behind a request. */
export function callContext(
  exchange: Exchange,
  revision: Revision,
  rules: McpRules | undefined,
): CallContext {
  const sessionless = revision.kind === 'sessionless'
  const { headers } = exchange.facts.request
  const forwarded = sessionless ? forwardWithoutSession(headers) : forward(headers)
  if (exchange.forwarding !== undefined) {
    for (const edit of exchange.forwarding.headerEdits) edit(forwarded)
  }
  const { cancellation, auth, mcp } = exchange
  const context: CallContext = {
    headers: forwarded,
    cancellation,
    credential: auth.credential,
    loggedCall: mcp?.call,
    client: () => clientOf(exchange).quotaKey,
  }
  const known = revision.version === undefined ? context : { ...context, protocolVersion: revision.version }
  return rules === undefined ? known : { ...known, permissions: permissionsOf(exchange, rules) }
}

/** Tells the access log what a message asks for. A call that several targets could be meant by learns its target later. */
export function recordCall(exchange: Exchange, message: ClientMessage, { members }: Federation): void {
  if (message.kind === 'response') return
  const { method } = message
  const [only] = members
  mcpStateOf(exchange).call = {
    method,
    item: loggableName(callTargetOf(message.json.value)),
    target: members.length === 1 ? only?.name : undefined,
  }
}

/** The MCP state of an exchange, created on first use. */
export function mcpStateOf(exchange: Exchange): McpState {
  exchange.mcp ??= { call: undefined, onDelivered: undefined }
  return exchange.mcp
}

/** Bound on the text about a batch in the access log. */
const maxRecordedChars = 1_000

/** Notes a batch for the access log: the method and item of each message. */
export function recordBatch(exchange: Exchange, messages: readonly ClientMessage[]): void {
  const notes = messages.flatMap((message) => {
    if (message.kind === 'response') return []
    const item = loggableName(callTargetOf(message.json.value))
    return [item === undefined ? message.method : `${message.method} ${item}`]
  })
  mcpStateOf(exchange).call = {
    method: 'batch',
    item: notes.join(', ').slice(0, maxRecordedChars),
    target: undefined,
  }
}

/** The query of a URI may hold secrets. */
function loggableName(subject: CallTarget | undefined): string | undefined {
  if (subject?.kind !== 'resource') return subject?.name
  const end = subject.name?.search(/[?#]/) ?? -1
  return end === -1 ? subject.name : subject.name?.slice(0, end)
}

/** The client that sessions of a request belong to. */
export function clientOf(exchange: Exchange): SessionClient {
  const owner = ownerOf(exchange)
  if (owner !== '') return { owner, quotaKey: owner }
  const { address } = exchange.facts.source
  return address.includes(':') ? anonymousClient(address) : { owner, quotaKey: address }
}

/** A client without identity at an IPv6 address. Its network is read only where sessions begin, because that takes 2 us. */
function anonymousClient(address: string): SessionClient {
  return {
    owner: '',
    get quotaKey() {
      return clientNetwork(address)
    },
  }
}

/** The identity behind a request, from its token and its key; empty where there is neither. */
function ownerOf({ facts: { jwt, apiKey } }: Exchange): string {
  if (jwt === undefined) return apiKey === undefined ? '' : ownerText(undefined, apiKey)
  if (apiKey !== undefined) return ownerText(jwt, apiKey)
  const known = ownersByClaims.get(jwt)
  if (known !== undefined) return known
  const owner = ownerText(jwt, undefined)
  ownersByClaims.set(jwt, owner)
  return owner
}

/** The claims of a token are the same object for as long as the token is known to be valid. */
const ownersByClaims = new WeakMap<ExactJsonObject, string>()

/** Unambiguous: each part is JSON with the name of its claim, so that no `client_id` equals the `sub` of another identity. */
function ownerText(jwt: ExactJsonObject | undefined, apiKey: JsonObject | undefined): string {
  return exactText([jwt && identityOf(jwt), apiKey && (apiKey['id'] ?? apiKey)])
}

/**
 * Claims that name an identity, the most specific first. Tokens of people without `sub` (lightweight tokens of Keycloak) name a login
 * as `sid`; `client_id` and `azp` are the same for all people who use an application.
 */
const identityClaims = ['sub', 'sid', 'client_id', 'azp'] as const

/** A token without any of them has only itself. */
function identityOf(jwt: ExactJsonObject): ExactJsonValue[] {
  const issuer = jwt['iss'] ?? null
  for (const claim of identityClaims) {
    const value = jwt[claim]
    if (value !== undefined && value !== null && value !== '') return [issuer, claim, value]
  }
  return [issuer, 'claims', jwt]
}

const maxStreamMs = 24 * 60 * 60_000
const tokenLeewayMs = 60_000

/** Milliseconds until the request's token ends, with the leeway that tokens are given; a day where there is none. */
export function tokenLifetimeMs({ facts: { jwt } }: Exchange, now: number): number {
  const expiry = jwt?.['exp']
  if (typeof expiry !== 'number') return maxStreamMs
  return Math.min(Math.max(expiry * 1_000 + tokenLeewayMs - now, 0), maxStreamMs)
}

function permissionsOf(exchange: Exchange, rules: McpRules): Permissions {
  return {
    permits: (item, at) => rules.permits(exchange, item, at),
    permitsMethod: (method) => rules.permitsMethod(exchange, method),
  }
}

/** Headers that tell about the way to the gateway, belong to the gateway's own session, or are made anew. */
const withheldNames: ReadonlySet<string> = new Set([
  'host',
  'accept',
  'accept-encoding',
  'content-length',
  'content-type',
  'content-encoding',
  'cookie',
  'expect',
  'last-event-id',
  'mcp-protocol-version',
  'mcp-session-id',
  'origin',
  'referer',
  'via',
])

const forwardWithoutSession = createHeaderFilter(isWithheld)

/** Revisions with sessions know no `mcp-method` and the like: a target that believed them would not read the message the rules saw. */
const forward = createHeaderFilter((name) => isWithheld(name) || name.startsWith('mcp-'))

function isWithheld(name: string): boolean {
  return (
    withheldNames.has(name) ||
    isWithheldHeader(name) ||
    name.startsWith('sec-') ||
    name.startsWith('access-control-')
  )
}
