import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMsOf, expectBelow } from '../../../../test/support/time-bound.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import type { BodySource } from '../../../net/http/body.ts'
import type { Usage } from '../../../pipeline/facts/llm-facts.ts'
import type { Endpoint } from '../request/endpoints.ts'
import { maxLineBytes, relayStream } from './stream.ts'
import { createStreamWatch } from './stream-watch.ts'

type Played = {
  text: string
  usages: Usage[]
  generated: number
  state: string
  failures: string[]
  cancelled: boolean
}

type Playing = { endpoint?: Endpoint; hideUsage?: boolean; failure?: Error; open?: boolean }

/** Plays chunks of an upstream through a relay; `open` leaves the stream unended. */
function play(
  chunks: readonly Uint8Array[],
  { endpoint = 'chat', hideUsage = false, failure, open }: Playing = {},
): Played {
  const played: Played = { text: '', usages: [], generated: 0, state: '', failures: [], cancelled: false }
  const written: Uint8Array[] = []
  const watch = createStreamWatch({
    endpoint,
    hideUsage,
    onUsage: (usage) => played.usages.push(usage),
    onGenerated: (bytes) => {
      played.generated += bytes
    },
  })
  const source: BodySource = {
    start(sink) {
      for (const chunk of chunks) if (!played.cancelled) sink.write(chunk)
      if (played.cancelled || open) return
      if (failure) sink.fail(failure)
      else sink.end()
    },
    resume() {},
    cancel() {
      played.cancelled = true
    },
  }
  let ends = 0
  relayStream(source, {
    maxLineBytes,
    watch,
    conversion: undefined,
    errorEvent: (error) => `\ndata: {"error":"${error.message}"}\n\n`,
    onFirstByte() {},
    onSuccess() {},
    onFailure: (error) => played.failures.push(error instanceof GatewayError ? error.code : error.message),
  }).start({
    write(chunk) {
      expect(ends).toBe(0)
      written.push(chunk)
      return true
    },
    end() {
      ends += 1
    },
    fail: () => expect.unreachable('a relay ends its streams itself'),
  })
  expect(ends).toBe(open ? 0 : 1)
  return { ...played, text: Buffer.concat(written).toString(), state: watch.state }
}

const bytes = (text: string) => [Buffer.from(text)]

function cutAt(text: string, positions: readonly number[]): Uint8Array[] {
  const whole = Buffer.from(text)
  const cuts = [...new Set(positions.map((position) => position % whole.length))].sort((a, b) => a - b)
  return [0, ...cuts].map((start, index) => whole.subarray(start, cuts[index] ?? whole.length))
}

const chunk = (delta: object, usage: unknown = null) =>
  `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason: null }], usage })}\n\n`
const usageChunk =
  'data: {"id":"c","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}\n\n'
const chat = `${chunk({ role: 'assistant', content: '' })}${chunk({ content: 'Hé "you"' })}${chunk({ content: '😀' })}${usageChunk}data: [DONE]\n\n`

const messages = [
  ['message_start', { type: 'message_start', message: { usage: { input_tokens: 10, output_tokens: 1 } } }],
  [
    'content_block_delta',
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
  ],
  [
    'message_delta',
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } },
  ],
  ['message_stop', { type: 'message_stop' }],
]
  .map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
  .join('')

describe('relayStream', () => {
  it('forwards all bytes of a complete stream and finds its usage for any split', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(), { maxLength: 30 }),
        fc.constantFrom('\n', '\r\n'),
        (positions, lineEnd) => {
          const text = chat.replaceAll('\n', lineEnd)
          const played = play(cutAt(text, positions))
          expect(played.text).toBe(text)
          expect(played.usages).toEqual([expect.objectContaining({ totalTokens: 12 })])
          expect(played.state).toBe('ended')
          expect(played.failures).toEqual([])
        },
      ),
    )
  })

  it('reports the first and the last usage of messages', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 30 }), (positions) => {
        const played = play(cutAt(messages, positions), { endpoint: 'messages' })
        expect(played.text).toBe(messages)
        expect(played.usages.map(({ inputTokens, outputTokens }) => [inputTokens, outputTokens])).toEqual([
          [10, 1],
          [0, 5],
        ])
        expect(played).toMatchObject({ state: 'ended', failures: [] })
      }),
    )
  })

  it('reads the usage of responses from the last event', () => {
    const closing = { type: 'response.completed', response: { usage: { input_tokens: 4, output_tokens: 6 } } }
    const text = `event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"hello"}\n\nevent: response.completed\ndata: ${JSON.stringify(closing)}\n\n`
    const played = play(bytes(text), { endpoint: 'responses' })
    expect(played.usages).toEqual([expect.objectContaining({ totalTokens: 10 })])
    expect(played).toMatchObject({ state: 'ended', generated: 5 })
  })

  it('uses the last of several usages', () => {
    const text = `${chunk({ content: 'a' }, { prompt_tokens: 1, completion_tokens: 1 })}${chunk({ content: 'b' }, { prompt_tokens: 1, completion_tokens: 2 })}data: [DONE]\n\n`
    expect(play(bytes(text)).usages.at(-1)).toMatchObject({ totalTokens: 3 })
  })

  it('counts generated text, spaces after colons or not', () => {
    expect(play(bytes(chat)).generated).toBe(Buffer.byteLength('Hé \\"you\\"😀'))
    const spaced = 'data: {"choices": [{"delta": {"content": "four"}}]}\n\ndata: [DONE]\n\n'
    expect(play(bytes(spaced)).generated).toBe(4)
    const call = chunk({ tool_calls: [{ index: 0, function: { arguments: '{"a":1}' } }] })
    expect(play(bytes(`${call}data: [DONE]\n\n`)).generated).toBe('{\\"a\\":1}'.length)
  })

  it('ignores text that looks like usage or an end marker', () => {
    const text = chunk({ content: '"usage":{"prompt_tokens":1}\n\ndata: [DONE]\n\nevent: message_stop\n' })
    const played = play(bytes(text), { open: true })
    expect(played).toMatchObject({ usages: [], state: 'open' })
    expect(play(bytes(text), { open: true, endpoint: 'messages' }).state).toBe('open')
  })

  it('removes only the usage chunk for hideUsage', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 30 }), (positions) => {
        const played = play(cutAt(chat, positions), { hideUsage: true })
        expect(played.text.replaceAll('\n\n\n', '\n\n')).toBe(chat.replace(usageChunk, ''))
        expect(played.usages).toHaveLength(1)
      }),
    )
  })

  it('ends a truncated stream with an error event and no end marker at any position', () => {
    const uncut = chat.indexOf('data: [DONE]')
    fc.assert(
      fc.property(fc.integer({ min: 0, max: uncut }), fc.boolean(), (length, reset) => {
        const failure = reset ? new GatewayError('upstream_reset', 'reset') : undefined
        const played = play([Buffer.from(chat).subarray(0, length)], failure ? { failure } : {})
        expect(played.text).not.toContain('[DONE]')
        const events = played.text.split('\n\n').filter((event) => event.trim() !== '')
        for (const event of events) expect(() => JSON.parse(event.trim().slice(5))).not.toThrow()
        expect(events.at(-1)).toContain('{"error":')
        expect(played.failures).toEqual(['upstream_reset'])
      }),
    )
  })

  it('accepts an end marker without a line end', () => {
    const played = play(bytes(chat.trimEnd()))
    expect(played).toMatchObject({ text: chat, state: 'ended', failures: [] })
  })

  it('does not treat the name of the last event as the event', () => {
    const cut = messages.indexOf('data: {"type":"message_stop"}')
    for (const length of [cut, cut + 10]) {
      const played = play(bytes(messages.slice(0, length)), { endpoint: 'messages' })
      expect(played.failures).toEqual(['upstream_reset'])
      expect(
        played.text.endsWith('\ndata: {"error":"upstream ended the stream before it was complete"}\n\n'),
      ).toBe(true)
    }
    const whole = play(bytes(messages.trimEnd()), { endpoint: 'messages' })
    expect(whole).toMatchObject({ text: messages, state: 'ended', failures: [] })
  })

  it('adds nothing after an error event of the upstream', () => {
    const text = 'data: {"error":{"message":"overloaded"}}\n\n'
    expect(play(bytes(text))).toMatchObject({ text, state: 'failed', failures: ['upstream_invalid'] })
    const event = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"x"}}\n\n'
    expect(play(bytes(event), { endpoint: 'messages' })).toMatchObject({ text: event, state: 'failed' })
  })

  const created = 'event: response.created\ndata: {"type":"response.created"}\n\n'
  const failed =
    'event: response.failed\ndata: {"type":"response.failed","response":{"status":"failed","error":{}}}\n\n'

  it.each([
    ['responses', created + failed],
    ['chat', 'data: {"id":"c","choices":[],"error":{"code":502,"message":"x"}}\n\ndata: [DONE]\n\n'],
    ['chat', 'data: {"error": "overloaded"}\n\ndata: [DONE]\n\n'],
    ['completions', 'data: {"choices":[{"text":"a","error":null}]}\n\ndata: {"error":{}}\n\n'],
  ] as const)('counts an error of %s as a failure: %s', (endpoint, text) => {
    expect(play(bytes(text), { endpoint })).toMatchObject({
      ...{ text, state: 'failed', failures: ['upstream_invalid'] },
    })
  })

  it.each([
    'data: {"choices":[{"delta":{"content":"\\"error\\":{}"}}],"error":null}\n\ndata: [DONE]\n\n',
    'data: {"choices":[{"delta":{"tool_calls":[{"error":{}}]}}]}\n\ndata: [DONE]\n\n',
  ])('counts no other member as an error: %s', (text) => {
    expect(play(bytes(text))).toMatchObject({ text, state: 'ended', failures: [] })
  })

  it('ignores a connection failure after the end', () => {
    const played = play(bytes(chat), { failure: new GatewayError('upstream_reset', 'reset') })
    expect(played).toMatchObject({ text: chat, failures: [] })
  })

  it('rejects an endless line in bounded memory', () => {
    const piece = Buffer.alloc(64 * 1024, 'a')
    const played = play(Array.from({ length: 100 }, () => piece))
    expect(played).toMatchObject({ cancelled: true, failures: ['upstream_too_large'] })
    expect(played.text.length).toBeLessThan(maxLineBytes)
  })

  it('needs linear time for a line in small chunks', async () => {
    const text = `data: {"choices":[],"x":"${'a'.repeat(500_000)}"}\n\ndata: [DONE]\n\n`
    const whole = Buffer.from(text)
    await expectBelow(5_000, () =>
      cpuMsOf(() => {
        const played = play(Array.from(whole, (_, index) => whole.subarray(index, index + 1)))
        expect(played.text).toBe(text)
      }),
    )
  })

  it('forwards invalid events and reports the truncation', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 50 })), (chunks) => {
        const played = play(chunks)
        expect(played.usages).toEqual([])
        expect(played.failures).toEqual(['upstream_reset'])
      }),
    )
  })

  it('propagates back pressure and cancellation', () => {
    const calls: string[] = []
    const source: BodySource = {
      start: (sink) => calls.push(`write ${sink.write(Buffer.from('data: 1\n\n'))}`),
      resume: () => calls.push('resume'),
      cancel: () => calls.push('cancel'),
    }
    const watch = createStreamWatch({ endpoint: 'chat', hideUsage: false, onUsage() {}, onGenerated() {} })
    const relayed = relayStream(source, {
      maxLineBytes,
      watch,
      conversion: undefined,
      errorEvent: () => '',
      onFirstByte: () => calls.push('first'),
      onSuccess() {},
      onFailure() {},
    })
    relayed.start({ write: () => false, end() {}, fail() {} })
    relayed.resume()
    relayed.cancel()
    expect(calls).toEqual(['first', 'write false', 'resume', 'cancel'])
  })
})

it.each([
  ['COMPLETE', 'ended'],
  ['MAX_TOKENS', 'ended'],
  ['ERROR', 'failed'],
  ['TIMEOUT', 'failed'],
])('a stream of Cohere with the finish reason %s has %s', (reason, state) => {
  const watch = createStreamWatch({
    endpoint: 'cohere_chat',
    hideUsage: false,
    onUsage() {},
    onGenerated() {},
  })
  // A document with the type of the last event.
  const cited = { message: { citations: { sources: [{ document: { type: 'message-end' } }] } } }
  const lineOf = (type: string, delta: object) => `data: ${JSON.stringify({ type, delta })}\n\n`
  watch.read(lineOf('citation-start', cited))
  expect(watch.state).toBe('open')
  watch.read(lineOf('message-end', { finish_reason: reason }))
  expect(watch.state).toBe(state)
})
