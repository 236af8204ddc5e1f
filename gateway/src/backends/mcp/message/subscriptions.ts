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
}

/** Reads `params.notifications` of a subscription or its acknowledgement. */
export function readSubscriptionFilter(message: JsonObject): SubscriptionFilter {
  const { notifications } = paramsOf(message)
  const filter = isJsonObject(notifications) ? notifications : {}
  const { resourceSubscriptions: uris } = filter
  return {
    changes: new Set(listChanges.filter((name) => filter[name] === true)),
    uris: Array.isArray(uris) ? uris.filter((uri) => typeof uri === 'string') : [],
  }
}

/** The filter as `params.notifications`. */
export function subscriptionFilterOf({ changes, uris }: SubscriptionFilter): JsonObject {
  const filter: JsonObject = {}
  for (const name of changes) filter[name] = true
  if (uris.length > 0) filter['resourceSubscriptions'] = [...uris]
  return filter
}

export function isEmptyFilter({ changes, uris }: SubscriptionFilter): boolean {
  return changes.size === 0 && uris.length === 0
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
