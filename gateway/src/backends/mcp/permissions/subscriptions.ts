import { editJson, readTargetObject } from '../message/json-edit.ts'
import { paramsOf } from '../message/json-rpc.ts'
import type { Message, MessageSink } from '../message/message.ts'
import {
  accepts,
  isEmptyFilter,
  type ListChange,
  listenMethod,
  readSubscriptionFilter,
  subscriptionFilterOf,
  updatedMethod,
} from '../message/subscriptions.ts'
import type { Permissions } from '../targets/target.ts'

/** Decision on a subscription (`subscriptions/listen`). */
export type SubscriptionDecision =
  /** `message` without denied notifications; `restrict` removes those that the target sends nevertheless. */
  | { readonly kind: 'forward'; readonly message: Message; restrict(sink: MessageSink): MessageSink }
  /** Rules deny all of it. */
  | { readonly kind: 'empty' }

const changesByList: ReadonlyMap<string, ListChange> = new Map([
  ['tools/list', 'toolsListChanged'],
  ['prompts/list', 'promptsListChanged'],
  ['resources/list', 'resourcesListChanged'],
])
/**
 * Applies rules to a subscription: updates require a resource that the client may read, and changes of a list
 * require its method, and tasks `tasks/get`. Unknown members of the filter are removed, because they could
 * name items.
 */
export function decideSubscription(
  message: Message,
  target: string,
  permissions: Permissions,
): SubscriptionDecision {
  const wanted = readSubscriptionFilter(message.value)
  const methods = [...changesByList].filter(([, change]) => wanted.changes.has(change))
  const permitted = {
    changes: new Set(
      methods.filter(([method]) => permissions.permitsMethod(method)).map(([, change]) => change),
    ),
    uris: wanted.uris.filter((uri) => permitsUpdates(permissions, target, uri)),
    tasks: wanted.tasks.length > 0 && permissions.permitsMethod('tasks/get') ? wanted.tasks : [],
  }
  if (isEmptyFilter(permitted) && !isEmptyFilter(wanted)) return { kind: 'empty' }
  const filter = JSON.stringify(subscriptionFilterOf(permitted))
  const text = editJson(message.text, ['params', 'notifications'], () => filter)
  const uris = new Set(permitted.uris)

  function passes(received: Message): boolean {
    if (!accepts(permitted, received)) return false
    if (received.value['method'] !== updatedMethod) return true
    const { uri } = paramsOf(received.value)
    if (typeof uri !== 'string') return false
    // Targets may report a part of a subscribed resource.
    return uris.has(uri) || permissions.permits(readOf(target, uri), 'list')
  }

  return {
    kind: 'forward',
    message: readTargetObject(text),
    restrict: (sink) => ({
      message: (received, mark) => !passes(received) || sink.message(received, mark),
      mark: (mark) => sink.mark(mark),
      end: () => sink.end(),
      fail: (failure) => sink.fail(failure),
    }),
  }
}

/** Rules may read the method, so the use of the resource and the subscription must both be permitted. */
function permitsUpdates(permissions: Permissions, target: string, uri: string): boolean {
  const item = readOf(target, uri)
  return permissions.permits(item, 'call') && permissions.permits({ ...item, method: listenMethod }, 'call')
}

function readOf(target: string, uri: string) {
  return { method: 'resources/read', kind: 'resource', name: uri, target } as const
}
