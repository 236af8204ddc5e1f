import { GatewayError } from '../../../../lib/gateway-error.ts'
import { editTopLevel, memberText } from '../../../../lib/json/edit.ts'
import { isJsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { type JsonText, readJsonObject } from '../../../../lib/json/text.ts'
import type { Log } from '../../../../telemetry/log.ts'
import { internalError } from '../../message/json-rpc.ts'
import type { Message, MessageFlow, MessageSink, TargetFailure } from '../../message/message.ts'
import { type BufferedSink, createBufferedSink } from '../buffered-sink.ts'
import { readCancelled, requestCancelled } from '../cancelled.ts'
import type { CallContext, TargetSession } from '../target.ts'
import { createPendingCalls } from './pending-calls.ts'
import { createUnroutedMessages } from './unrouted-messages.ts'

/**
 * Connection with all messages of a session: the pipes of a child process, or the stream of an HTTP+SSE
 * server.
 */
export type Wire = {
  /** Sends the text of one message; `sent` is called once, with a failure if it was not sent. */
  send(
    text: string,
    context: CallContext | undefined,
    sent: (failure: TargetFailure | undefined) => void,
  ): void
  /** Pauses incoming messages. */
  pause(): void
  resume(): void
  close(): Promise<void>
}

export type WireListener = {
  /** Receives the text of a message. */
  message(text: string): void
  /** Reports the end of the connection. Has no effect after `Wire.close`. */
  ended(reason: string): void
}

export type DuplexOptions = {
  /** Target name, for logs and messages. */
  name: string
  log: Log
  /** Opens the connection with the first message of the session; calls the listener only after its return. */
  open(listener: WireListener, context: CallContext): Wire
  /** Receives invalid texts with the problem. */
  onInvalid(text: string, problem: string): void
}

const maxCalls = 1024
/** Maximum buffered characters; beyond it, the wire pauses. */
const maxBufferedChars = 1024 * 1024

/**
 * Session over one wire. Requests receive new ids on the wire. Responses are routed by id, progress by token;
 * other messages to the only pending request, or the open stream, or the latest request, or a queue for the
 * next stream.
 */
export function createDuplexSession({ name, log, open, onInvalid: garbage }: DuplexOptions): TargetSession {
  let wire: Wire | undefined
  let responsive = false
  /** Reason for the end of the session; undefined while active. */
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
        return failAsync(sink, failure('internal', 'request without a valid id'))
      }
      if (calls.size >= maxCalls) {
        const problem = `target "${name}" has too many pending requests`
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
      // A new stream means that the former one is lost, detected or not.
      listener?.end()
      const buffered = createBufferedSink(sink, onBuffered)
      listener = buffered
      // Delivery starts after the caller has the flow, which it needs for `resume`.
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
    // It names no pending request, and on the wire its id may belong to another request.
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
    // Ends remaining resources of the wire.
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
      log.debug({ target: name }, 'MCP target response dropped: request not pending')
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

  /** Rejects a dropped server request, so that the server does not wait. */
  function refuse({ value }: Message): void {
    const { id } = value
    log.debug({ target: name }, 'MCP target message dropped: no open stream')
    if (id === undefined || id === null) return
    const error = { code: internalError, message: 'the client has no open stream' }
    wire?.send(JSON.stringify({ jsonrpc: '2.0', id, error }), undefined, () => {})
  }

  /** Fails the request of a response beyond its size limit, without parsing. */
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

/** Fails a sink asynchronously, after the caller's return. */
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

/** Larger responses are not parsed for their id. */
const largeChars = 1024 * 1024
const edgeChars = 200

/** Id at the start or end of a response, as libraries write it. */
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
