import { editTopLevel, memberText } from '../../../lib/json/edit.ts'
import { isJsonObject } from '../../../lib/json/json.ts'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'
import { readTargetObject } from '../message/json-edit.ts'
import { paramsOf } from '../message/json-rpc.ts'
import type { Message } from '../message/message.ts'
import type { CallContext, Target, TargetSession } from './target.ts'

/** `traceparent` of version 00 (W3C Trace Context section 3.2). */
const traceparentPattern = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/
const headerText = /^[\x20-\x7e]+$/
/** W3C Trace Context section 3.3.1.5, W3C Baggage section 3.3.2. */
const companions = [
  { name: 'tracestate', maxLength: 512 },
  { name: 'baggage', maxLength: 8_192 },
] as const

type TraceContext = ReadonlyMap<string, string>

/**
 * Copies the trace context between the headers of a request and `params._meta`, where MCP transports without
 * headers have it (`traceparent`, `tracestate`, `baggage`). The context in the message takes precedence: it
 * is that of the request, and the header may be that of a connection. With tracing, both are those of the
 * span of the call.
 */
export function withTraceContext(target: Target): Target {
  const { openFor: _, ...rest } = target
  return {
    ...rest,
    open: () => traced(target.open()),
    resume(state, remote) {
      const session = target.resume(state, remote)
      return session && traced(session)
    },
  }
}

function traced(session: TargetSession): TargetSession {
  return {
    ...session,
    request(message, context, sink) {
      const { _meta: meta } = paramsOf(message.value)
      const inMessage = isJsonObject(meta) ? contextOf((name) => meta[name]) : undefined
      // A traced request has continued the context of the message; the target continues the call's span.
      if (inMessage !== undefined && context.trace === undefined) {
        return session.request(message, withHeaders(context, inMessage), sink)
      }
      if (context.headers['traceparent'] === undefined) return session.request(message, context, sink)
      const inHeaders = contextOf((name) => firstHeader(context.headers, name))
      const { params = {} } = message.value
      // Parameters in an array are invalid, and remain so for the target.
      const isTraceable = inHeaders !== undefined && isJsonObject(params)
      return session.request(isTraceable ? withMeta(message, inHeaders) : message, context, sink)
    },
  }
}

/** Reads a trace context; undefined without a valid `traceparent`. */
function contextOf(read: (name: string) => unknown): TraceContext | undefined {
  const traceparent = read('traceparent')
  if (typeof traceparent !== 'string' || !traceparentPattern.test(traceparent)) return undefined
  const found = new Map([['traceparent', traceparent]])
  for (const { name, maxLength } of companions) {
    const value = read(name)
    if (typeof value === 'string' && value.length <= maxLength && headerText.test(value))
      found.set(name, value)
  }
  return found
}

/** Replaces the context of the headers. Parts of another trace are removed. */
function withHeaders(context: CallContext, trace: TraceContext): CallContext {
  const headers: Headers = { ...context.headers }
  for (const { name } of companions) delete headers[name]
  for (const [name, value] of trace) headers[name] = value
  return { ...context, headers }
}

function withMeta(message: Message, trace: TraceContext): Message {
  const json = readTargetObject(message.text)
  const params = readTargetObject(memberText(json, 'params') ?? '{}')
  const texts = new Map([...trace].map(([name, value]) => [name, JSON.stringify(value)]))
  const meta = readTargetObject(metaText(memberText(params, '_meta')))
  const newParams = editTopLevel(params, { set: new Map([['_meta', editTopLevel(meta, { set: texts })]]) })
  return readTargetObject(editTopLevel(json, { set: new Map([['params', newParams]]) }))
}

/** A `_meta` of another type is invalid, and replaced. */
function metaText(text: string | undefined): string {
  return text?.trimStart().startsWith('{') === true ? text : '{}'
}
