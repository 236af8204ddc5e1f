import { isJsonObject } from '../../../../lib/json/json.ts'
import { exceededLimit, readJsonObject } from '../../../../lib/json/text.ts'
import { type BodySource, isSource, readAll } from '../../../../net/http/body.ts'
import { firstHeader } from '../../../../net/http/headers.ts'
import { createSseParser, isEventStream, type SseEvent } from '../../../../net/http/sse.ts'
import type { Reply } from '../../../../net/http-client/send.ts'
import type { EventMark, Message } from '../../message/message.ts'
import { discard } from '../http-replies.ts'
import { type Call, invalidResponse } from './call.ts'

/** Receives each message before its call does. */
export type OnMessage = ((message: Message) => void) | undefined

/** Delivers the body of a successful reply (200) of the target `name` to a call. */
export function readResponse(name: string, reply: Reply, call: Call, onMessage: OnMessage): void {
  const { body } = reply
  if (firstHeader(reply.headers, 'content-encoding') !== undefined) {
    discard(reply)
    call.fail(invalidResponse(name, 'an unsupported content-encoding'))
  } else if (isEventStream(reply.headers) && isSource(body)) readEvents(name, body, call, onMessage)
  else readWhole(name, reply, call, onMessage)
}

/** Delivers the events of a stream to a call. */
export function readEvents(name: string, body: BodySource, call: Call, onMessage: OnMessage): void {
  call.source = body
  let full = false
  const parser = createSseParser({
    maxEventBytes: call.maxBytes,
    onEvent(event) {
      if (call.over) return
      full = !deliverEvent(name, event, call, onMessage) || full
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

function readWhole(name: string, reply: Reply, call: Call, onMessage: OnMessage): void {
  readAll(reply.body, call.maxBytes, 'upstream_too_large').then((bytes) => {
    if (call.over) return
    const read = readMessage(bytes.toString())
    if (read.kind === 'invalid') {
      call.fail(invalidResponse(name, `a body that is ${read.problem}`))
      return
    }
    onMessage?.(read.message)
    call.message(read.message)
    call.end()
  }, call.failWith)
}

function deliverEvent(
  name: string,
  { event, data, id, retry }: SseEvent,
  call: Call,
  onMessage: OnMessage,
): boolean {
  const mark: EventMark | undefined =
    id === undefined && retry === undefined
      ? undefined
      : { ...(id === undefined ? undefined : { id }), ...(retry === undefined ? undefined : { retry }) }
  if (data === '') {
    if (mark) call.mark(mark)
    return true
  }
  // Other events are not messages of this transport.
  if (event !== undefined && event !== 'message') return true
  const read = readMessage(data)
  if (read.kind === 'invalid') {
    call.source?.cancel()
    call.fail(invalidResponse(name, `an event that is ${read.problem}`))
    return true
  }
  onMessage?.(read.message)
  return call.message(read.message, mark)
}

/** Shorter texts are parsed within a few milliseconds regardless of their structure. */
const boundedChars = 128 * 1024

type MessageReading =
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'invalid'; readonly problem: string }

const notMessage: MessageReading = { kind: 'invalid', problem: 'no JSON-RPC message' }

function readMessage(text: string): MessageReading {
  const exceeded = text.length > boundedChars ? exceededLimit(text) : undefined
  if (exceeded !== undefined) return { kind: 'invalid', problem: `a message ${exceeded}` }
  // The engine may misread an escaped key (decision 010), and the id decides on the recipient.
  const exact = text.includes('\\') ? readJsonObject(text) : undefined
  if (exact?.kind === 'object') return { kind: 'message', message: { text, value: exact.value } }
  if (exact?.kind === 'duplicate') return notMessage
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? { kind: 'message', message: { text, value } } : notMessage
  } catch {
    return notMessage
  }
}
