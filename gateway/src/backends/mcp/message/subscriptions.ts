import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import { messageOf, paramsOf } from './json-rpc.ts'
import type { Message } from './message.ts'

/** Request of notifications (MCP 2026-07-28, Subscriptions). Its response ends the subscription. */
export const listenMethod = 'subscriptions/listen'
/** First notification of a subscription, with the accepted part of its filter. */
export const acknowledgedMethod = 'notifications/subscriptions/acknowledged'

const subscriptionId = 'io.modelcontextprotocol/subscriptionId'
const listChanges = ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged'] as const

/** Changes of a list, as members of a filter. */
export type ListChange = (typeof listChanges)[number]

/** Notifications that a client subscribes to, or a target accepts. */
export type SubscriptionFilter = {
  readonly changes: ReadonlySet<ListChange>
  /** Resources whose updates are reported. */
  readonly uris: readonly string[]
  /** Tasks whose states are reported (extension `io.modelcontextprotocol/tasks`). */
  readonly tasks: readonly string[]
}

export const emptyFilter: SubscriptionFilter = { changes: new Set(), uris: [], tasks: [] }

/** Reads `params.notifications` of a subscription or its acknowledgement. */
export function readSubscriptionFilter(message: JsonObject): SubscriptionFilter {
  const { notifications } = paramsOf(message)
  const filter = isJsonObject(notifications) ? notifications : {}
  const { resourceSubscriptions, taskIds } = filter
  return {
    changes: new Set(listChanges.filter((name) => filter[name] === true)),
    uris: textsOf(resourceSubscriptions),
    tasks: textsOf(taskIds),
  }
}

function textsOf(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}

/** The filter as `params.notifications`. */
export function subscriptionFilterOf({ changes, uris, tasks }: SubscriptionFilter): JsonObject {
  const filter: JsonObject = {}
  for (const name of changes) filter[name] = true
  if (uris.length > 0) filter['resourceSubscriptions'] = [...uris]
  if (tasks.length > 0) filter['taskIds'] = [...tasks]
  return filter
}

export function isEmptyFilter({ changes, uris, tasks }: SubscriptionFilter): boolean {
  return changes.size === 0 && uris.length === 0 && tasks.length === 0
}

export const updatedMethod = 'notifications/resources/updated'
/** State of a task, with its result. */
export const taskMethod = 'notifications/tasks'

const changesByMethod: ReadonlyMap<string, ListChange> = new Map([
  ['notifications/tools/list_changed', 'toolsListChanged'],
  ['notifications/prompts/list_changed', 'promptsListChanged'],
  ['notifications/resources/list_changed', 'resourcesListChanged'],
])
/** Notifications of other requests, which a subscription must not contain. */
const requestScoped: ReadonlySet<string> = new Set(['notifications/progress', 'notifications/message'])

/** Whether a subscription with this filter may contain the message. */
export function accepts({ changes, uris, tasks }: SubscriptionFilter, { value }: Message): boolean {
  const { method } = value
  if (typeof method !== 'string') return true
  if (method === updatedMethod) return uris.length > 0
  if (method === taskMethod) return tasks.length > 0
  const change = changesByMethod.get(method)
  return change === undefined ? !requestScoped.has(method) : changes.has(change)
}

/** Acknowledgement of the subscription with this id. */
export function acknowledgementOf(id: JsonValue, accepted: SubscriptionFilter): Message {
  const params = { _meta: { [subscriptionId]: id }, notifications: subscriptionFilterOf(accepted) }
  return messageOf({ jsonrpc: '2.0', method: acknowledgedMethod, params })
}

/** The response at the end of the subscription with this id. */
export function endOfSubscription(id: JsonValue): Message {
  const result = { resultType: 'complete', _meta: { [subscriptionId]: id } }
  return messageOf({ jsonrpc: '2.0', id, result })
}
