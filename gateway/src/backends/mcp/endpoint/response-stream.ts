import { asGatewayError, GatewayError } from '../../../lib/gateway-error.ts'
import type { BodySink, BodySource } from '../../../net/http/body.ts'
import type { Headers } from '../../../net/http/headers.ts'
import { formatSseEvent } from '../../../net/http/sse.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { EventMark, Message, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'

/** Options of an event stream to a client. */
export type ResponseStreamOptions = {
  /** Whether a message completes the response; undefined for streams outside requests. */
  completes?: ((message: Message) => boolean) | undefined
  /** Receives the message that completes the response. */
  onResponse?(message: Message): void
  /**
   * Sends nothing before the response is complete, because the response head depends on it (`initialize`).
   */
  buffered?: boolean
  /** Initial SSE text of the stream. */
  opening?: string
  /** Additional response headers, evaluated once with the response head. */
  headers?(): Headers
  /** Reply to a failure before the first byte. */
  refuse(failure: TargetFailure): Reply
  /** Text of the final message after a failure or premature end; without it, the stream just ends. */
  errorText?(failure: TargetFailure): string
  /** Called once at the end of the target's messages. */
  onEnd?(failure: TargetFailure | undefined): void
}

/** Keep-alive interval of a stream. It also delays the response head, which fixes the status. */
export const keepAliveMs = 15_000

/** Maximum bytes in the buffer before the client reads. */
const maxEarlyBytes = 64 * 1024
/**
 * Maximum characters in the buffer before a complete response; the excess is dropped, since only log messages
 * precede the response.
 */
const maxHeldChars = 1024 * 1024

const comment = Buffer.from(':\n\n')

const eventStreamHeaders: Readonly<Headers> = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
}

export type ResponseStream = {
  readonly sink: MessageSink
  readonly reply: Promise<Reply>
  /** Sets the flow of the sink, possibly after the first messages. */
  attach(flow: MessageFlow): void
  /** Sends the response head. */
  open(): void
  /** Ends the response after a client disconnect. */
  abandon(): void
}

/**
 * Converts messages of a target to the reply of one HTTP request. An immediate response is sent with a
 * complete body; otherwise the reply is a stream with keep-alive comments.
 */
export function createResponseStream(options: ResponseStreamOptions): ResponseStream {
  /** `waiting`: head not sent. `streaming`: head sent. `over`: response complete. */
  let phase: 'waiting' | 'streaming' | 'over' = 'waiting'
  let held = ''
  let resumable = false
  let ended = false
  let body: StreamedBody | undefined
  let flow: MessageFlow | undefined
  const { promise: reply, resolve } = Promise.withResolvers<Reply>()
  const timer = setTimeout(onSilence, keepAliveMs)
  timer.unref()

  const sink: MessageSink = {
    message(message, mark) {
      if (phase === 'over') return true
      if (mark?.id !== undefined) resumable = true
      const text = eventText(message.text, mark)
      const complete = options.completes?.(message) === true
      if (complete) options.onResponse?.(message)
      if (phase === 'streaming') {
        timer.refresh()
        const more = body?.write(text) ?? true
        if (complete) finish()
        return more
      }
      if (complete) {
        phase = 'over'
        resolve(eventStream(Buffer.from(held + text)))
        return true
      }
      if (!options.buffered) return stream().write(text)
      if (held.length + text.length <= maxHeldChars) held += text
      return true
    },
    mark(mark) {
      if (phase === 'over') return
      if (mark.id !== undefined) resumable = true
      if (!options.buffered) stream().write(eventText('', mark))
    },
    end() {
      over(undefined)
      if (phase === 'over') return
      // A stream with event ids is resumable: the client reconnects after the last id.
      if (phase === 'streaming' && resumable) finish()
      else conclude(undefined)
    },
    fail(failure) {
      over(failure)
      if (phase === 'over') return
      if (phase === 'streaming' && resumable && failure.kind === 'error') finish()
      else conclude(failure)
    },
  }

  return {
    sink,
    reply,
    attach(attached) {
      flow = attached
      // The session may have ended during the opening of the stream.
      if (ended) attached.cancel()
    },
    open() {
      if (phase === 'waiting') stream()
    },
    abandon() {
      if (phase === 'waiting') conclude(abandoned)
      leave()
    },
  }

  function over(failure: TargetFailure | undefined): void {
    if (ended) return
    ended = true
    clearTimeout(timer)
    options.onEnd?.(failure)
  }

  function conclude(failure: TargetFailure | undefined): void {
    if (phase === 'waiting') {
      phase = 'over'
      resolve(options.refuse(failure ?? noResponse))
      return
    }
    const words = options.errorText?.(failure ?? noResponse)
    if (words !== undefined) body?.write(eventText(words))
    finish()
  }

  function finish(): void {
    phase = 'over'
    body?.end()
  }

  function stream(): StreamedBody {
    if (body) return body
    phase = 'streaming'
    body = createBody({ resume: () => flow?.resume(), cancel: leave })
    if (options.opening !== undefined) body.write(options.opening)
    resolve(eventStream(body.source))
    return body
  }

  function leave(): void {
    phase = 'over'
    flow?.cancel()
    over(undefined)
  }

  function onSilence(): void {
    if (phase === 'over') {
      // The response is complete, but the target's stream continues without purpose.
      leave()
      return
    }
    if (!options.buffered) stream().comment()
    timer.refresh()
  }

  function eventStream(content: Reply['body']): Reply {
    return { status: 200, headers: { ...eventStreamHeaders, ...options.headers?.() }, body: content }
  }
}

/**
 * Starts the flow of a response. An exception ends the response, so that its session does not stay in use.
 */
export function startResponse(
  { cancellation }: Pick<Exchange, 'cancellation'>,
  answer: ResponseStream,
  start: () => MessageFlow,
): void {
  try {
    answer.attach(start())
  } catch (error) {
    answer.sink.fail({ kind: 'error', error: asGatewayError(error) })
  }
  cancellation.onCancel(answer.abandon)
}

const abandoned: TargetFailure = {
  kind: 'error',
  error: new GatewayError('request_aborted', 'the client closed the connection'),
}
const noResponse: TargetFailure = {
  kind: 'refused',
  status: 502,
  code: -32603,
  message: 'the target sent no response',
}

function eventText(data: string, mark?: EventMark): string {
  return formatSseEvent(mark === undefined ? { event: 'message', data } : { event: 'message', data, ...mark })
}

type StreamedBody = {
  readonly source: BodySource
  write(text: string): boolean
  /** Writes a keep-alive comment, except to a client with unread data. */
  comment(): void
  end(): void
}

/** Creates a body with a buffer for data before the first read. */
function createBody(flow: MessageFlow): StreamedBody {
  let reader: BodySink | undefined
  let early: Uint8Array[] = []
  let earlyBytes = 0
  let full = false
  let ended = false
  const source: BodySource = {
    start(sink) {
      reader = sink
      for (const chunk of early) full = !sink.write(chunk) || full
      early = []
      if (ended) sink.end()
      else if (!full && earlyBytes >= maxEarlyBytes) flow.resume()
    },
    resume() {
      full = false
      flow.resume()
    },
    cancel: () => flow.cancel(),
  }
  return {
    source,
    write(text: string): boolean {
      const chunk = Buffer.from(text)
      if (reader) {
        full = !reader.write(chunk)
        return !full
      }
      early.push(chunk)
      earlyBytes += chunk.byteLength
      return earlyBytes < maxEarlyBytes
    },
    comment(): void {
      if (reader === undefined) early.push(comment)
      else if (!full) full = !reader.write(comment)
    },
    end(): void {
      ended = true
      reader?.end()
    },
  }
}
