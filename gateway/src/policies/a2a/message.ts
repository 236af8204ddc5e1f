import { isJsonObject, type JsonObject } from '../../lib/json/json.ts'
import { compileJsonNames } from '../../lib/json/names.ts'
import { readJsonObject } from '../../lib/json/text.ts'
import type { A2aFacts } from '../../pipeline/facts/a2a-facts.ts'

/** A call of an agent, or the error in its message. */
export type ReadCall =
  | { readonly kind: 'call'; readonly facts: A2aFacts }
  | { readonly kind: 'invalid'; readonly message: string }

/** Names that rules read, and their places. Contents of parts and metadata are free JSON. */
const findAmbiguousName = compileJsonNames({
  fields: ['jsonrpc', 'id', 'method', 'params', 'message', 'taskId', 'contextId', 'configuration'],
  free: { metadata: 'free', data: 'free' },
})

/**
 * Reads the JSON-RPC request of a body. A message with duplicate keys, or with keys that differ only in case,
 * is invalid: the agent could read another method than the rules. Messages without `method` belong to the
 * binding HTTP+JSON.
 */
export function readCall(body: Uint8Array): ReadCall {
  const json = readJsonObject(Buffer.from(body).toString())
  if (json.kind === 'invalid') return { kind: 'invalid', message: 'the body is not a JSON object' }
  if (json.kind === 'duplicate') return { kind: 'invalid', message: 'a key of the body occurs twice' }
  const problem = findAmbiguousName(json.value)
  if (problem?.kind === 'ambiguous')
    return {
      kind: 'invalid',
      message: `a key of the body differs from a field only in case: ${problem.path}`,
    }
  if (problem !== undefined) return { kind: 'invalid', message: 'the body has too many unknown keys' }
  const { method, params } = json.value
  if (method !== undefined && typeof method !== 'string')
    return { kind: 'invalid', message: 'method must be a string' }
  const fields = isJsonObject(params) ? params : {}
  const message = isJsonObject(fields['message']) ? fields['message'] : {}
  return {
    kind: 'call',
    facts: withoutUndefined({
      method,
      // A task is `id` in methods about tasks, `taskId` in others and in messages.
      taskId: textOf(message, 'taskId') ?? textOf(fields, 'taskId') ?? textOf(fields, 'id'),
      contextId: textOf(message, 'contextId') ?? textOf(fields, 'contextId'),
    }),
  }
}

function textOf(object: JsonObject, name: string): string | undefined {
  const value = object[name]
  return typeof value === 'string' ? value : undefined
}

/** Unset members are absent, so that `has()` of expressions is false. */
function withoutUndefined(facts: Record<keyof A2aFacts, string | undefined>): A2aFacts {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined))
}

/** Methods of the revisions 0.3 and 1.0; label values of metrics. */
const methods: ReadonlySet<string> = new Set([
  ...['message/send', 'message/stream', 'tasks/get', 'tasks/list', 'tasks/cancel', 'tasks/resubscribe'],
  ...['set', 'get', 'list', 'delete'].map((name) => `tasks/pushNotificationConfig/${name}`),
  'agent/getAuthenticatedExtendedCard',
  ...['SendMessage', 'SendStreamingMessage', 'GetTask', 'ListTasks', 'CancelTask', 'SubscribeToTask'],
  ...['CreateTaskPushNotificationConfig', 'GetTaskPushNotificationConfig'],
  ...['ListTaskPushNotificationConfigs', 'DeleteTaskPushNotificationConfig', 'GetExtendedAgentCard'],
])

/** The method as a label; clients may send any text. */
export function methodLabel(method: string | undefined): string {
  if (method === undefined) return 'none'
  return methods.has(method) ? method : 'other'
}

/** Whether the result of a method is an agent card. */
export function returnsCard(method: string | undefined): boolean {
  return method === 'agent/getAuthenticatedExtendedCard' || method === 'GetExtendedAgentCard'
}

const cardPaths = [
  '/.well-known/agent-card.json',
  '/.well-known/agent.json',
  '/v1/card',
  '/extendedAgentCard',
]

/** Whether a GET request reads an agent card: public, of older revisions, or extended (HTTP+JSON). */
export function isCardPath(path: string): boolean {
  return cardPaths.some((suffix) => path.endsWith(suffix))
}
