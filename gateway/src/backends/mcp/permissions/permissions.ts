import { argumentsOf } from '../message/arguments.ts'
import { callTargetOf, itemListOf } from '../message/items.ts'
import { methodNotFound } from '../message/json-rpc.ts'
import { idleFlow } from '../message/merged-sink.ts'
import type { Message, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import { maxListResponseBytes } from '../message/read-list.ts'
import { acknowledgementOf, emptyFilter, endOfSubscription, listenMethod } from '../message/subscriptions.ts'
import type { CallContext, Permissions, Target, TargetSession } from '../targets/target.ts'
import { createFilteredSink } from './filter-list.ts'
import { withPrivateResults } from './private-results.ts'
import { decideSubscription } from './subscriptions.ts'

/**
 * Applies authorization rules and allowed targets to a target: denied items are absent from lists and unknown
 * in calls. Rules use the target's names, so they apply before renaming.
 */
export function withPermissions(target: Target): Target {
  const { openFor: _, ...rest } = target
  return {
    ...rest,
    open: () => restrict(target.open()),
    resume(state, remote) {
      const session = target.resume(state, remote)
      return session && restrict(session)
    },
  }

  function restrict(session: TargetSession): TargetSession {
    return {
      ...session,
      request(message, context, sink) {
        const denial = targetDenial(target.name, message, context)
        if (denial !== undefined) {
          sink.fail(denial)
          return idleFlow
        }
        const { permissions, checks, targets } = context
        const isRestricted = (permissions ?? checks ?? targets) !== undefined
        const shown = isRestricted ? withPrivateResults(sink) : sink
        if (permissions === undefined) return session.request(message, context, shown)
        return requestWithRules(permissions, message, context, shown)
      },
      listen(context, sink) {
        const isDenied = context.targets?.permits(target.name) === false
        return isDenied ? Promise.resolve({ kind: 'none' }) : session.listen(context, sink)
      },
      async deliver(message, context) {
        const denial = targetDenial(target.name, message, context)
        if (denial !== undefined) return denial
        const { permissions } = context
        const { method } = message.value
        // A request without an id is a notification, which lenient targets may execute.
        const failure =
          permissions && typeof method === 'string' ? denialOf(permissions, method, message) : undefined
        return failure ?? session.deliver(message, context)
      },
    }

    function requestWithRules(
      permissions: Permissions,
      message: Message,
      context: CallContext,
      sink: MessageSink,
    ): MessageFlow {
      const { method } = message.value
      if (typeof method !== 'string') return session.request(message, context, sink)
      const list = itemListOf(method)
      if (list && permissions.permitsMethod(method)) {
        const listing = createFilteredSink(sink, list, (name) =>
          permissions.permits({ method, kind: list.kind, name, target: target.name }, 'list'),
        )
        const bounded: CallContext = { ...context, maxResponseBytes: maxListResponseBytes }
        const flow = session.request(message, bounded, listing.sink)
        return {
          resume: () => flow.resume(),
          cancel() {
            listing.cancel()
            flow.cancel()
          },
        }
      }
      const failure = list ? methodNotFoundFailure(method) : denialOf(permissions, method, message)
      if (failure !== undefined) {
        sink.fail(failure)
        return idleFlow
      }
      if (method === listenMethod) return subscribe(permissions, message, context, sink)
      return session.request(message, context, sink)
    }

    function subscribe(
      permissions: Permissions,
      message: Message,
      context: CallContext,
      sink: MessageSink,
    ): MessageFlow {
      const decision = decideSubscription(message, target.name, permissions)
      if (decision.kind === 'forward')
        return session.request(decision.message, context, decision.restrict(sink))
      const { id = null } = message.value
      sink.message(acknowledgementOf(id, emptyFilter))
      sink.message(endOfSubscription(id))
      sink.end()
      return idleFlow
    }

    /** Denial of a message other than a list; undefined if permitted. */
    function denialOf(
      permissions: Permissions,
      method: string,
      { text, value }: Message,
    ): TargetFailure | undefined {
      const callTarget = callTargetOf(value)
      if (callTarget === undefined) {
        return permissions.permitsMethod(method) ? undefined : methodNotFoundFailure(method)
      }
      const { kind, name } = callTarget
      const item = { method, kind, name: name ?? '', target: target.name }
      const call = kind === 'tool' ? { ...item, arguments: argumentsOf({ text, value }) } : item
      return name !== undefined && permissions.permits(call, 'call')
        ? undefined
        : { kind: 'unknown', item: kind }
    }
  }
}

/** Refusal of a message to a target that the client must not use: as if the target did not exist. */
export function targetDenial(
  target: string,
  { value }: Message,
  { targets }: CallContext,
): TargetFailure | undefined {
  if (targets === undefined || targets.permits(target)) return undefined
  targets.refused()
  const item = callTargetOf(value)?.kind
  return item === undefined ? methodNotFoundFailure(String(value['method'])) : { kind: 'unknown', item }
}

function methodNotFoundFailure(method: string): TargetFailure {
  return { kind: 'refused', status: 400, code: methodNotFound, message: `Method not found: ${method}` }
}
