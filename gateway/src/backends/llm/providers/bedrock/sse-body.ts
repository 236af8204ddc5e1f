import { GatewayError } from '../../../../lib/gateway-error.ts'
import { type JsonObject, parseJsonObject } from '../../../../lib/json/json.ts'
import type { BodySource } from '../../../../net/http/body.ts'
import { formatSseEvent, type SseEvent } from '../../../../net/http/sse.ts'
import { readBedrockException } from '../../translate/messages-to-converse/errors.ts'
import { invalidResponse, toErrorBody } from '../../translate/upstream-error.ts'
import { createEventStreamParser, type EventMessage } from './event-stream.ts'

/** Limit of one message, which is that of a line of other streams. */
const maxMessageBytes = 1024 * 1024

/** The server-sent event of a message. Throws `GatewayError` for an unknown message. */
export type ToSse = (message: EventMessage) => SseEvent

/**
 * The body of a binary event stream as server-sent events. Fails with `upstream_invalid` or
 * `upstream_too_large` for an invalid message, and cancels the upstream. `closing` follows a complete stream.
 */
export function sseBody(source: BodySource, toSse: ToSse, closing = ''): BodySource {
  let isOver = false
  return {
    resume: () => source.resume(),
    cancel() {
      isOver = true
      source.cancel()
    },
    budget: source.budget,
    start(sink) {
      let text = ''
      const parser = createEventStreamParser({
        maxMessageBytes,
        onMessage(message) {
          text += formatSseEvent(toSse(message))
        },
      })

      /** Complete events before an invalid message are delivered. */
      function flush(): boolean {
        if (text === '') return true
        const events = Buffer.from(text)
        text = ''
        return sink.write(events)
      }

      source.start({
        write(chunk) {
          if (isOver) return true
          try {
            parser.push(chunk)
          } catch (error) {
            isOver = true
            source.cancel()
            flush()
            sink.fail(error instanceof GatewayError ? error : invalidResponse('an event is not readable'))
            return true
          }
          return flush()
        },
        end() {
          if (isOver) return
          isOver = true
          if (parser.incomplete) sink.fail(invalidResponse('the stream ended inside a message'))
          else {
            if (closing !== '') sink.write(Buffer.from(closing))
            sink.end()
          }
        },
        fail(error) {
          if (isOver) return
          isOver = true
          sink.fail(error)
        },
      })
    },
  }
}

/** Events of `ConverseStream`: the name of the event, and its payload. Errors have the name `exception`. */
export function converseEvent(message: EventMessage): SseEvent {
  const error = errorOf(message)
  if (error !== undefined) return { event: 'exception', data: JSON.stringify(error) }
  const event = message.headers.get(':event-type')
  if (event === undefined || !/^\w+$/.test(event)) throw invalidResponse('an event has no name')
  return { event, data: lineOf(message.payload.toString()) }
}

/** Marks the end of chunks, which have no common end marker. */
export const chunksEnd = formatSseEvent({ event: 'end', data: '{}' })

/** Chunks of any model. Errors have the name `exception`. */
export function chunkEvent(message: EventMessage): SseEvent {
  const error = errorOf(message)
  if (error !== undefined) return { event: 'exception', data: JSON.stringify(error) }
  return { event: 'chunk', data: dataOf(message) }
}

/**
 * Events of `InvokeModelWithResponseStream` of Claude: `bytes` of a chunk is an event of the model's own API,
 * encoded as base64.
 */
export function messagesEvent(message: EventMessage): SseEvent {
  const error = errorOf(message)
  if (error !== undefined) {
    const body = toErrorBody('anthropic', readBedrockException(error.type, error.message))
    return { event: 'error', data: JSON.stringify(body) }
  }
  const data = dataOf(message)
  const type = /^\{"type":"(\w+)"/.exec(data)?.[1] ?? parseJsonObject(data)?.['type']
  if (typeof type !== 'string') throw invalidResponse('a chunk is not an event of the messages API')
  return { event: type, data }
}

function dataOf({ payload }: EventMessage): string {
  const bytes = parseJsonObject(payload.toString())?.['bytes']
  if (typeof bytes !== 'string') throw invalidResponse('a chunk has no bytes')
  return lineOf(Buffer.from(bytes, 'base64').toString())
}

/** Line breaks of JSON are spaces outside of its strings. */
function lineOf(json: string): string {
  return json.replaceAll(/[\r\n]+/g, ' ')
}

/** Type and text of an exception or an error. */
function errorOf({ headers, payload }: EventMessage): { type: string; message: string } | undefined {
  const kind = headers.get(':message-type')
  if (kind === 'event') return undefined
  if (kind === 'error') {
    const type = headers.get(':error-code') ?? 'internalServerException'
    return { type, message: headers.get(':error-message') ?? type }
  }
  if (kind !== 'exception') throw invalidResponse('a message has an unknown type')
  const body: JsonObject = parseJsonObject(payload.toString()) ?? {}
  const type = headers.get(':exception-type') ?? 'internalServerException'
  const { message, Message: other } = body
  const text = typeof message === 'string' ? message : other
  return { type, message: typeof text === 'string' ? text : type }
}
