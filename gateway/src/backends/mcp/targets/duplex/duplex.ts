import { GatewayError } from '../../../../lib/gateway-error.ts'
import { isJsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { editTopLevel, type JsonText, memberText, readJsonObject } from '../../../../lib/json/text.ts'
import type { Log } from '../../../../telemetry/log.ts'
import { internalError } from '../../message/json-rpc.ts'
import type { Message, MessageFlow, MessageSink, TargetFailure } from '../../message/message.ts'
import { createOutlet, type Outlet } from '../buffered-sink.ts'
import { readCancelled, requestCancelled } from '../cancelled.ts'
import type { CallContext, TargetSession } from '../target.ts'
import { createCalls } from './pending-calls.ts'
import { createUnclaimed } from './unrouted-messages.ts'

/** One connection over which all messages of a session go: the pipes of a child, the stream of a legacy SSE server. */
export type Wire = {
  /** Sends the text of one message; `sent` is told once whether it went out, and why not otherwise. */
  send(
    text: string,
    context: CallContext | undefined,
    sent: (failure: TargetFailure | undefined) => void,
  ): void
  /** Stops what comes in. */
  pause(): void
  resume(): void
  close(): Promise<void>
}

export type WireListener = {
  /** A text that should be a message. */
  message(text: string): void
  /** Nothing comes any more. Not called after `Wire.close`, or harmlessly so. */
  ended(reason: string): void
}

export type DuplexOptions = {
  /** Name of the target, for the log and for messages. */
  name: string
  log: Log
  /** Begins the connection. Called with the first message of the session; calls the listener only after it has returned. */
  open(listener: WireListener, context: CallContext): Wire
  /** Told texts that are no messages, and why. */
  garbage(text: string, problem: string): void
}

const maxCalls = 1024
/** Of messages that wait for readers; more stops the target. */
const maxHeldChars = 1024 * 1024

/**
 * A session over one wire. Requests get ids of their own on the wire, whatever the client chose. What comes back goes to
 * the request it belongs to: a response by its id, progress by its token; the rest to the only request under way, else
 * to whoever listens, else to the latest request, else it waits for a listener.
 */
export function createDuplexSession({ name, log, open, garbage }: DuplexOptions): TargetSession {
  let wire: Wire | undefined
  let heardOf = false
  /** Why the session is over; undefined while it is not. */
  let over: string | undefined
  let heldChars = 0
  let paused = false
  let listener: Outlet | undefined
  const calls = createCalls()
  const unclaimed = createUnclaimed(refuse)
  const deathListeners: ((reason: string) => void)[] = []

  return {
    request(message, context, sink) {
      if (over !== undefined) return failLater(sink, { kind: 'ended', reason: over })
      const json = readJsonObject(message.text)
      const clientId = json.kind === 'object' ? memberText(json, 'id') : undefined
      if (json.kind !== 'object' || clientId === undefined) {
        return failLater(sink, failure('internal', 'a request without a readable id reached a target'))
      }
      if (calls.size >= maxCalls) {
        const problem = `target "${name}" has too many requests under way`
        return failLater(sink, failure('upstream_timeout', problem))
      }
      const outlet = createOutlet(sink, onHeld)
      const id = calls.add({ clientId, outlet, maxAnswerChars: context.maxAnswerBytes }, json.value)
      const text = editTopLevel(json, { set: new Map([['id', String(id)]]) })
      connected(context).send(text, context, (problem) => {
        if (problem && calls.take(id)) outlet.fail(problem)
      })
      return {
        resume: outlet.resume,
        cancel() {
          calls.take(id)
          outlet.cancel()
        },
      }
    },

    deliver(message, context) {
      if (over !== undefined) return Promise.resolve({ kind: 'ended', reason: over })
      if (message.value['method'] === 'notifications/cancelled') return cancel(message, context)
      return sendText(message.text, context)
    },

    listen(_, sink) {
      if (over !== undefined) {
        return Promise.resolve({ kind: 'failed', failure: { kind: 'ended', reason: over } })
      }
      // A client that comes again has lost its former stream, whether or not that has been noticed here.
      listener?.end()
      const outlet = createOutlet(sink, onHeld)
      listener = outlet
      // Nothing reaches the sink before the caller has the flow, which it needs to say that there is room again.
      outlet.hold()
      for (const message of unclaimed.takeAll()) outlet.push(message)
      setImmediate(outlet.resume)
      const flow: MessageFlow = {
        resume: outlet.resume,
        cancel() {
          if (listener === outlet) listener = undefined
          outlet.cancel()
        },
      }
      return Promise.resolve({ kind: 'flow', flow })
    },

    state: () => undefined,

    async close() {
      finish('the session was ended', (reason) => ({ kind: 'ended', reason }))
      await wire?.close()
    },

    onDeath(onDeath) {
      deathListeners.push(onDeath)
    },
  }

  function connected(context: CallContext): Wire {
    wire ??= open({ message: receive, ended: die }, context)
    return wire
  }

  function sendText(text: string, context: CallContext): Promise<TargetFailure | undefined> {
    return new Promise((resolve) => connected(context).send(text, context, resolve))
  }

  async function cancel({ text }: Message, context: CallContext): Promise<TargetFailure | undefined> {
    const cancelled = readCancelled(text)
    const id = cancelled && calls.idOf(cancelled.id)
    // It names no request that is under way, and on the wire its id may be that of another.
    if (cancelled === undefined || id === undefined) return undefined
    calls.take(id)?.outlet.fail(requestCancelled)
    return sendText(cancelled.withId(String(id)), context)
  }

  function die(reason: string): void {
    if (over !== undefined) return
    log.warn({ target: name, reason }, 'MCP target ended')
    const problem = heardOf
      ? failure('upstream_reset', `target "${name}" ended: ${reason}`)
      : failure('upstream_connect', `target "${name}" is not available: ${reason}`)
    finish(reason, () => problem)
    for (const onDeath of deathListeners) onDeath(`target "${name}" ended: ${reason}`)
    // What it left behind ends as well.
    void wire?.close()
  }

  function finish(reason: string, failureOf: (reason: string) => TargetFailure): void {
    if (over !== undefined) return
    over = reason
    for (const { outlet } of calls.takeAll()) outlet.fail(failureOf(reason))
    listener?.end()
    listener = undefined
    unclaimed.takeAll()
  }

  function receive(text: string): void {
    if (over !== undefined) return
    if (text.length > largeChars && exceedsOwnBound(text)) return
    const json = readJsonObject(text)
    if (json.kind !== 'object') {
      const problem = json.kind === 'duplicate' ? `duplicate key ${json.path}` : json.message
      garbage(text, problem)
      failUnreadable(text, problem)
      return
    }
    heardOf = true
    if (typeof json.value['method'] === 'string') route(json)
    else answer(json)
  }

  function answer(json: JsonText): void {
    const id = calls.answeredBy(json.value)
    const call = id === undefined ? undefined : calls.take(id)
    if (call === undefined) {
      log.debug({ target: name }, 'MCP target answered a request that is not under way')
      return
    }
    const text = editTopLevel(json, { set: new Map([['id', call.clientId]]) })
    call.outlet.push({ text, value: { ...json.value, id: parsedId(call.clientId) } })
    call.outlet.end()
  }

  function route(message: JsonText): void {
    const outlet = calls.ofProgress(message.value) ?? calls.only() ?? listener ?? calls.latest()
    if (outlet) outlet.push(message)
    else unclaimed.keep(message)
  }

  /** A server that waits for an answer to a request nobody will see has to be told. */
  function refuse({ value }: Message): void {
    const { id } = value
    log.debug({ target: name }, 'message of an MCP target dropped, because nobody listens')
    if (id === undefined || id === null) return
    const error = { code: internalError, message: 'the client does not listen' }
    wire?.send(JSON.stringify({ jsonrpc: '2.0', id, error }), undefined, () => {})
  }

  /** Fails the request that a large response answers where it is larger than the request allows; it is not parsed then. */
  function exceedsOwnBound(text: string): boolean {
    const id = idAtEdge(text)
    const maxChars = id === undefined ? undefined : calls.maxAnswerCharsOf(id)
    if (id === undefined || maxChars === undefined || text.length <= maxChars) return false
    const problem = `target "${name}" answered more than ${maxChars} characters`
    calls.take(id)?.outlet.fail(failure('upstream_too_large', problem))
    return true
  }

  function failUnreadable(text: string, problem: string): void {
    const id = text.length > largeChars ? idAtEdge(text) : unreadableId(text)
    const call = id === undefined ? undefined : calls.take(id)
    call?.outlet.fail(failure('upstream_invalid', `target "${name}" sent an unusable response: ${problem}`))
  }

  function onHeld(change: number): void {
    heldChars += change
    const full = heldChars > maxHeldChars
    if (full === paused) return
    paused = full
    if (full) wire?.pause()
    else wire?.resume()
  }
}

function failure(code: GatewayError['code'], message: string): TargetFailure {
  return { kind: 'error', error: new GatewayError(code, message) }
}

/** Later, because nobody expects to hear of a failure before the call has returned. */
function failLater(sink: MessageSink, reason: TargetFailure): MessageFlow {
  let cancelled = false
  queueMicrotask(() => {
    if (!cancelled) sink.fail(reason)
  })
  return {
    resume() {},
    cancel() {
      cancelled = true
    },
  }
}

function parsedId(text: string): JsonValue {
  const id: JsonValue = JSON.parse(text)
  return id
}

/** Larger responses are not parsed to find their id. */
const largeChars = 1024 * 1024
const edgeChars = 200

/** The id of a response from its beginning or end, where libraries write it. */
function idAtEdge(text: string): number | undefined {
  const atStart = /^\s*\{(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"id"\s*:\s*(\d+)\s*,/.exec(
    text.slice(0, edgeChars),
  )
  const atEnd = /,\s*"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(text.slice(-edgeChars))
  const found = atStart?.[1] ?? atEnd?.[1]
  return found === undefined ? undefined : Number(found)
}

function unreadableId(text: string): number | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) && typeof value['id'] === 'number' ? value['id'] : undefined
  } catch {
    return undefined
  }
}
