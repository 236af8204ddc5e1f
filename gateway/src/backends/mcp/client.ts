import type { JsonObject } from '../../lib/json.ts'
import { createHeaderFilter } from '../../net/headers.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Federation } from './federation.ts'
import type { ClientMessage } from './json-rpc.ts'
import type { Revision } from './protocol.ts'
import { callSubject, type Subject } from './subject.ts'
import type { CallContext, Item, Permissions } from './targets/target.ts'

/** Rules about single tools, prompts and resources (`mcpAuthorization`). */
export type McpRules = {
  permits(exchange: Exchange, item: Item, at: 'list' | 'call'): boolean
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
  const { cancellation, credential, mcpCall } = exchange
  const context: CallContext = { headers: forwarded, cancellation, credential, noted: mcpCall }
  const known = revision.version === undefined ? context : { ...context, protocolVersion: revision.version }
  return rules === undefined ? known : { ...known, permissions: permissionsOf(exchange, rules) }
}

/** Tells the access log what a message asks for. A call that several targets could be meant by learns its target later. */
export function noteCall(exchange: Exchange, message: ClientMessage, { members }: Federation): void {
  if (message.kind === 'response') return
  const { method } = message
  const [only] = members
  exchange.mcpCall = {
    method,
    item: loggable(callSubject(message.json.value)),
    target: members.length === 1 ? only?.name : undefined,
  }
}

/** The query of a URI may hold secrets. */
function loggable(subject: Subject | undefined): string | undefined {
  if (subject?.kind !== 'resource') return subject?.name
  const end = subject.name?.search(/[?#]/) ?? -1
  return end === -1 ? subject.name : subject.name?.slice(0, end)
}

/** Who a session belongs to: the token's subject, the key, or nobody in particular. */
export function ownerOf({ facts: { jwt, apiKey } }: Exchange): string {
  if (jwt === undefined) return apiKey === undefined ? '' : ownerText(undefined, apiKey)
  if (apiKey !== undefined) return ownerText(jwt, apiKey)
  const known = ownersByClaims.get(jwt)
  if (known !== undefined) return known
  const owner = ownerText(jwt, undefined)
  ownersByClaims.set(jwt, owner)
  return owner
}

/** The claims of a token are the same object for as long as the token is known to be valid. */
const ownersByClaims = new WeakMap<JsonObject, string>()

function ownerText(jwt: JsonObject | undefined, apiKey: JsonObject | undefined): string {
  const subject = jwt && (jwt['sub'] ?? jwt['client_id'] ?? jwt['azp'] ?? null)
  return JSON.stringify([jwt?.['iss'] ?? null, subject ?? null, apiKey?.['id'] ?? null])
}

const maxStreamMs = 24 * 60 * 60_000
const tokenLeewayMs = 60_000

/** Milliseconds until the request's token ends, with the leeway that tokens are given; a day where there is none. */
export function tokenLifeMs({ facts: { jwt } }: Exchange, now: number): number {
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
  'cf-connecting-ip',
  'content-length',
  'content-type',
  'content-encoding',
  'cookie',
  'expect',
  'forwarded',
  'last-event-id',
  'mcp-protocol-version',
  'mcp-session-id',
  'origin',
  'referer',
  'true-client-ip',
  'via',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-real-ip',
])

/** Frameworks take these for the method or the address itself, so that a permitted call would be another one. */
const overrides = /^x-(?:original-|http-)?method(?:-override)?$|^x-(?:original|rewrite)-ur[il]$/

const forwardWithoutSession = createHeaderFilter(isWithheld)

/** Revisions with sessions know no `mcp-method` and the like: a target that believed them would not read the message the rules saw. */
const forward = createHeaderFilter((name) => isWithheld(name) || name.startsWith('mcp-'))

function isWithheld(name: string): boolean {
  return (
    withheldNames.has(name) ||
    overrides.test(name) ||
    name.startsWith('x-forwarded-') ||
    name.startsWith('sec-') ||
    name.startsWith('access-control-')
  )
}
