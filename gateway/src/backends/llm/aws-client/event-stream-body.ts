import { isJsonObject, parseJsonObject } from '../../../lib/json/json.ts'
import { asError } from '../../../lib/thrown.ts'
import { type BodySource, withTransform } from '../../../net/http/body.ts'
import { createSseParser, type SseEvent } from '../../../net/http/sse.ts'
import { encodeEventMessage } from './event-stream-writer.ts'

/** Events of `ConverseStream`, or chunks of `InvokeModelWithResponseStream`. */
export type StreamForm = 'converse' | 'invoke'

/** Limit of an event, which guards and translations may have enlarged. */
const maxEventBytes = 32 * 1024 * 1024

/** Server-sent events of the gateway as a binary event stream of Amazon Bedrock Runtime. */
export function eventStreamBody(source: BodySource, form: StreamForm): BodySource {
  return withTransform(source, (sink) => {
    let messages: Buffer[] = []
    let isOver = false
    const parser = createSseParser({
      maxEventBytes,
      onEvent(event) {
        const message = encodeEvent(event, form)
        if (message !== undefined) messages.push(message)
      },
    })
    return {
      write(chunk) {
        if (isOver) return true
        messages = []
        try {
          parser.push(chunk)
        } catch (error) {
          isOver = true
          source.cancel()
          sink.fail(asError(error))
          return true
        }
        const [first] = messages
        if (first === undefined) return true
        return sink.write(messages.length === 1 ? first : Buffer.concat(messages))
      },
      end() {
        if (!isOver) sink.end()
      },
      fail(error) {
        if (!isOver) sink.fail(error)
      },
    }
  })
}

/** Undefined for events without a counterpart. */
function encodeEvent({ event = 'message', data }: SseEvent, form: StreamForm): Buffer | undefined {
  if (event === 'exception' || event === 'error') return encodeException(data)
  if (form === 'converse') return encodeNamed(event, data)
  // The gateway's own mark of the end.
  if (event === 'end') return undefined
  return encodeNamed('chunk', `{"bytes":"${Buffer.from(data).toString('base64')}"}`)
}

function encodeNamed(event: string, payload: string): Buffer {
  const headers: [string, string][] = [
    [':event-type', event],
    [':content-type', 'application/json'],
    [':message-type', 'event'],
  ]
  return encodeEventMessage(headers, payload)
}

/** Exceptions by the types of errors of Anthropic's API. */
const exceptions: ReadonlyMap<unknown, string> = new Map([
  ['invalid_request_error', 'validationException'],
  ['request_too_large', 'validationException'],
  ['not_found_error', 'validationException'],
  ['permission_error', 'validationException'],
  ['authentication_error', 'validationException'],
  ['rate_limit_error', 'throttlingException'],
  ['overloaded_error', 'serviceUnavailableException'],
  ['timeout_error', 'modelTimeoutException'],
])

/** Names of exceptions that both streams have. */
const streamExceptions: ReadonlySet<unknown> = new Set([
  'internalServerException',
  'modelStreamErrorException',
  'modelTimeoutException',
  'serviceUnavailableException',
  'throttlingException',
  'validationException',
])

/** The exception of an error event: of Bedrock, of the gateway, or of Anthropic's API. */
function encodeException(data: string): Buffer {
  const body = parseJsonObject(data) ?? {}
  const error = isJsonObject(body['error']) ? body['error'] : body
  const { type, message } = error
  const known = streamExceptions.has(type) && typeof type === 'string' ? type : exceptions.get(type)
  const headers: [string, string][] = [
    [':exception-type', known ?? 'internalServerException'],
    [':content-type', 'application/json'],
    [':message-type', 'exception'],
  ]
  const text = typeof message === 'string' ? message : 'the stream failed'
  return encodeEventMessage(headers, JSON.stringify({ message: text }))
}
