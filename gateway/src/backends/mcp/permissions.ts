import { isJsonObject, type JsonObject } from '../../lib/json.ts'
import { asGatewayError, idle } from './joint.ts'
import { editJson } from './json-edit.ts'
import { paramsOf } from './json-rpc.ts'
import { callSubject, type List, listOf } from './subject.ts'
import type {
  CallContext,
  Message,
  MessageFlow,
  MessageSink,
  Permissions,
  Target,
  TargetSession,
} from './targets/target.ts'

/**
 * A target under rules: what a client may not use is left out of lists and unknown when called. Rules see the target's own
 * names, so they stand between the target and whatever renames its things.
 */
export function withPermissions(target: Target): Target {
  const { openFor: _, ...rest } = target
  return {
    ...rest,
    open: () => guarded(target.open()),
    resume(state) {
      const session = target.resume(state)
      return session && guarded(session)
    },
  }

  function guarded(session: TargetSession): TargetSession {
    return {
      ...session,
      request(message, context, sink) {
        const { permissions } = context
        if (permissions === undefined) return session.request(message, context, sink)
        return requestUnder(permissions, message, context, sink)
      },
    }

    function requestUnder(
      permissions: Permissions,
      message: Message,
      context: CallContext,
      sink: MessageSink,
    ): MessageFlow {
      const { method } = message.value
      if (typeof method !== 'string') return session.request(message, context, sink)
      const list = listOf(method)
      if (list) {
        const listing = filtered(sink, list, (name) =>
          permissions.permits({ method, kind: list.kind, name, target: target.name }, 'list'),
        )
        return session.request(message, context, listing)
      }
      const subject = callSubject(message.value)
      if (subject === undefined) {
        if (permissions.permitsMethod(method)) return session.request(message, context, sink)
        sink.fail({ kind: 'refused', status: 400, code: -32601, message: `Method not found: ${method}` })
        return idle
      }
      const { kind, name } = subject
      const input = paramsOf(message.value)['arguments']
      const item = { method, kind, name: name ?? '', target: target.name }
      const call = isJsonObject(input) ? { ...item, arguments: input } : item
      if (name !== undefined && permissions.permits(call, 'call'))
        return session.request(message, context, sink)
      sink.fail({ kind: 'unknown', item: kind })
      return idle
    }
  }
}

/** Leaves items out of the response; one without a name cannot be judged and goes too. */
function filtered(sink: MessageSink, list: List, keeps: (name: string) => boolean): MessageSink {
  let failed = false
  return {
    ...sink,
    message(message, mark) {
      if (failed) return true
      const { result } = message.value
      if (!isJsonObject(result) || message.value['method'] !== undefined) return sink.message(message, mark)
      try {
        return sink.message(filterItems(message, result, list, keeps), mark)
      } catch (error) {
        failed = true
        sink.fail({
          kind: 'error',
          error: asGatewayError(error),
        })
        return true
      }
    },
    end() {
      if (!failed) sink.end()
    },
    fail(failure) {
      if (!failed) sink.fail(failure)
    },
  }
}

function filterItems(
  message: Message,
  result: JsonObject,
  { member, naming }: List,
  keeps: (name: string) => boolean,
): Message {
  const text = editJson(message.text, ['result', member, '*'], (item) => {
    const value: unknown = JSON.parse(item)
    const name = isJsonObject(value) ? value[naming] : undefined
    return typeof name === 'string' && keeps(name) ? item : undefined
  })
  if (text === message.text) return message
  const items = result[member]
  const kept = Array.isArray(items) ? items.filter((item) => keepsItem(item)) : []
  return { text, value: { ...message.value, result: { ...result, [member]: kept } } }

  function keepsItem(item: unknown): boolean {
    const name = isJsonObject(item) ? item[naming] : undefined
    return typeof name === 'string' && keeps(name)
  }
}
