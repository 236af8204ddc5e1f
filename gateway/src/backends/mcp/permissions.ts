import { isJsonObject } from '../../lib/json.ts'
import { asGatewayError, idle } from './joint.ts'
import { editJson, readTargetObject } from './json-edit.ts'
import { methodNotFound, paramsOf } from './json-rpc.ts'
import { withText } from './rename.ts'
import { callSubject, type List, listOf } from './subject.ts'
import type {
  CallContext,
  Message,
  MessageFlow,
  MessageSink,
  Permissions,
  Target,
  TargetFailure,
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
      async deliver(message, context) {
        const { permissions } = context
        const { method } = message.value
        // A request without an id is a notification, and a lenient target might do what it says.
        const failure =
          permissions && typeof method === 'string' ? refusalUnder(permissions, method, message) : undefined
        return failure ?? session.deliver(message, context)
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
      if (list && permissions.permitsMethod(method)) {
        const listing = filtered(sink, list, (name) =>
          permissions.permits({ method, kind: list.kind, name, target: target.name }, 'list'),
        )
        return session.request(message, context, listing)
      }
      const failure = list ? unknownMethod(method) : refusalUnder(permissions, method, message)
      if (failure === undefined) return session.request(message, context, sink)
      sink.fail(failure)
      return idle
    }

    /** Why a message other than a list may not reach the target. */
    function refusalUnder(
      permissions: Permissions,
      method: string,
      { value }: Message,
    ): TargetFailure | undefined {
      const subject = callSubject(value)
      if (subject === undefined) {
        return permissions.permitsMethod(method) ? undefined : unknownMethod(method)
      }
      const { kind, name } = subject
      const input = paramsOf(value)['arguments']
      const item = { method, kind, name: name ?? '', target: target.name }
      const call = isJsonObject(input) ? { ...item, arguments: input } : item
      return name !== undefined && permissions.permits(call, 'call')
        ? undefined
        : { kind: 'unknown', item: kind }
    }
  }
}

function unknownMethod(method: string): TargetFailure {
  return { kind: 'refused', status: 400, code: methodNotFound, message: `Method not found: ${method}` }
}

/** Leaves items out of the response; one without a name cannot be judged and goes too. */
function filtered(sink: MessageSink, list: List, keeps: (name: string) => boolean): MessageSink {
  let failed = false
  return {
    ...sink,
    message(message, mark) {
      if (failed) return true
      let kept: Message
      try {
        kept = filterItems(message, list, keeps)
      } catch (error) {
        failed = true
        sink.fail({ kind: 'error', error: asGatewayError(error) })
        return true
      }
      return sink.message(kept, mark)
    },
    end() {
      if (!failed) sink.end()
    },
    fail(failure) {
      if (!failed) sink.fail(failure)
    },
  }
}

/** Read anew: whoever reads the text in another way than the rules would see what they left out. */
function filterItems(message: Message, { member, naming }: List, keeps: (name: string) => boolean): Message {
  const { value } = readTargetObject(message.text)
  if (!('result' in value)) return message
  const text = editJson(message.text, ['result', member, '*'], (item) => {
    const name = item.startsWith('{') ? readTargetObject(item).value[naming] : undefined
    return typeof name === 'string' && keeps(name) ? item : undefined
  })
  return withText({ text: message.text, value }, text)
}
