import type { JsonObject, JsonValue } from '../../../lib/json/json.ts'
import { itemListOf } from '../message/items.ts'
import { messageOf, paramsOf } from '../message/json-rpc.ts'
import type { Message, MessageSink } from '../message/message.ts'
import { revisions, sessionlessRevisions } from '../message/protocol.ts'
import { acknowledgementOf, emptyFilter, endOfSubscription, listenMethod } from '../message/subscriptions.ts'
import { signInRequired } from './user-authorization.ts'

/** Tool of a target at which the user has not signed in. */
const signInTool = 'sign_in'

export type UnansweredRequest = {
  readonly message: Message
  /** Name of the target. */
  readonly target: string
  /** Address of the login. */
  readonly url: string
  /** Whether the client has sent `initialize`. */
  readonly hasBegun: boolean
  /** Whether the request is of a revision without sessions, which has no `initialize`. */
  readonly isSessionless: boolean
}

/** Answers a request in place of a target, until the user has signed in. */
export function answerBeforeLogin(request: UnansweredRequest, sink: MessageSink): void {
  const { message, target, url } = request
  if (request.isSessionless && message.value['method'] === listenMethod) {
    const { id = null } = message.value
    sink.message(acknowledgementOf(id, emptyFilter))
    sink.message(endOfSubscription(id))
    sink.end()
    return
  }
  const result = request.isSessionless ? resultWithoutSession(request) : resultInSession(request)
  if (result === undefined) sink.fail(signInRequired(target, url))
  else respond(message, sink, result)
}

function resultInSession({ message, target, url, hasBegun }: UnansweredRequest): JsonObject | undefined {
  const { method } = message.value
  if (method === 'initialize') return initializeResult(message, target, url)
  if (isSignIn(message)) return textResult(`${openAddress(target)}, then call the tool again: ${url}`)
  if (!hasBegun) return undefined
  return method === 'ping' || method === 'logging/setLevel' ? {} : listOf(method, target)
}

/** Results of revision 2026-07-28: they are for this user, and for this moment. */
function resultWithoutSession({ message, target, url }: UnansweredRequest): JsonObject | undefined {
  const { method } = message.value
  const isFresh = { ttlMs: 0, cacheScope: 'private' }
  const complete = { resultType: 'complete' }
  if (isSignIn(message))
    return {
      ...complete,
      ...textResult(`${openAddress(target)}, then request the list of tools again: ${url}`),
    }
  if (method === 'server/discover') {
    const { serverInfo, instructions } = initializeResult(message, target, url)
    const capabilities = { tools: {}, prompts: {}, resources: {} }
    return {
      ...{
        ...complete,
        ...isFresh,
        supportedVersions: [...sessionlessRevisions],
        capabilities,
        instructions,
      },
      _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
    }
  }
  const list = listOf(method, target)
  return list && { ...complete, ...isFresh, ...list }
}

function openAddress(target: string): string {
  return `Open this address in a browser to sign in to ${target}`
}

function listOf(method: JsonValue | undefined, target: string): JsonObject | undefined {
  const list = typeof method === 'string' ? itemListOf(method) : undefined
  return list && { [list.member]: list.member === 'tools' ? [toolOf(target)] : [] }
}

/** Answers a call of the tool after the login: the tools of the target replace it. */
export function answerSignedIn(message: Message, sink: MessageSink): void {
  sink.message(listChanged)
  respond(message, sink, textResult('You are signed in. Request the list of tools again.'))
}

export function isSignIn({ value }: Message): boolean {
  return value['method'] === 'tools/call' && paramsOf(value)['name'] === signInTool
}

const listChanged = messageOf({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })

function toolOf(name: string): JsonObject {
  return {
    name: signInTool,
    title: `Sign in to ${name}`,
    description: `Returns the address at which the user signs in to ${name}. Its other tools are available afterwards.`,
    inputSchema: { type: 'object', properties: {} },
    annotations: { readOnlyHint: true, openWorldHint: false },
  }
}

function textResult(text: string): JsonObject {
  return { content: [{ type: 'text', text }] }
}

function initializeResult({ value }: Message, name: string, url: string) {
  const { protocolVersion: requested } = paramsOf(value)
  const isKnown = typeof requested === 'string' && revisions.includes(requested)
  return {
    protocolVersion: isKnown ? requested : (revisions[0] ?? ''),
    capabilities: { tools: { listChanged: true }, prompts: {}, resources: {}, logging: {} },
    serverInfo: { name, version: '1' },
    instructions: `The user must sign in to ${name} before its tools can be used. Address: ${url}`,
  }
}

function respond({ value }: Message, sink: MessageSink, result: JsonObject): void {
  sink.message(messageOf({ jsonrpc: '2.0', id: value['id'] ?? null, result }))
  sink.end()
}
