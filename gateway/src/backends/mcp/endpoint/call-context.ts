import { ownerOf } from '../../../identity/owner.ts'
import { clientNetwork } from '../../../lib/address/client-network.ts'
import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import { createHeaderFilter } from '../../../net/http/headers.ts'
import type { Exchange, McpState, TargetAccess } from '../../../pipeline/exchange.ts'
import type { McpCheck } from '../../../pipeline/mcp/mcp-check.ts'
import { loggableItemName, type McpItem } from '../../../pipeline/mcp/mcp-item.ts'
import { continueTrace, propagate } from '../../../pipeline/tracing/trace.ts'
import { isWithheldHeader } from '../../../upstream/withheld-headers.ts'
import { messageChecks } from '../checks/checks.ts'
import type { Federation } from '../federation/federation.ts'
import { type CallTarget, callTargetOf } from '../message/items.ts'
import { type ClientMessage, paramsOf } from '../message/json-rpc.ts'
import type { Message } from '../message/message.ts'
import type { Revision } from '../message/protocol.ts'
import type { SessionClient } from '../sessions/session.ts'
import { callRecorder } from '../targets/recorded-calls.ts'
import type { CallContext, Permissions, Target, TargetPermissions } from '../targets/target.ts'

/** Authorization rules for tools, prompts and resources (`mcpAuthorization`). */
export type McpRules = {
  permits(exchange: Exchange, item: McpItem, at: 'list' | 'call'): boolean
  /** Decides on methods without a tool, prompt or resource. */
  permitsMethod(exchange: Exchange, method: string): boolean
}

/** Creates the call context of a request for targets. */
export function callContext(
  exchange: Exchange,
  revision: Revision,
  { rules, checks }: { rules: McpRules | undefined; checks?: readonly McpCheck[] | undefined },
): CallContext {
  const sessionless = revision.kind === 'sessionless'
  const { headers } = exchange.facts.request
  const forwarded = sessionless ? forwardWithoutSession(headers) : forward(headers)
  if (exchange.forwarding !== undefined) {
    for (const edit of exchange.forwarding.headerEdits) edit(forwarded)
  }
  const { cancellation, auth, mcp, trace } = exchange
  propagate(trace, undefined, forwarded)
  const context: CallContext = {
    headers: forwarded,
    cancellation,
    caller: exchange,
    loggedCall: mcp?.call,
    client: () => clientOf(exchange).quotaKey,
    recorder: callRecorder(exchange),
    trace: trace?.isSampled === true ? trace.context : undefined,
    targets: auth.targets && targetPermissions(exchange, auth.targets),
    checks: messageChecks(exchange, checks),
  }
  const known = revision.version === undefined ? context : { ...context, protocolVersion: revision.version }
  return rules === undefined ? known : { ...known, permissions: permissionsOf(exchange, rules) }
}

/** Continues the trace of `params._meta`, which takes precedence over the headers. */
function continueTraceOf(exchange: Exchange, message: JsonObject): void {
  const { _meta: meta } = paramsOf(message)
  if (isJsonObject(meta)) continueTrace(exchange, meta['traceparent'], meta['tracestate'])
}

function argumentsOf(message: JsonObject): JsonObject | undefined {
  const { arguments: given } = paramsOf(message)
  return isJsonObject(given) ? given : undefined
}

/**
 * Records the method and item of a message for the access log. The target of an ambiguous call is recorded
 * later.
 */
export function recordCall(
  exchange: Exchange,
  message: ClientMessage,
  { federation: { members }, maxPayloadSize }: RecordingOptions,
): void {
  if (message.kind === 'response') return
  const { method, json } = message
  if (exchange.trace !== undefined) continueTraceOf(exchange, json.value)
  const [only] = members
  const item = callTargetOf(json.value)
  const state = mcpStateOf(exchange)
  state.call = {
    method,
    item: loggableName(item),
    target: members.length === 1 ? only?.name : undefined,
    arguments: exchange.retains?.mcpContent === true ? argumentsOf(json.value) : undefined,
  }
  if (maxPayloadSize === undefined || item === undefined || exchange.recording === undefined) return
  state.resultBytes = maxPayloadSize
  exchange.payload = { request: payloadOf(json.text, maxPayloadSize), response: undefined }
}

export type RecordingOptions = {
  federation: Pick<Federation, 'members'>
  /** Bytes of arguments and results in the ledger; undefined if it stores none. */
  maxPayloadSize?: number | undefined
}

/** Records the response to a call of an item for the ledger and for expressions of telemetry. */
export function recordResult(exchange: Exchange, { text }: Pick<Message, 'text'>): void {
  const { payload, mcp, retains } = exchange
  if (retains?.mcpContent === true && mcp?.call !== undefined)
    mcp.call.response = payloadOf(text, maxRetainedBytes)
  if (payload === undefined || mcp?.resultBytes === undefined) return
  exchange.payload = { ...payload, response: payloadOf(text, mcp.resultBytes) }
}

/** Bytes of a response that expressions of telemetry read. */
const maxRetainedBytes = 64 * 1024

/** The start of a message, with an ellipsis if it is cut off. */
function payloadOf(text: string, maxBytes: number): string {
  if (text.length <= maxBytes && Buffer.byteLength(text) <= maxBytes) return text
  const start = Buffer.from(text.slice(0, maxBytes)).subarray(0, maxBytes)
  return `${start.toString().replace(/\uFFFD+$/, '')}…`
}

/** The MCP state of an exchange, created on first use. */
export function mcpStateOf(exchange: Exchange): McpState {
  exchange.mcp ??= { call: undefined, onDelivered: undefined }
  return exchange.mcp
}

/** Maximum length of the batch description in the access log. */
const maxRecordedChars = 1_000

/** Records a batch for the access log: method and item of each message. */
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

function loggableName(subject: CallTarget | undefined): string | undefined {
  const name = subject?.name
  return subject?.kind === 'resource' && name !== undefined ? loggableItemName(name) : name
}

/** Owner of the sessions of a request. */
export function clientOf(exchange: Exchange): SessionClient {
  const owner = ownerOf(exchange)
  if (owner !== '') return { owner, quotaKey: owner }
  const { address } = exchange.facts.source
  return address.includes(':') ? anonymousClient(address) : { owner, quotaKey: address }
}

/**
 * Client without identity at an IPv6 address. Its network is computed lazily, at session start, because that
 * takes 2 us.
 */
function anonymousClient(address: string): SessionClient {
  return {
    owner: '',
    get quotaKey() {
      return clientNetwork(address)
    },
  }
}

const maxStreamMs = 24 * 60 * 60_000
const tokenLeewayMs = 60_000

/** Milliseconds until the request's key or token expires, tokens with leeway; at most a day. */
export function credentialLifetimeMs({ facts: { jwt }, auth }: Exchange, now: number): number {
  const expiry = jwt?.['exp']
  const tokenEnd = typeof expiry === 'number' ? expiry * 1_000 + tokenLeewayMs : Number.POSITIVE_INFINITY
  const end = Math.min(tokenEnd, auth.expiresAt ?? Number.POSITIVE_INFINITY)
  return Math.min(Math.max(end - now, 0), maxStreamMs)
}

function targetPermissions({ log }: Exchange, { allows }: TargetAccess): TargetPermissions {
  return {
    permits: allows,
    refused() {
      log.refusedBy = targetNotAllowed
    },
  }
}

/** Whether the virtual keys of a request allow one of the targets. Records a refusal for the access log. */
export function permitsAnyTarget({ auth: { targets }, log }: Exchange, members: readonly Target[]): boolean {
  if (targets === undefined || members.some(({ name }) => targets.allows(name))) return true
  log.refusedBy = targetNotAllowed
  return false
}

const targetNotAllowed = 'api-key: target not allowed'

function permissionsOf(exchange: Exchange, rules: McpRules): Permissions {
  return {
    permits: (item, at) => rules.permits(exchange, item, at),
    permitsMethod: (method) => rules.permitsMethod(exchange, method),
  }
}

/** Headers of the connection to the gateway, of the gateway's session, or set by the target. */
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

/**
 * Session-based revisions have no `mcp-method` and similar headers: a target that trusts them could read
 * another message than the rules.
 */
const forward = createHeaderFilter((name) => isWithheld(name) || name.startsWith('mcp-'))

function isWithheld(name: string): boolean {
  return (
    withheldNames.has(name) ||
    isWithheldHeader(name) ||
    name.startsWith('sec-') ||
    name.startsWith('access-control-')
  )
}
