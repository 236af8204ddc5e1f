import { type BodySink, isSource, withTransform } from '../../../net/http/body.ts'
import { createSseParser, isEventStream } from '../../../net/http/sse.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { maxMediaLineBytes } from './stream.ts'

/**
 * The events of a stream as one JSON array, the form of `streamGenerateContent` without `alt=sse`. An error
 * is its last element. Other replies are unchanged.
 */
export function asJsonArray(reply: Reply): Reply {
  const { status, headers, body } = reply
  if (!isEventStream(headers) || !isSource(body)) return reply
  return {
    status,
    headers: { ...headers, 'content-type': 'application/json' },
    body: withTransform(body, writeElements),
  }
}

function writeElements(sink: BodySink): BodySink {
  let out = ''
  let separator = '['
  let failed = false
  const parser = createSseParser({
    maxEventBytes: maxMediaLineBytes,
    onEvent({ data }) {
      out += separator + data
      separator = ',\r\n'
    },
    onError(error) {
      failed = true
      sink.fail(error)
    },
  })
  return {
    write(chunk) {
      out = ''
      parser.push(chunk)
      return out === '' || failed || sink.write(Buffer.from(out))
    },
    end(trailers) {
      if (failed) return
      sink.write(Buffer.from(separator === '[' ? '[]' : ']'))
      sink.end(trailers)
    },
    fail(error) {
      if (!failed) sink.fail(error)
    },
  }
}
