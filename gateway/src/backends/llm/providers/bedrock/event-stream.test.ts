import { describe, expect, it } from 'vitest'
import {
  encodeEvent,
  encodeException,
  encodeMessage,
  encodeRaw,
} from '../../../../../test/support/aws/event-stream.ts'
import { GatewayError } from '../../../../lib/gateway-error.ts'
import type { BodySink, BodySource } from '../../../../net/http/body.ts'
import { createEventStreamParser, type EventMessage } from './event-stream.ts'
import { converseEvent, messagesEvent, sseBody } from './sse-body.ts'

function parsed(...chunks: Uint8Array[]): { messages: EventMessage[]; incomplete: boolean } {
  const messages: EventMessage[] = []
  const parser = createEventStreamParser({
    maxMessageBytes: 4096,
    onMessage: (message) => messages.push(message),
  })
  for (const chunk of chunks) parser.push(chunk)
  return { messages, incomplete: parser.incomplete }
}

const stream = Buffer.concat([
  encodeEvent('messageStart', { role: 'assistant' }),
  encodeEvent('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Grüße' } }),
  encodeMessage({ ':message-type': 'event', ':event-type': 'empty' }, ''),
])

const texts = ({ messages }: { messages: EventMessage[] }) =>
  messages.map(({ payload }) => payload.toString())
const whole = texts(parsed(stream))

describe('createEventStreamParser', () => {
  it('reads headers and payloads', () => {
    const { messages, incomplete } = parsed(stream)
    expect(incomplete).toBe(false)
    expect(messages.map(({ headers }) => headers.get(':event-type'))).toEqual([
      'messageStart',
      'contentBlockDelta',
      'empty',
    ])
    expect(whole[1]).toContain('Grüße')
  })

  it('reads a stream that is cut at every byte', () => {
    for (let cut = 0; cut <= stream.length; cut += 1) {
      expect(texts(parsed(stream.subarray(0, cut), stream.subarray(cut)))).toEqual(whole)
    }
    expect(texts(parsed(...[...stream].map((byte) => Buffer.from([byte]))))).toEqual(whole)
  })

  it('reads the headers of each message, whether they are those of the message before or not', () => {
    const delta = (text: string) => encodeEvent('contentBlockDelta', { delta: { text } })
    const stop = encodeEvent('contentBlockStop', {})
    // The buffer of the connection is used again.
    const chunk = Buffer.from(delta('a'))
    const names: unknown[] = []
    const onMessage = ({ headers }: EventMessage) => names.push(headers.get(':event-type'))
    const parser = createEventStreamParser({ maxMessageBytes: 4096, onMessage })
    parser.push(chunk)
    chunk.fill(0)
    for (const next of [delta('b'), stop, stop, delta('c')]) parser.push(next)
    const [a, b] = ['contentBlockDelta', 'contentBlockStop']
    expect(names).toEqual([a, a, b, b, a])
  })

  it('reports an incomplete message at the end', () => {
    for (const cut of [1, 11, 12, 40]) expect(parsed(stream.subarray(0, cut)).incomplete).toBe(true)
  })

  it('refuses every change of a byte', () => {
    for (let index = 0; index < stream.length; index += 1) {
      const changed = Buffer.from(stream)
      changed[index] = (changed[index] ?? 0) ^ 0x41
      expect(() => parsed(changed)).toThrow(GatewayError)
    }
  })

  it('refuses a message over the limit by its prelude', () => {
    const large = encodeEvent('x', { text: 'x'.repeat(5_000) })
    expect(() => parsed(large.subarray(0, 12))).toThrow('larger than 4096 bytes')
  })

  it('skips headers of other types', () => {
    const long = Buffer.from([1, 0x61, 5, 0, 0, 0, 0, 0, 0, 0, 1])
    const flag = Buffer.from([1, 0x62, 0])
    const bytes = Buffer.from([1, 0x63, 6, 0, 2, 9, 9])
    const name = Buffer.from([1, 0x64, 7, 0, 1, 0x7a])
    const { messages } = parsed(encodeRaw(Buffer.concat([long, flag, bytes, name]), Buffer.alloc(0)))
    expect([...(messages[0]?.headers ?? [])]).toEqual([['d', 'z']])
  })

  it.each([
    ['an unknown type', [1, 0x61, 10]],
    ['a name beyond the headers', [9, 0x61]],
    ['a value beyond the headers', [1, 0x61, 7, 0, 9, 1]],
    ['a length beyond the headers', [1, 0x61, 7, 0]],
  ])('refuses headers with %s', (_, headers) => {
    expect(() => parsed(encodeRaw(Buffer.from(headers), Buffer.alloc(0)))).toThrow('cannot be read')
  })

  it('never crashes on random bytes', () => {
    let seed = 7
    const random = () => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return seed
    }
    for (let run = 0; run < 500; run += 1) {
      const bytes = Buffer.from(stream)
      for (let change = 0; change < 4; change += 1) bytes[random() % bytes.length] = random() % 256
      const cut = random() % bytes.length
      try {
        parsed(bytes.subarray(0, cut), bytes.subarray(cut))
      } catch (error) {
        expect(error).toBeInstanceOf(GatewayError)
      }
    }
  })
})

function read(chunks: Buffer[], toSse = converseEvent, ending?: Error) {
  let cancelled = false
  const result = {
    text: '',
    ended: false,
    failure: undefined as Error | undefined,
    cancelled: () => cancelled,
  }
  const source: BodySource = {
    start(sink) {
      for (const chunk of chunks) sink.write(chunk)
      if (ending) sink.fail(ending)
      else sink.end()
    },
    resume() {},
    cancel() {
      cancelled = true
    },
  }
  const sink: BodySink = {
    write(chunk) {
      result.text += Buffer.from(chunk).toString()
      return true
    },
    end() {
      result.ended = true
    },
    fail(error) {
      result.failure = error
    },
  }
  sseBody(source, toSse).start(sink)
  return result
}

describe('sseBody', () => {
  it('writes events of the Converse API with their names', () => {
    const event = encodeMessage({ ':message-type': 'event', ':event-type': 'metadata' }, '{\n"usage": {}}')
    expect(read([event])).toMatchObject({ text: 'event: metadata\ndata: { "usage": {}}\n\n', ended: true })
  })

  it('unwraps events of the messages API', () => {
    const chunk = (body: object) =>
      encodeEvent('chunk', { bytes: Buffer.from(JSON.stringify(body)).toString('base64'), p: 'abc' })
    const { text } = read(
      [chunk({ type: 'ping' }), chunk({ index: 0, type: 'content_block_stop' })],
      messagesEvent,
    )
    expect(text).toBe(
      'event: ping\ndata: {"type":"ping"}\n\nevent: content_block_stop\ndata: {"index":0,"type":"content_block_stop"}\n\n',
    )
  })

  it('writes exceptions as error events', () => {
    const exception = encodeException('throttlingException', 'Too many tokens.')
    expect(read([exception]).text).toContain('event: exception\ndata: {"type":"throttlingException"')
    expect(read([exception], messagesEvent).text).toContain(
      '"type":"rate_limit_error","message":"Too many tokens: retry',
    )
    const error = encodeMessage(
      { ':message-type': 'error', ':error-code': 'InternalError', ':error-message': 'broken' },
      '',
    )
    expect(read([error], messagesEvent).text).toContain('"type":"api_error","message":"broken"')
  })

  it('delivers the events before an invalid message, then fails and cancels the upstream', () => {
    const start = encodeEvent('messageStart', {})
    const result = read([Buffer.concat([start, Buffer.alloc(16)])])
    expect(result.text).toContain('event: messageStart')
    expect(result.failure).toMatchObject({ code: 'upstream_invalid' })
    expect([result.ended, result.cancelled()]).toEqual([false, true])
  })

  it('fails for a stream that ends inside a message, and forwards failures', () => {
    const start = encodeEvent('messageStart', {})
    expect(read([start.subarray(0, 20)]).failure).toMatchObject({ code: 'upstream_invalid' })
    const reset = new GatewayError('upstream_reset', 'reset')
    expect(read([start], converseEvent, reset).failure).toBe(reset)
  })

  it.each([
    ['a message without type', encodeMessage({}, '{}')],
    ['an event without name', encodeMessage({ ':message-type': 'event' }, '{}')],
    ['a name with a line break', encodeMessage({ ':message-type': 'event', ':event-type': 'a\nb' }, '{}')],
  ])('refuses %s', (_, message) => {
    expect(read([message]).failure).toMatchObject({ code: 'upstream_invalid' })
  })
})
