import { type Cancellation, type CancellationSource, createCancellation } from '../../../lib/cancellation.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import { exceededLimit, readJsonObject } from '../../../lib/json/text.ts'
import { type BodySource, isSource, readAll } from '../../../net/http/body.ts'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'
import { createSseParser, isEventStream, type SseEvent } from '../../../net/http/sse.ts'
import type { OutgoingRequest, Reply } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { exactlyOne, type Infer } from '../../../schema/dsl.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import type { EventMark, Message, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import {
  type AddressContext,
  addressFields,
  addressVariants,
  checkAddress,
  readAddress,
  type TargetAddress,
} from './address.ts'
import type { CallContext, Listening, Target, TargetSession } from './target.ts'

export const streamableHttpSchema = exactlyOne(addressVariants, addressFields, {
  doc: 'A server that speaks MCP over HTTP ("streamable HTTP").',
})

export type StreamableHttpConfig = Infer<typeof streamableHttpSchema>

const defaultPath = '/mcp'

/** Reports an address that leads nowhere. */
export function checkStreamableHttp(config: StreamableHttpConfig, report: ReportIssue): void {
  checkAddress(config, defaultPath, report)
}

/** Largest message of a target, in bytes. */
const maxMessageBytes = 32 * 1024 * 1024
/** Largest body of a refusal that is passed on. */
const maxRefusalBytes = 1024 * 1024
/** Bytes of a body nobody reads before its connection is given up. */
const maxIgnoredBytes = 16 * 1024
/** How long the end of a session may take upstream. */
const closeTimeoutMs = 5_000

/** An upstream server of MCP's streamable HTTP transport (revision 2025-11-25, "Transports"). */
export function compileStreamableHttp(
  name: string,
  config: StreamableHttpConfig,
  { send, ...whereabouts }: Pick<CompileContext, 'send'> & AddressContext,
): Target {
  const address = readAddress(config, defaultPath, whereabouts)
  if ('mistake' in address) throw new Error(`mcp.targets "${name}": ${address.mistake}`)
  const { origin, path } = address
  return {
    name,
    sessionless: true,
    open: () => createSession({}),
    resume(state) {
      const known = readState(state, address)
      return known && createSession(known)
    },
  }

  function createSession(state: State): TargetSession {
    let closed = false
    return {
      request(message, context, sink) {
        const cancellation = createCancellation()
        context.cancellation.onCancel(cancellation.cancel)
        const call = createCall(name, sink, { maxBytes: context.maxResponseBytes, cancellation })
        const begins = message.value['method'] === 'initialize'
        const heard = begins ? (reply: Message) => noteVersion(message, reply) : undefined
        send(post(message, context, call)).then((reply) => {
          if (begins) noteSession(reply)
          // Nobody waited for it any more: nobody else would ever end it.
          if (begins && closed) void endUpstream()
          deliverAnswer(reply, call, heard)
        }, call.failWith)
        return call
      },
      async deliver(message, context) {
        let reply: Reply
        try {
          reply = await send(post(message, context))
        } catch (error) {
          return failureOf(name, error)
        }
        if (reply.status < 200 || reply.status >= 300) return refusalOf(reply)
        discard(reply)
        return undefined
      },
      async listen(context, sink) {
        const headers = headersFor(context)
        headers['accept'] = 'text/event-stream'
        const { lastEventId } = context
        if (lastEventId !== undefined && headerText.test(lastEventId)) headers['last-event-id'] = lastEventId
        let reply: Reply
        try {
          const request = outgoing('GET', headers, undefined, context.cancellation)
          reply = await send({ ...request, idleTimeoutMs: listenIdleMs })
        } catch (error) {
          return { kind: 'failed', failure: failureOf(name, error) }
        }
        return listening(reply, sink)
      },
      state: () => ({
        ...(state.session === undefined ? undefined : { s: state.session }),
        ...(state.version === undefined ? undefined : { v: state.version }),
        a: origin + path,
      }),
      async close() {
        if (closed) return
        closed = true
        await endUpstream()
      },
      onTerminated() {},
    }

    async function endUpstream(): Promise<void> {
      if (state.session === undefined) return
      const headers: Headers = {
        'mcp-session-id': state.session,
        accept: 'application/json, text/event-stream',
      }
      if (state.version !== undefined) headers['mcp-protocol-version'] = state.version
      try {
        const request: OutgoingRequest = { origin, path, method: 'DELETE', headers, body: undefined }
        discard(await send({ ...request, firstByteTimeoutMs: closeTimeoutMs }))
      } catch {
        // Nobody waits for it: a server that does not hear of the end forgets the session by itself.
      }
    }

    function post(message: Message, context: CallContext, call?: Call): OutgoingRequest {
      const headers = headersFor(context)
      headers['accept'] = 'application/json, text/event-stream'
      headers['content-type'] = 'application/json'
      const cancellation = call?.cancellation ?? context.cancellation
      const request = outgoing('POST', headers, message.text, cancellation)
      return call ? request : { ...request, firstByteTimeoutMs: deliverTimeoutMs }
    }

    function headersFor(context: CallContext): Headers {
      const headers = { ...context.headers, 'accept-encoding': 'identity' }
      if (state.session !== undefined) Object.assign(headers, { 'mcp-session-id': state.session })
      const version = state.version ?? context.protocolVersion
      if (version !== undefined) Object.assign(headers, { 'mcp-protocol-version': version })
      return headers
    }

    function noteSession(reply: Reply): void {
      const id = firstHeader(reply.headers, 'mcp-session-id')
      if (id !== undefined && /^[\x21-\x7e]+$/.test(id)) state.session = id
    }

    function noteVersion(request: Message, { value }: Message): void {
      const { result } = value
      if (value['id'] !== request.value['id'] || !isJsonObject(result)) return
      const version = result['protocolVersion']
      if (typeof version === 'string' && /^[\x21-\x7e]{1,40}$/.test(version)) state.version = version
    }

    async function listening(reply: Reply, sink: MessageSink): Promise<Listening> {
      if (reply.status === 405) {
        discard(reply)
        return { kind: 'none' }
      }
      if (reply.status !== 200 || !isSource(reply.body)) {
        return { kind: 'failed', failure: await refusalOf(reply) }
      }
      const call = createCall(name, sink)
      if (!isEventStream(reply.headers)) {
        discard(reply)
        return {
          kind: 'failed',
          failure: invalid('a GET was answered with something that is no event stream'),
        }
      }
      readEvents(reply.body, call)
      return { kind: 'flow', flow: call }
    }

    /** The upstream refused: 404 for a session it knew means that the session is over. */
    async function refusalOf(reply: Reply): Promise<TargetFailure> {
      if (reply.status === 404 && state.session !== undefined) {
        discard(reply)
        return { kind: 'ended', reason: `target "${name}" has ended the session` }
      }
      if (reply.status >= 300 && reply.status < 400) {
        discard(reply)
        return invalid('a redirect, which is not followed: configure the address it leads to')
      }
      if (reply.status < 300) {
        discard(reply)
        return invalid(`status ${reply.status}`)
      }
      try {
        const body = await readAll(reply.body, maxRefusalBytes, 'upstream_too_large')
        const headers: Headers = {}
        for (const header of refusalHeaders) {
          const value = reply.headers[header]
          if (value !== undefined) headers[header] = value
        }
        return { kind: 'reply', reply: { status: reply.status, headers, body } }
      } catch (error) {
        return failureOf(name, error)
      }
    }

    function deliverAnswer(reply: Reply, call: Call, heard: ((message: Message) => void) | undefined): void {
      if (call.over) {
        discard(reply)
        return
      }
      const { status, body } = reply
      if (status === 202 || status === 204) {
        discard(reply)
        call.end()
        return
      }
      if (status !== 200) {
        refusalOf(reply).then(call.fail)
        return
      }
      if (firstHeader(reply.headers, 'content-encoding') !== undefined) {
        discard(reply)
        call.fail(invalid('an encoding nobody asked for'))
        return
      }
      if (isEventStream(reply.headers) && isSource(body)) readEvents(body, call, heard)
      else readWhole(reply, call, heard)
    }
  }

  function outgoing(
    method: string,
    headers: Headers,
    body: string | undefined,
    cancellation: Cancellation,
  ): OutgoingRequest {
    return { origin, path, method, headers, body, cancellation, idleTimeoutMs: callIdleMs }
  }

  function readWhole(reply: Reply, call: Call, heard: ((message: Message) => void) | undefined): void {
    readAll(reply.body, call.maxBytes, 'upstream_too_large').then((bytes) => {
      if (call.over) return
      const message = readMessage(bytes.toString())
      if (typeof message === 'string') {
        call.fail(invalid(`something that is ${message}`))
        return
      }
      heard?.(message)
      call.message(message)
      call.end()
    }, call.failWith)
  }

  /** Feeds the events of a stream to a call, from now on until it ends. */
  function readEvents(body: BodySource, call: Call, heard?: (message: Message) => void): void {
    call.source = body
    let full = false
    const parser = createSseParser({
      maxEventBytes: call.maxBytes,
      onEvent(event) {
        if (call.over) return
        full = !takeEvent(event, call, heard) || full
      },
      onMark: (mark) => call.mark(mark),
      onError(error) {
        body.cancel()
        call.failWith(error)
      },
    })
    body.start({
      write(chunk) {
        full = false
        parser.push(chunk)
        return !full
      },
      end: () => call.end(),
      fail: call.failWith,
    })
  }

  function takeEvent(
    { event, data, id, retry }: SseEvent,
    call: Call,
    heard?: (message: Message) => void,
  ): boolean {
    const mark: EventMark | undefined =
      id === undefined && retry === undefined
        ? undefined
        : { ...(id === undefined ? undefined : { id }), ...(retry === undefined ? undefined : { retry }) }
    if (data === '') {
      if (mark) call.mark(mark)
      return true
    }
    // Other events are no messages of this transport.
    if (event !== undefined && event !== 'message') return true
    const message = readMessage(data)
    if (typeof message === 'string') {
      call.source?.cancel()
      call.fail(invalid(`an event that is ${message}`))
      return true
    }
    heard?.(message)
    return call.message(message, mark)
  }

  function invalid(what: string): TargetFailure {
    return { kind: 'error', error: new GatewayError('upstream_invalid', `target "${name}" answered ${what}`) }
  }
}

/** RFC 9110 section 5.5. With several targets the client's header holds event ids encoded, and so anything. */
const headerText = /^[\t\x20-\x7e\x80-\xff]*$/

const deliverTimeoutMs = 60_000
/** How long a call may be silent: tools may work long, or wait for a person. Lost connections are found by TCP. */
const callIdleMs = 60 * 60_000
/** How long a stream may be silent that says something only when something happens. */
const listenIdleMs = 24 * 60 * 60_000

/** What a client can do something with when it is refused. */
const refusalHeaders = ['content-type', 'www-authenticate', 'retry-after'] as const

type State = { session?: string; version?: string }

/** State of another process is only good for the same server. */
function readState(state: JsonObject, { origin, path }: TargetAddress): State | undefined {
  const { s: session, v: version, a: address } = state
  if (address !== origin + path) return undefined
  return {
    ...(typeof session === 'string' ? { session } : undefined),
    ...(typeof version === 'string' ? { version } : undefined),
  }
}

/** One request or stream: passes on to its sink until it is over. */
type Call = MessageFlow & {
  over: boolean
  /** Bound on one message. */
  readonly maxBytes: number
  source: BodySource | undefined
  /** Ends the request upstream, also while its answer has not begun; streams of `listen` have none. */
  readonly cancellation: CancellationSource | undefined
  message(message: Message, mark?: EventMark): boolean
  mark(mark: EventMark): void
  end(): void
  fail(failure: TargetFailure): void
  failWith(error: unknown): void
}

type CallOptions = { maxBytes?: number | undefined; cancellation?: CancellationSource | undefined }

function createCall(
  name: string,
  sink: MessageSink,
  { maxBytes = maxMessageBytes, cancellation }: CallOptions = {},
): Call {
  const call: Call = {
    over: false,
    maxBytes,
    source: undefined,
    cancellation,
    message: (message, mark) => call.over || sink.message(message, mark),
    mark(mark) {
      if (!call.over) sink.mark(mark)
    },
    end() {
      if (call.over) return
      call.over = true
      sink.end()
    },
    fail(failure) {
      if (call.over) return
      call.over = true
      sink.fail(failure)
    },
    failWith: (error) => call.fail(failureOf(name, error)),
    resume: () => call.source?.resume(),
    cancel() {
      if (call.over) return
      call.over = true
      call.source?.cancel()
      cancellation?.cancel()
    },
  }
  return call
}

/** Names the target: with several of them nobody could tell which one it was. */
function failureOf(name: string, error: unknown): TargetFailure {
  if (error instanceof GatewayError) {
    const message = `target "${name}": ${error.message}`
    return { kind: 'error', error: new GatewayError(error.code, message, { cause: error }) }
  }
  return { kind: 'error', error: new GatewayError('internal', 'internal error', { cause: error }) }
}

/** Shorter texts are read within some milliseconds whatever their structure is. */
const boundedChars = 128 * 1024

/** Reads a message; a text with the reason where it is none. */
function readMessage(text: string): Message | string {
  const exceeded = text.length > boundedChars ? exceededLimit(text) : undefined
  if (exceeded !== undefined) return `a message ${exceeded}`
  // The engine may take an escaped key for another (decision 010), and what is decided here is whose message it is.
  const exact = text.includes('\\') ? readJsonObject(text) : undefined
  if (exact?.kind === 'object') return { text, value: exact.value }
  if (exact?.kind === 'duplicate') return notMessage
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? { text, value } : notMessage
  } catch {
    return notMessage
  }
}

const notMessage = 'no JSON-RPC message'

/** Nobody reads the body: a short one is let through, so that its connection can be used again. */
function discard(reply: Reply): void {
  if (!isSource(reply.body)) return
  if (isEventStream(reply.headers)) reply.body.cancel()
  else readAll(reply.body, maxIgnoredBytes, 'upstream_too_large').catch(() => {})
}
