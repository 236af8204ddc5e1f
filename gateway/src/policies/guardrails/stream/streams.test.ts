import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { apis, conversations } from '../../../../test/fixtures/guardrail-streams.ts'
import {
  acts,
  type FixtureWebhook,
  fixtureGuards,
  jsonReply,
  masking,
  open,
  pass,
  sentTo,
  webhookGuard,
} from '../../../../test/fixtures/guardrails.ts'
import { createCancellation } from '../../../lib/cancellation.ts'
import { type BodySink, type BodySource, isSource } from '../../../net/http/body.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { GuardrailsConfig } from '../config.ts'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

const modes = ['buffered', 'windowed'] as const
const response = [webhookGuard]
const guarded = (streaming: NonNullable<GuardrailsConfig['streaming']>, webhook: FixtureWebhook = masking) =>
  fixtureGuards({ response, streaming }, webhook)

const cases = apis.flatMap((api) => modes.map((streaming) => ({ api, streaming })))

/** Cuts a text anywhere, also inside characters. */
function cut(text: string, lengths: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text)
  const pieces: Buffer[] = []
  let from = 0
  for (const length of lengths) {
    pieces.push(bytes.subarray(from, from + length))
    from += length
  }
  return [...pieces, bytes.subarray(from)].filter((piece) => piece.length > 0)
}

const word = fc.oneof(
  fc.constantFrom(
    'mask',
    'ma',
    'sk',
    ' ',
    'm',
    'a',
    's',
    'k',
    '\n',
    '"',
    '\\',
    'ü',
    '😀',
    ' a longer piece of text ',
  ),
  fc.string({ maxLength: 300 }),
)

describe.each(cases)('a stream of $api that is $streaming', ({ api, streaming }) => {
  const { stream, read, end } = conversations[api]

  it('comes out as it was where nothing has to change', async () => {
    const events = stream(['Hel', 'lo', ' there'])
    const { text, headers } = await pass(guarded(streaming, acts({})), { api, answer: events })
    expect(text).toBe(events.join(''))
    expect(headers['content-type']).toBe('text/event-stream')
  })

  it('has all of its texts changed, however they are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(word, { minLength: 1, maxLength: 40 }),
        fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 20 }),
        async (words, lengths) => {
          const whole = words.join('')
          const answer = cut(stream(words).join(''), lengths)
          const { text } = await pass(guarded(streaming), { api, answer })
          expect(read(text)).toBe(whole.replaceAll('mask', '****'))
          expect(text.includes(end)).toBe(true)
          // Nor is it said in any other place.
          if (!JSON.stringify(whole).includes('mask')) return
          expect(text).not.toContain('mask')
        },
      ),
      { numRuns: 60 },
    )
  })

  it('changes where text runs across the border of two windows', async () => {
    for (let offset = 1010; offset < 1030; offset += 1) {
      const words = ['x'.repeat(offset), 'm', 'a', 's', 'k', 'y'.repeat(2000)]
      const { text } = await pass(guarded(streaming), { api, answer: stream(words) })
      expect(read(text)).toBe(words.join('').replace('mask', '****'))
    }
  })

  it('is rejected with the status of the webhook as long as nothing was sent', async () => {
    const guards = guarded(streaming, acts({ body: 'no', status_code: 403 }))
    const { status, text, headers } = await pass(guards, { api, answer: stream(['bad']) })
    expect([status, text, headers['content-type']]).toEqual([403, 'no', 'text/plain; charset=utf-8'])
  })

  it('keeps the connection alive while it is silent, and is rejected by an event after that', async () => {
    let answer = (_: Reply) => {}
    const guards = guarded(
      streaming,
      () =>
        new Promise((resolve) => {
          answer = resolve
        }),
    )
    const upstream = pushed()
    const opening = open(guards, { api, answer: upstream.source })
    await vi.advanceTimersByTimeAsync(14_999)
    expect(await settled(opening)).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    const { reply, exchange } = await opening
    expect(reply.status).toBe(200)
    const client = reading(reply)
    expect(client.text).toBe(':\n\n')
    await vi.advanceTimersByTimeAsync(15_000)
    expect(client.text).toBe(':\n\n:\n\n')
    for (const event of stream(['bad'])) upstream.push(event)
    upstream.end()
    await vi.advanceTimersByTimeAsync(1_000)
    answer(jsonReply({ action: { body: 'not this', status_code: 403 } }))
    await vi.advanceTimersByTimeAsync(1)
    expect(client.state).toBe('ended')
    expect(client.text).toContain('not this')
    expect(client.text).not.toContain('bad')
    expect(client.text).not.toContain(end)
    expect(exchange.log.refusedBy).toBe('guardrail: llm response webhook 1')
    expect(vi.getTimerCount()).toBe(0)
  })

  it('fails its check when an event cannot be read, unless that may pass', async () => {
    const events = [
      ...stream(['Hello']).slice(0, 2),
      'data: {"choices":[{"delta":{"content":"a"},"delta":{}}]}\n\n',
      ...stream(['x']),
    ]
    const closed = await pass(guarded(streaming, acts({})), { api, answer: events })
    expect(closed.status).toBe(503)
    const failOpen: GuardrailsConfig = {
      response: [{ webhook: { ...webhookGuard.webhook, failureMode: 'failOpen' } }],
      streaming,
    }
    const opened = await pass(fixtureGuards(failOpen, acts({})), { api, answer: events })
    expect(opened.status).toBe(200)
    expect(opened.text).toBe(events.join(''))
  })

  it('lets go of everything when the client leaves', async () => {
    const cancellation = createCancellation()
    const upstream = pushed()
    const opening = open(guarded(streaming), { api, answer: upstream.source, cancellation })
    upstream.push(stream(['Hello'])[0] ?? '')
    cancellation.cancel()
    expect((await opening).reply.status).toBe(400)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('does not run ahead of a slow client', async () => {
    const words = Array.from({ length: 300 }, (_, index) => `word ${index} `.repeat(60))
    const events = stream(words)
    const upstream = pulled(events)
    const { reply } = await open(guarded(streaming, acts({})), { api, answer: upstream.source })
    const client = reading(reply, { accepts: 1 })
    await vi.advanceTimersByTimeAsync(100)
    if (streaming === 'windowed') expect(upstream.taken).toBeLessThan(events.length)
    for (let round = 0; round < 2_000 && client.state === 'open'; round += 1) {
      client.accept(1)
      await vi.advanceTimersByTimeAsync(1)
    }
    expect(client.state).toBe('ended')
    expect(client.text).toBe(events.join(''))
  })
})

describe.each(apis)('a windowed stream of %s', (api) => {
  const { stream, read, end } = conversations[api]

  it('is passed on while it is still coming, and ended by an event when a later window is rejected', async () => {
    const webhook: FixtureWebhook = (request) =>
      JSON.stringify(sentTo(request)).includes('bad')
        ? jsonReply({ action: { body: 'no more', status_code: 403 } })
        : jsonReply({ action: {} })
    const guards = guarded('windowed', webhook)
    const upstream = pushed()
    const opening = open(guards, { api, answer: upstream.source })
    await vi.advanceTimersByTimeAsync(1)
    const events = stream([
      ...Array.from({ length: 40 }, () => 'fifty characters that nobody minds to have read.. '),
      'bad',
      'x'.repeat(1100),
    ])
    const middle = events.findIndex((event) => event.includes('bad'))
    for (const event of events.slice(0, middle)) upstream.push(event)
    await vi.advanceTimersByTimeAsync(1)
    const { reply } = await opening
    const client = reading(reply)
    expect(read(client.text).length).toBeGreaterThan(500)
    for (const event of events.slice(middle)) upstream.push(event)
    await vi.advanceTimersByTimeAsync(1)
    expect(client.state).toBe('ended')
    expect(client.text).toContain('no more')
    expect(read(client.text)).not.toContain('bad')
    expect(client.text).not.toContain(end)
    expect(upstream.isCancelled).toBe(true)
  })

  it('shows every text in one window, or in two at their border', async () => {
    const guards = guarded('windowed', acts({}))
    const upstream = pushed()
    const opening = open(guards, { api, answer: upstream.source })
    await vi.advanceTimersByTimeAsync(1)
    for (const event of stream(Array.from({ length: 400 }, (_, index) => `<${index}> of many words `))) {
      upstream.push(event)
      await vi.advanceTimersByTimeAsync(1)
    }
    upstream.end()
    const client = reading((await opening).reply)
    await vi.advanceTimersByTimeAsync(1)
    expect(client.state).toBe('ended')
    const shown = guards.calls.map((call) => JSON.stringify(sentTo(call)))
    expect(shown.length).toBeGreaterThan(3)
    for (const index of [0, 100, 200, 399]) {
      const windows = shown.filter((text) => text.includes(`<${index}> of many`))
      expect([1, 2]).toContain(windows.length)
    }
  })
})

describe('a buffered stream', () => {
  it('is shown as the same answer that is not streamed, with all choices', async () => {
    const guards = guarded('buffered')
    const chunk = (index: number, delta: object) =>
      `data: ${JSON.stringify({ choices: [{ index, delta }] })}\n\n`
    const tool = chunk(0, {
      tool_calls: [{ index: 0, id: 't', function: { name: 'f', arguments: '{"mask":' } }],
    })
    const answer = [
      chunk(1, { content: 'b ma' }),
      chunk(0, { content: 'a' }),
      tool,
      chunk(1, { content: 'sk' }),
      'data: [DONE]\n\n',
    ]
    const { text } = await pass(guards, { answer })
    expect(sentTo(guards.calls[0])).toEqual({
      body: {
        choices: [
          { message: { role: 'assistant', content: 'a' } },
          { message: { role: 'assistant', content: 'b mask' } },
        ],
      },
    })
    expect(text).toBe(
      [
        chunk(1, { content: 'b ****' }),
        chunk(0, { content: 'a' }),
        tool,
        chunk(1, { content: '' }),
        'data: [DONE]\n\n',
      ].join(''),
    )
  })

  it('is checked in every place that has text, also beside other text', async () => {
    const answer = [
      'data: {"choices":[{"delta":{"content":"a"},"message":{"content":"mask"}}]}\n\n',
      'data: {"choices":[{"delta":{"content":[{"type":"text","text":"b mask"}," c mask"]}}]}\n\n',
      'data: [DONE]\n\n',
    ]
    for (const streaming of modes) {
      const { text } = await pass(guarded(streaming), { answer })
      expect(text).toBe(answer.join('').replaceAll('mask', '****'))
    }
  })

  it('is shown block by block, those without text as nothing', async () => {
    const guards = guarded('buffered')
    const event = (type: string, fields: object) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
    const answer = [
      event('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '' } }),
      event('content_block_delta', { index: 0, delta: { type: 'thinking_delta', thinking: 'mask' } }),
      event('content_block_start', { index: 1, content_block: { type: 'text', text: '' } }),
      event('content_block_delta', { index: 1, delta: { type: 'text_delta', text: 'a mask' } }),
      event('content_block_start', {
        index: 2,
        content_block: { type: 'tool_use', id: 't', name: 'f', input: {} },
      }),
      event('content_block_delta', {
        index: 2,
        delta: { type: 'input_json_delta', partial_json: '{"mask":1}' },
      }),
      event('message_stop', {}),
    ]
    const { text } = await pass(guards, { api: 'messages', answer })
    expect(sentTo(guards.calls[0])).toEqual({
      body: { choices: ['', 'a mask', ''].map((content) => ({ message: { role: 'assistant', content } })) },
    })
    expect(text).toBe(answer.join('').replace('a mask', 'a ****'))
  })

  it('fails its check when it exceeds the buffer', async () => {
    const answer = conversations.chat.stream(Array.from({ length: 1000 }, () => 'x'.repeat(100)))
    const options = { maxBufferedBytes: 50_000 }
    expect((await pass(fixtureGuards({ response }, acts({}), options), { answer })).status).toBe(503)
    const failOpen: GuardrailsConfig = {
      response: [{ webhook: { ...webhookGuard.webhook, failureMode: 'failOpen' } }],
    }
    const opened = await pass(fixtureGuards(failOpen, acts({}), options), { answer })
    expect(opened.text).toBe(answer.join(''))
  })

  it('checks a repeated text that differs from its pieces', async () => {
    const guards = guarded('buffered')
    const events = conversations.responses.stream(['Hello'])
    const answer = events.map((event) =>
      event.includes('response.completed') ? event.replace('"Hello"', '"mask"') : event,
    )
    const { text } = await pass(guards, { api: 'responses', answer })
    expect(text).not.toContain('mask')
    expect(text).toContain('"****"')
  })
})

describe('a stream that is only noted', () => {
  const noting: GuardrailsConfig = { response: [{ webhook: { ...webhookGuard.webhook, action: 'audit' } }] }

  it('is passed on as it comes', async () => {
    const guards = fixtureGuards(noting, acts({ body: 'no', status_code: 403 }))
    const upstream = pushed()
    const { reply, exchange } = await open(guards, { answer: upstream.source })
    const client = reading(reply)
    const events = conversations.chat.stream(['a', 'b'])
    for (const event of events.slice(0, -1)) {
      upstream.push(event)
      expect(client.text.endsWith(event)).toBe(true)
    }
    upstream.push(events.at(-1) ?? '')
    upstream.end()
    await vi.advanceTimersByTimeAsync(1)
    expect(client.text).toBe(events.join(''))
    expect(client.state).toBe('ended')
    expect(exchange.guards).toMatchObject([{ outcome: 'audit_reject' }])
  })
})

/** A stream that the test pushes. */
function pushed() {
  let sink: BodySink | undefined
  const upstream = {
    isCancelled: false,
    push: (text: string) => sink?.write(Buffer.from(text)),
    end: () => sink?.end(),
    source: {
      start(to: BodySink) {
        sink = to
      },
      resume() {},
      cancel() {
        upstream.isCancelled = true
      },
    },
  }
  return upstream
}

/** A stream that comes as fast as it is taken. */
function pulled(events: readonly string[]) {
  let sink: BodySink | undefined
  let isPaused = false
  const flow = () => {
    isPaused = false
    while (!isPaused && upstream.taken <= events.length) {
      const event = events[upstream.taken]
      upstream.taken += 1
      if (event === undefined) sink?.end()
      else if (sink?.write(Buffer.from(event)) === false) isPaused = true
    }
  }
  const source: BodySource = {
    start(to) {
      sink = to
      flow()
    },
    resume: flow,
    cancel() {},
  }
  const upstream = { taken: 0, source }
  return upstream
}

/** A client that takes as many chunks as it says, any number unless told. */
function reading({ body }: Reply, { accepts = Number.POSITIVE_INFINITY } = {}) {
  let left = accepts
  const client = {
    text: '',
    state: 'open',
    accept(more: number) {
      left = more
      if (isSource(body)) body.resume()
    },
  }
  if (isSource(body)) {
    body.start({
      write(chunk) {
        client.text += Buffer.from(chunk).toString()
        left -= 1
        return left > 0
      },
      end() {
        client.state = 'ended'
      },
      fail() {
        client.state = 'failed'
      },
    })
  }
  return client
}

async function settled(promise: Promise<unknown>): Promise<boolean> {
  const open = Symbol('open')
  return (await Promise.race([promise, Promise.resolve(open)])) !== open
}

describe.each(modes)('a refusal in a stream that is %s', (streaming) => {
  it('is checked and changed as text is', async () => {
    const chat = [
      'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null}}]}\n\n',
      'data: {"choices":[{"index":0,"delta":{"refusal":"no ma"},"logprobs":{"refusal":[{"token":"mask"}]}}]}\n\n',
      'data: {"choices":[{"index":0,"delta":{"refusal":"sk"}}]}\n\n',
      'data: [DONE]\n\n',
    ]
    const { text } = await pass(guarded(streaming), { answer: chat })
    expect(text).toContain('"refusal":"no ****"')
    expect(text).not.toContain('mask')
    const at = { output_index: 0, content_index: 0 }
    const part = { type: 'refusal', refusal: 'no mask' }
    const item = { type: 'message', role: 'assistant', content: [part] }
    const events = [
      { type: 'response.content_part.added', ...at, part: { type: 'refusal', refusal: '' } },
      { type: 'response.refusal.delta', ...at, delta: 'no ma' },
      { type: 'response.refusal.delta', ...at, delta: 'sk' },
      { type: 'response.refusal.done', ...at, refusal: 'no mask' },
      { type: 'response.content_part.done', ...at, part },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { output: [item] } },
    ]
    const answer = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    const guards = guarded(streaming)
    const responses = await pass(guards, { api: 'responses', answer })
    expect(responses.text).not.toContain('mask')
    expect(sentTo(guards.calls[0])).toEqual({
      body: { choices: [{ message: { role: 'assistant', content: 'no mask' } }] },
    })
    expect(guards.calls).toHaveLength(1)
  })
})

describe('a windowed stream of large events', () => {
  const large = (content: string) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }], obfuscation: 'x'.repeat(5_000) })}\n\n`
  const done = 'data: [DONE]\n\n'

  it('is changed where text runs across the border of two windows, as one of small events is', async () => {
    const events = Array.from({ length: 40 }, () => ['m', 'as', 'k '].map(large)).flat()
    const guards = guarded('windowed')
    const { text } = await pass(guards, { answer: [...events, done] })
    expect(conversations.chat.read(text)).toBe('**** '.repeat(40))
    expect(guards.calls.length).toBeLessThan(30)
  })

  it('is checked in windows by characters, although each takes hundreds of bytes', async () => {
    const event = (content: string) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }], obfuscation: 'x'.repeat(250) })}\n\n`
    const guards = guarded('windowed', acts({}))
    await pass(guards, { answer: [...Array.from({ length: 1_000 }, () => event('word ')), done] })
    expect(guards.calls).toHaveLength(5)
  })

  it('fails its check when they exceed the buffer', async () => {
    const guards = fixtureGuards({ response, streaming: 'windowed' }, acts({}), { maxBufferedBytes: 50_000 })
    const { text } = await pass(guards, { answer: [...'a few words of text'].map(large) })
    expect(text).toContain('prompt guard failed')
    expect(text).not.toContain('[DONE]')
  })

  it('is complete when it fails open beyond the buffer', async () => {
    const failOpen = { webhook: { ...webhookGuard.webhook, failureMode: 'failOpen' } } as const
    const config: GuardrailsConfig = { response: [failOpen], streaming: 'windowed' }
    const guards = fixtureGuards(config, acts({}), { maxBufferedBytes: 3_000 })
    const answer = [...['large', ' and ', 'larger'].map(large), done]
    expect((await pass(guards, { answer })).text).toBe(answer.join(''))
  })
})

it.each(modes)('results of provider tools are checked in a stream that is %s', async (streaming) => {
  const text = (words: string) => ({ type: 'text', text: words })
  const block = { type: 'mcp_tool_result', content: [text('one mask'), text('two'), text('mask')] }
  const event = { type: 'content_block_start', index: 3, content_block: block }
  const answer = [`event: content_block_start\ndata: ${JSON.stringify(event)}\n\n`]
  const guards = guarded(streaming)
  const passed = await pass(guards, { api: 'messages', answer })
  expect(passed.text).toBe(answer.join('').replaceAll('mask', '****'))
  expect(guards.calls).toHaveLength(1)
})
