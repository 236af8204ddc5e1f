import { GatewayError } from '../../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json.ts'
import { editTopLevel, type JsonText, memberText, readJsonObject } from '../../../lib/json-text.ts'
import type { Log } from '../../../pipeline/log.ts'
import { createOutlet, type Outlet } from './outlet.ts'
import type {
  CallContext,
  Message,
  MessageFlow,
  MessageSink,
  TargetFailure,
  TargetSession,
} from './target.ts'

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

const maxPending = 1024
/** Of messages that wait for readers; more stops the target. */
const maxHeldChars = 1024 * 1024
/** Bounds on messages that belong to no request while nobody listens. */
const maxUnclaimed = 256
const maxUnclaimedChars = 1024 * 1024

type Pending = {
  /** As JSON text, so that ids of any form come back as they were sent. */
  clientId: string
  progressToken: JsonValue | undefined
  outlet: Outlet
}

/**
 * A session over one wire. Requests get ids of their own on the wire, whatever the client chose. What comes back goes to
 * the request it belongs to: a response by its id, progress by its token; the rest to the only request under way, else
 * to whoever listens, else to the latest request, else it waits for a listener.
 */
export function createDuplexSession({ name, log, open, garbage }: DuplexOptions): TargetSession {
  let wire: Wire | undefined
  let nextId = 1
  let heardOf = false
  /** Why the session is over; undefined while it is not. */
  let over: string | undefined
  let heldChars = 0
  let paused = false
  const pending = new Map<number, Pending>()
  let listener: Outlet | undefined
  let unclaimed: Message[] = []
  let unclaimedChars = 0
  const deathListeners: ((reason: string) => void)[] = []

  return {
    request(message, context, sink) {
      if (over !== undefined) return failLater(sink, { kind: 'ended', reason: over })
      const json = readJsonObject(message.text)
      const clientId = json.kind === 'object' ? memberText(json, 'id') : undefined
      if (json.kind !== 'object' || clientId === undefined) {
        return failLater(sink, failure('internal', 'a request without a readable id reached a target'))
      }
      if (pending.size >= maxPending) {
        return failLater(
          sink,
          failure('upstream_timeout', `target "${name}" has too many requests under way`),
        )
      }
      const id = nextId
      nextId += 1
      const outlet = createOutlet(sink, onHeld)
      pending.set(id, { clientId, progressToken: progressTokenOf(message.value), outlet })
      const text = editTopLevel(json, { set: new Map([['id', String(id)]]) })
      connected(context).send(text, context, (problem) => {
        if (problem && pending.delete(id)) outlet.fail(problem)
      })
      return {
        resume: outlet.resume,
        cancel() {
          pending.delete(id)
          outlet.cancel()
        },
      }
    },

    deliver(message, context) {
      if (over !== undefined) return Promise.resolve({ kind: 'ended', reason: over })
      const text = message.value['method'] === 'notifications/cancelled' ? cancelText(message) : message.text
      // The request is answered already, and its id may by now be another's on the wire.
      if (text === undefined) return Promise.resolve(undefined)
      return new Promise((resolve) => connected(context).send(text, context, resolve))
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
      handOver(outlet)
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

  function die(reason: string): void {
    if (over !== undefined) return
    log.warn({ target: name, reason }, 'MCP target ended')
    const code = heardOf ? 'upstream_reset' : 'upstream_connect'
    const message = heardOf
      ? `target "${name}" ended: ${reason}`
      : `target "${name}" is not available: ${reason}`
    finish(reason, () => failure(code, message))
    for (const onDeath of deathListeners) onDeath(reason)
    // What it left behind ends as well.
    void wire?.close()
  }

  function finish(reason: string, failureOf: (reason: string) => TargetFailure): void {
    if (over !== undefined) return
    over = reason
    const interrupted = [...pending.values()]
    pending.clear()
    for (const { outlet } of interrupted) outlet.fail(failureOf(reason))
    listener?.end()
    listener = undefined
    unclaimed = []
    unclaimedChars = 0
  }

  function receive(text: string): void {
    if (over !== undefined) return
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
    const id = answeredId(json.value)
    const call = id === undefined ? undefined : pending.get(id)
    if (id === undefined || call === undefined) {
      log.debug({ target: name }, 'MCP target answered a request that is not under way')
      return
    }
    pending.delete(id)
    const text = editTopLevel(json, { set: new Map([['id', call.clientId]]) })
    call.outlet.push({ text, value: { ...json.value, id: parsedId(call.clientId) } })
    call.outlet.end()
  }

  /** A server that could not read a request does not know its id; with one under way there is no doubt. */
  function answeredId({ id, error }: JsonObject): number | undefined {
    if (typeof id === 'number') return id
    if (id !== null || error === undefined || pending.size !== 1) return undefined
    return pending.keys().next().value
  }

  function route(message: JsonText): void {
    const outlet = byProgress(message.value) ?? only() ?? listener ?? latest()
    if (outlet) outlet.push(message)
    else keepUnclaimed(message)
  }

  function byProgress({ method, params }: JsonObject): Outlet | undefined {
    if (method !== 'notifications/progress' || !isJsonObject(params)) return undefined
    const token = params['progressToken']
    if (token === undefined) return undefined
    for (const call of pending.values()) if (call.progressToken === token) return call.outlet
    return undefined
  }

  function only(): Outlet | undefined {
    return pending.size === 1 ? pending.values().next().value?.outlet : undefined
  }

  function latest(): Outlet | undefined {
    let last: Outlet | undefined
    for (const { outlet } of pending.values()) last = outlet
    return last
  }

  function keepUnclaimed(message: Message): void {
    unclaimed.push(message)
    unclaimedChars += message.text.length
    while (unclaimed.length > maxUnclaimed || unclaimedChars > maxUnclaimedChars) {
      const dropped = unclaimed.shift()
      if (dropped === undefined) return
      unclaimedChars -= dropped.text.length
      refuse(dropped)
    }
  }

  /** A server that waits for an answer to a request nobody will see has to be told. */
  function refuse({ value }: Message): void {
    const { id } = value
    log.debug({ target: name }, 'message of an MCP target dropped, because nobody listens')
    if (id === undefined || id === null) return
    const error = { code: -32603, message: 'the client does not listen' }
    wire?.send(JSON.stringify({ jsonrpc: '2.0', id, error }), undefined, () => {})
  }

  function handOver(outlet: Outlet): void {
    const waiting = unclaimed
    unclaimed = []
    unclaimedChars = 0
    for (const message of waiting) outlet.push(message)
  }

  function failUnreadable(text: string, problem: string): void {
    const id = unreadableId(text)
    const call = id === undefined ? undefined : pending.get(id)
    if (id === undefined || call === undefined) return
    pending.delete(id)
    call.outlet.fail(failure('upstream_invalid', `target "${name}" sent an unusable response: ${problem}`))
  }

  /** The notification that the client cancels a request, with the id that the request has on the wire. */
  function cancelText({ text }: Message): string | undefined {
    const json = readJsonObject(text)
    const paramsText = json.kind === 'object' ? memberText(json, 'params') : undefined
    const params = paramsText === undefined ? undefined : readJsonObject(paramsText)
    if (json.kind !== 'object' || params?.kind !== 'object') return undefined
    const clientId = memberText(params, 'requestId')
    for (const [id, call] of pending) {
      if (call.clientId !== clientId) continue
      const mapped = editTopLevel(params, { set: new Map([['requestId', String(id)]]) })
      return editTopLevel(json, { set: new Map([['params', mapped]]) })
    }
    return undefined
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

function progressTokenOf({ params }: JsonObject): JsonValue | undefined {
  const meta = isJsonObject(params) ? params['_meta'] : undefined
  return isJsonObject(meta) ? meta['progressToken'] : undefined
}

function parsedId(text: string): JsonValue {
  const id: JsonValue = JSON.parse(text)
  return id
}

function unreadableId(text: string): number | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) && typeof value['id'] === 'number' ? value['id'] : undefined
  } catch {
    return undefined
  }
}
