import { describe, expect, it } from 'vitest'
import { readAll, sourceOf } from '../../../net/http/body.ts'
import { createEventStreamParser } from '../providers/bedrock/event-stream.ts'
import { eventStreamBody, type StreamForm } from './event-stream-body.ts'

async function messagesOf(sse: string, form: StreamForm, pieces = sse.length) {
  const source = sourceOf(undefined)
  const cut = {
    ...source,
    start(sink: Parameters<typeof source.start>[0]) {
      const bytes = Buffer.from(sse)
      for (let at = 0; at < bytes.length; at += pieces) sink.write(bytes.subarray(at, at + pieces))
      sink.end()
    },
  }
  const found: { headers: object; payload: unknown }[] = []
  const parser = createEventStreamParser({
    maxMessageBytes: 1_000_000,
    onMessage: ({ headers, payload }) =>
      found.push({ headers: Object.fromEntries(headers), payload: JSON.parse(payload.toString()) }),
  })
  parser.push(await readAll(eventStreamBody(cut, form), 1_000_000, 'internal'))
  expect(parser.incomplete).toBe(false)
  return found
}

const head = { ':content-type': 'application/json', ':message-type': 'event' }

describe('a stream of events', () => {
  it.each([1, 7, 1000])('is encoded with the names of its events, cut after %d bytes', async (pieces) => {
    const sse =
      'event: messageStart\ndata: {"role":"assistant"}\n\n:\n\nevent: metadata\ndata: {"ü":"🙂"}\n\n'
    expect(await messagesOf(sse, 'converse', pieces)).toEqual([
      { headers: { ...head, ':event-type': 'messageStart' }, payload: { role: 'assistant' } },
      { headers: { ...head, ':event-type': 'metadata' }, payload: { ü: '🙂' } },
    ])
  })

  it('is encoded as chunks, without the mark of its end', async () => {
    const data = '{"type":"message_stop"}'
    const sse = `event: message_stop\ndata: ${data}\n\nevent: end\ndata: {}\n\n`
    expect(await messagesOf(sse, 'invoke')).toEqual([
      {
        headers: { ...head, ':event-type': 'chunk' },
        payload: { bytes: Buffer.from(data).toString('base64') },
      },
    ])
  })

  it.each([
    ['exception', { type: 'throttlingException', message: 'x' }, 'throttlingException'],
    ['exception', { type: 'modelNotReadyException', message: 'x' }, 'internalServerException'],
    [
      'error',
      { type: 'error', error: { type: 'overloaded_error', message: 'x' } },
      'serviceUnavailableException',
    ],
    ['error', { type: 'error', error: { type: 'api_error', message: 'x' } }, 'internalServerException'],
  ])('ends with an exception: %s %j', async (event, data, expected) => {
    const [message] = await messagesOf(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`, 'converse')
    expect(message).toEqual({
      headers: {
        ':content-type': 'application/json',
        ':message-type': 'exception',
        ':exception-type': expected,
      },
      payload: { message: 'x' },
    })
  })
})
