import type { JsonObject } from '../../../lib/json/json.ts'
import { itemListOf } from '../message/items.ts'
import { messageOf, paramsOf } from '../message/json-rpc.ts'
import type { Message, MessageSink } from '../message/message.ts'
import { revisions } from '../message/protocol.ts'
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
}

/** Answers a request in place of a target, until the user has signed in. */
export function answerBeforeLogin(
  { message, target, url, hasBegun }: UnansweredRequest,
  sink: MessageSink,
): void {
  const { method } = message.value
  const list = typeof method === 'string' ? itemListOf(method) : undefined
  if (method === 'initialize') respond(message, sink, initializeResult(message, target, url))
  else if (hasBegun && (method === 'ping' || method === 'logging/setLevel')) respond(message, sink, {})
  else if (hasBegun && method === 'tools/list') respond(message, sink, { tools: [toolOf(target)] })
  else if (hasBegun && list !== undefined) respond(message, sink, { [list.member]: [] })
  else if (isSignIn(message)) {
    const text = `Open this address in a browser to sign in to ${target}, then call the tool again: ${url}`
    respond(message, sink, textResult(text))
  } else sink.fail(signInRequired(target, url))
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

function initializeResult({ value }: Message, name: string, url: string): JsonObject {
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
