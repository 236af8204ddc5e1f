import { GatewayError } from '../../../../lib/gateway-error.ts'
import { isJsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { editTopLevel, type JsonText, memberText, readJsonObject } from '../../../../lib/json/text.ts'
import type { Log } from '../../../../telemetry/log.ts'
import { internalError } from '../../message/json-rpc.ts'
import type { Message, MessageFlow, MessageSink, TargetFailure } from '../../message/message.ts'
import { type BufferedSink, createBufferedSink } from '../buffered-sink.ts'
import { readCancelled, requestCancelled } from '../cancelled.ts'
import type { CallContext, TargetSession } from '../target.ts'
import { createPendingCalls } from './pending-calls.ts'
import { createUnroutedMessages } from './unrouted-messages.ts'

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
  onInvalid(text: string, problem: string): void
}

const maxCalls = 1024
/** Of messages that wait for readers; more stops the target. */
const maxBufferedChars = 1024 * 1024

/**
 * A session over one wire. Requests get ids of their own on the wire, whatever the client chose. What comes back goes to
 * the request it belongs to: a response by its id, progress by its token; the rest to the only request under way, else
 * to whoever listens, else to the latest request, else it waits for a listener.
 */
export function createDuplexSession({ name, log, open, onInvalid: garbage }: DuplexOptions): TargetSession {
  let wire: Wire | undefined
  let responsive = false
  /** Why the session is over; undefined while it is not. */
  let over: string | undefined
  let bufferedChars = 0
  let paused = false
  let listener: BufferedSink | undefined
  const calls = createPendingCalls()
  const unrouted = createUnroutedMessages(refuse)
  const terminationListeners: ((reason: string) => void)[] = []

  return {
    request(message, context, sink) {
      if (over !== undefined) return failAsync(sink, { kind: 'ended', reason: over })
      const json = readJsonObject(message.text)
      const clientId = json.kind === 'object' ? memberText(json, 'id') : undefined
      if (json.kind !== 'object' || clientId === undefined) {
        return failAsync(sink, failure('internal', 'a request without a readable id reached a target'))
      }
      if (calls.size >= maxCalls) {
        const problem = `target "${name}" has too many requests under way`
        return failAsync(sink, failure('upstream_timeout', problem))
      }
      const buffered = createBufferedSink(sink, onBuffered)
      const id = calls.add(
        { clientId, sink: buffered, maxResponseChars: context.maxResponseBytes },
        json.value,
      )
      const text = editTopLevel(json, { set: new Map([['id', String(id)]]) })
      connected(context).send(text, context, (problem) => {
        if (problem && calls.remove(id)) buffered.fail(problem)
      })
      return {
        resume: buffered.resume,
        cancel() {
          calls.remove(id)
          buffered.cancel()
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
      const buffered = createBufferedSink(sink, onBuffered)
      listener = buffered
      // Nothing reaches the sink before the caller has the flow, which it needs to say that there is room again.
      buffered.block()
      for (const message of unrouted.removeAll()) buffered.push(message)
      setImmediate(buffered.resume)
      const flow: MessageFlow = {
        resume: buffered.resume,
        cancel() {
          if (listener === buffered) listener = undefined
          buffered.cancel()
        },
      }
      return Promise.resolve({ kind: 'flow', flow })
    },

    state: () => undefined,

    async close() {
      finish('the session was ended', (reason) => ({ kind: 'ended', reason }))
      await wire?.close()
    },

    onTerminated(listener) {
      terminationListeners.push(listener)
    },
  }

  function connected(context: CallContext): Wire {
    wire ??= open({ message: receive, ended: terminate }, context)
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
    calls.remove(id)?.sink.fail(requestCancelled)
    return sendText(cancelled.withId(String(id)), context)
  }

  function terminate(reason: string): void {
    if (over !== undefined) return
    log.warn({ target: name, reason }, 'MCP target ended')
    const problem = responsive
      ? failure('upstream_reset', `target "${name}" ended: ${reason}`)
      : failure('upstream_connect', `target "${name}" is not available: ${reason}`)
    finish(reason, () => problem)
    for (const listener of terminationListeners) listener(`target "${name}" ended: ${reason}`)
    // What it left behind ends as well.
    void wire?.close()
  }

  function finish(reason: string, failureOf: (reason: string) => TargetFailure): void {
    if (over !== undefined) return
    over = reason
    for (const { sink: buffered } of calls.removeAll()) buffered.fail(failureOf(reason))
    listener?.end()
    listener = undefined
    unrouted.removeAll()
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
    responsive = true
    if (typeof json.value['method'] === 'string') route(json)
    else answer(json)
  }

  function answer(json: JsonText): void {
    const id = calls.idOfResponse(json.value)
    const call = id === undefined ? undefined : calls.remove(id)
    if (call === undefined) {
      log.debug({ target: name }, 'MCP target answered a request that is not under way')
      return
    }
    const text = editTopLevel(json, { set: new Map([['id', call.clientId]]) })
    call.sink.push({ text, value: { ...json.value, id: parseId(call.clientId) } })
    call.sink.end()
  }

  function route(message: JsonText): void {
    const buffered = calls.sinkOfProgress(message.value) ?? calls.onlySink() ?? listener ?? calls.latestSink()
    if (buffered) buffered.push(message)
    else unrouted.add(message)
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
    const maxChars = id === undefined ? undefined : calls.maxResponseCharsOf(id)
    if (id === undefined || maxChars === undefined || text.length <= maxChars) return false
    const problem = `target "${name}" answered more than ${maxChars} characters`
    calls.remove(id)?.sink.fail(failure('upstream_too_large', problem))
    return true
  }

  function failUnreadable(text: string, problem: string): void {
    const id = text.length > largeChars ? idAtEdge(text) : unreadableId(text)
    const call = id === undefined ? undefined : calls.remove(id)
    call?.sink.fail(failure('upstream_invalid', `target "${name}" sent an unusable response: ${problem}`))
  }

  function onBuffered(change: number): void {
    bufferedChars += change
    const full = bufferedChars > maxBufferedChars
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
function failAsync(sink: MessageSink, reason: TargetFailure): MessageFlow {
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

function parseId(text: string): JsonValue {
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
