import { asGatewayError, GatewayError } from '../../../lib/gateway-error.ts'
import type { BodySink, BodySource } from '../../../net/http/body.ts'
import type { Headers } from '../../../net/http/headers.ts'
import { formatSseEvent } from '../../../net/http/sse.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { EventMark, Message, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'

/** How an event stream towards a client begins and ends. */
export type ResponseStreamOptions = {
  /** True for the message that completes the answer; undefined where nothing does (streams outside of requests). */
  completes?: ((message: Message) => boolean) | undefined
  /** Nothing is sent before the answer is complete, because its head depends on it (`initialize`). */
  buffered?: boolean
  /** Text of events that a stream begins with. */
  opening?: string
  /** Head fields beside those of every event stream; asked once, when the head is sent. */
  headers?(): Headers
  /** The reply for a failure before the first byte. */
  refuse(failure: TargetFailure): Reply
  /** The text of the last message of a stream that failed or ended too early; without it the stream just ends. */
  errorText?(failure: TargetFailure): string
  /** Told once when nothing more will come from the target. */
  onEnd?(failure: TargetFailure | undefined): void
}

/** How long a stream may be silent. A head that is committed cannot say a status any more, so it waits as long. */
export const keepAliveMs = 15_000

/** Bytes held for a client that has not come for them yet. */
const maxEarlyBytes = 64 * 1024
/** Bound on what is held back until a whole answer is there; more is dropped, as nothing but log lines comes before it. */
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
  /** Names what feeds the sink. May come after the first messages. */
  attach(flow: MessageFlow): void
  /** Sends the head now. */
  open(): void
  /** Nobody waits for the reply any more. */
  abandon(): void
}

/**
 * Turns what a target delivers into the reply of one HTTP request. A response that comes first is sent in one piece;
 * otherwise the reply is a stream, kept alive with comments while the target is silent.
 */
export function createResponseStream(options: ResponseStreamOptions): ResponseStream {
  /** `waiting`: no head sent. `streaming`: head sent. `over`: the client has everything. */
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
      // A stream with event ids is not lost: the client goes on with it behind the last one.
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
      // The session may have ended while its stream was being opened.
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
      // The client has its answer, but the target's stream goes on for no reason.
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

/** Starts the flow of an answer. A defect there ends the answer, so that its session is not in use for ever. */
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
  message: 'the target gave no answer',
}

function eventText(data: string, mark?: EventMark): string {
  return formatSseEvent(mark === undefined ? { event: 'message', data } : { event: 'message', data, ...mark })
}

type StreamedBody = {
  readonly source: BodySource
  write(text: string): boolean
  /** A sign of life; none for a client that does not even read what it has. */
  comment(): void
  end(): void
}

/** Holds what comes before somebody reads. */
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
