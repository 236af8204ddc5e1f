import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import {
  call,
  chatBody,
  completion,
  type FixtureCall,
  fixtureGateway,
  jsonReply,
  open,
  streamReply,
} from '../../../../test/fixtures/llm.ts'
import { createCancellation } from '../../../lib/cancellation.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import { isSource } from '../../../net/http/body.ts'
import type { Reply } from '../../../net/http-client/send.ts'

const gatewayFor = (provider: string, reply: () => Reply, options = {}) =>
  fixtureGateway({ models: [{ name: '*', provider }] }, reply, options)

const answered = (provider: string, reply: Reply, request: FixtureCall) =>
  call(
    gatewayFor(provider, () => reply),
    request,
  )

const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-x',
  content: [{ type: 'text', text: 'hi' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 10, cache_read_input_tokens: 5, output_tokens: 3 },
}
const messagesBody = {
  model: 'claude-x',
  max_tokens: 10,
  messages: [{ role: 'user', content: 'Hello there' }],
}
const streaming = { body: { ...chatBody, stream: true } }

const delta = (content: string) =>
  `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"${content}"},"finish_reason":null}],"usage":null}\n\n`
const closing =
  'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}\n\n'
const usage =
  'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}\n\n'
const done = 'data: [DONE]\n\n'
const messageEvents = [
  'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}\n\n',
  'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi, you"}}\n\n',
  'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
  'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}\n\n',
  'event: message_stop\ndata: {"type":"message_stop"}\n\n',
]

describe('an unstreamed response', () => {
  it('is forwarded byte for byte, with unknown fields and spacing', async () => {
    const text = '{ "x_unknown": 12345678901234567890, "usage": {"prompt_tokens":1,"completion_tokens":2} }'
    const outcome = await answered('openai', jsonReply(text), { body: chatBody })
    expect(outcome.text).toBe(text)
    expect(outcome.exchange.facts.usage).toMatchObject({ totalTokens: 3, estimated: false })
  })

  it('with ambiguous names is rejected if guards read it', async () => {
    const checked = { body: chatBody, readsAnswer: true }
    const twice = jsonReply('{"choices":[],"choices":[{}]}')
    expect((await answered('openai', twice, checked)).status).toBe(502)
    const bytes = Buffer.from(JSON.stringify({ choices: [{ message: { content: 'ma\u00ffsk' } }] }), 'latin1')
    const unreadable = { status: 200, headers: { 'content-type': 'application/json' }, body: bytes }
    expect((await answered('openai', unreadable, checked)).status).toBe(502)
    expect((await answered('openai', unreadable, { body: chatBody })).status).toBe(200)
  })

  it('is translated for a client of the other chat API', async () => {
    const chat = await answered('anthropic', jsonReply(message), { body: chatBody })
    expect(JSON.parse(chat.text)).toMatchObject({ object: 'chat.completion', usage: { total_tokens: 18 } })
    expect(chat.exchange.facts.usage).toMatchObject({
      inputTokens: 15,
      outputTokens: 3,
      cachedInputTokens: 5,
    })
    const messages = await answered('openai', jsonReply(completion('hi')), {
      path: '/v1/messages',
      body: messagesBody,
    })
    expect(JSON.parse(messages.text)).toMatchObject({
      type: 'message',
      content: [{ type: 'text', text: 'hi' }],
    })
    expect(messages.exchange.facts.usage).toMatchObject({ totalTokens: 12 })
  })

  it('is decoded if the provider compresses it', async () => {
    const reply = jsonReply(completion('hi'), 200, { 'content-encoding': 'gzip', 'content-length': '3' })
    const outcome = await answered(
      'openai',
      { ...reply, body: gzipSync(JSON.stringify(completion('hi'))) },
      { body: chatBody },
    )
    expect(JSON.parse(outcome.text)).toEqual(completion('hi'))
    expect(outcome.headers).not.toHaveProperty('content-encoding')
    expect(outcome.headers).not.toHaveProperty('content-length')
  })

  it.each<[string, Reply]>([
    ['no JSON', jsonReply('hello')],
    ['no object', jsonReply('[1]')],
    ['empty', jsonReply('')],
    ['HTML', { status: 200, headers: { 'content-type': 'text/html' }, body: Buffer.from('<html>') }],
    ['a redirect', { status: 302, headers: { location: 'http://inside' }, body: undefined }],
    ['encoded in no known way', jsonReply('{}', 200, { 'content-encoding': 'snappy' })],
    ['not in its encoding', jsonReply('{}', 200, { 'content-encoding': 'gzip' })],
  ])('that is %s is a 502', async (_, reply) => {
    const { status, text, headers, exchange } = await answered('openai', reply, { body: chatBody })
    expect(status).toBe(502)
    expect(JSON.parse(text).error.code).toBe('upstream_invalid')
    expect(headers).toEqual({ 'content-type': 'application/json' })
    expect(exchange.facts.usage).toBeUndefined()
  })

  it.each([
    ['plain', jsonReply('x'.repeat(2000))],
    [
      'unfolding to it',
      { ...jsonReply(''), headers: { 'content-encoding': 'gzip' }, body: gzipSync(Buffer.alloc(1_000_000)) },
    ],
  ])('over the limit is a 502: %s', async (_, reply) => {
    const gateway = gatewayFor('openai', () => reply, { maxReplyBytes: 1000 })
    const { status, text } = await call(gateway, { body: chatBody })
    expect([status, JSON.parse(text).error.code]).toEqual([502, 'upstream_too_large'])
  })

  it('without usage is counted by bytes', async () => {
    const reply = jsonReply({ ...completion('x'.repeat(400)), usage: null })
    const { exchange } = await answered('openai', reply, { body: chatBody })
    expect(exchange.facts.usage?.estimated).toBe(true)
    expect(exchange.facts.usage?.outputTokens).toBeGreaterThanOrEqual(100)
    expect(exchange.facts.usage?.outputTokens).toBeLessThan(130)
  })

  it('counts the input of embeddings only', async () => {
    const embeddings = {
      object: 'list',
      data: [{ embedding: [0.1, 0.2] }],
      usage: { prompt_tokens: 8, total_tokens: 8 },
    }
    const request = { path: '/v1/embeddings', body: { model: 'e', input: 'x' } }
    const { exchange } = await answered('openai', jsonReply(embeddings), request)
    expect(exchange.facts.usage).toMatchObject({ inputTokens: 8, outputTokens: 0 })
    const silent = await answered('openai', jsonReply({ ...embeddings, usage: undefined }), request)
    expect(silent.exchange.facts.usage).toMatchObject({ outputTokens: 0, estimated: true })
  })

  it('has the provider’s headers without those of its connection and site', async () => {
    const headers = {
      'x-request-id': 'r1',
      'openai-processing-ms': '12',
      'retry-after': '1',
      'set-cookie': ['a=b'],
      connection: 'x-hop',
      'x-hop': '1',
      'transfer-encoding': 'chunked',
      'access-control-allow-origin': '*',
      'x-ratelimit-limit': '1',
      'x-ratelimit-remaining': '1',
      'x-ratelimit-reset': '1',
      'x-ratelimit-limit-requests': '60',
    }
    const outcome = await answered('openai', jsonReply(completion('hi'), 200, headers), { body: chatBody })
    expect(outcome.headers).toEqual({
      'content-type': 'application/json',
      'x-request-id': 'r1',
      'openai-processing-ms': '12',
      'retry-after': '1',
      'x-ratelimit-limit-requests': '60',
    })
  })

  it('is metered', async () => {
    const gateway = gatewayFor('openai', () => jsonReply(completion('hi')))
    await call(gateway, { body: chatBody })
    expect(gateway.metered).toEqual(['done * openai', 'tokens * openai 12 team'])
  })
})

describe('an error response', () => {
  const error = { error: { message: 'slow down', type: 'rate_limit', param: null, code: 'x' } }

  it('preserves status and bytes for a client of the same API, and is not charged', async () => {
    const { status, text, exchange } = await answered('openai', jsonReply(error, 429), { body: chatBody })
    expect([status, text]).toEqual([429, JSON.stringify(error)])
    expect(exchange.facts.usage).toBeUndefined()
  })

  it('is translated for a client of the other API', async () => {
    const { status, text } = await answered('openai', jsonReply(error, 429), {
      path: '/v1/messages',
      body: messagesBody,
    })
    expect(status).toBe(429)
    expect(JSON.parse(text)).toMatchObject({
      type: 'error',
      error: { type: 'rate_limit_error', message: 'slow down' },
    })
  })

  it.each([
    [
      '/v1/chat/completions',
      { error: { message: 'upstream answered with status 503', code: 'upstream_error' } },
    ],
    [
      '/v1/messages',
      { type: 'error', error: { type: 'api_error', message: 'upstream answered with status 503' } },
    ],
  ])('with an HTML page becomes an error of the API: %s', async (path, expected) => {
    const html = {
      status: 503,
      headers: { 'content-type': 'text/html' },
      body: Buffer.from('<html>internal host 10.0.0.1'),
    }
    for (const provider of ['openai', 'anthropic']) {
      const { status, text, headers } = await answered(provider, html, { path, body: messagesBody })
      expect(status).toBe(503)
      expect(headers['content-type']).toBe('application/json')
      expect(JSON.parse(text)).toMatchObject(expected)
      expect(text).not.toContain('html')
    }
  })

  it('contains no provider credential', async () => {
    const credential = 'sk-provider-canary'
    const refusal = { error: { message: `Incorrect API key provided: ${credential}.`, type: 'x' } }
    for (const path of ['/v1/chat/completions', '/v1/nowhere']) {
      const gateway = fixtureGateway(
        { models: [{ name: '*', provider: 'openai', params: { apiKey: credential } }], passthrough: true },
        () => jsonReply(refusal, 401),
      )
      const { status, text } = await call(gateway, { path, body: chatBody })
      expect(status).toBe(401)
      expect(JSON.parse(text).error.message).toBe('Incorrect API key provided: [hidden].')
    }
  })

  it('is recognised for a streamed request', async () => {
    const { status, text } = await answered('openai', jsonReply(error, 400), streaming)
    expect([status, text]).toEqual([400, JSON.stringify(error)])
  })
})

describe('a stream', () => {
  const chunks = [delta('Hel'), delta('lo'), closing, usage, done]

  it('is forwarded byte for byte and counted by its usage', async () => {
    const { text, headers, exchange } = await answered('openai', streamReply(chunks), streaming)
    expect(text).toBe(chunks.join(''))
    expect(headers).toMatchObject({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' })
    expect(exchange.facts.usage).toMatchObject({ totalTokens: 12, estimated: false })
  })

  it.each([
    ['openai', chunks, 12],
    ['anthropic', messageEvents, 15],
  ])('is recognised by a media type in other case from %s', async (provider, events, totalTokens) => {
    const reply = { ...streamReply(events), headers: { 'content-type': 'Text/Event-Stream; Charset=UTF-8' } }
    const { status, text, exchange } = await answered(provider, reply, streaming)
    expect(status).toBe(200)
    expect(text).toContain('data: [DONE]')
    expect(exchange.facts.usage).toMatchObject({ totalTokens, estimated: false })
  })

  it('omits the usage chunk for include_usage: false, and is counted', async () => {
    const body = { ...streaming.body, stream_options: { include_usage: false } }
    const { text, exchange } = await answered('openai', streamReply(chunks), { body })
    expect(text).toContain('"delta":{"content":"lo"}')
    expect(text).not.toContain('prompt_tokens')
    expect(text).toContain('[DONE]')
    expect(exchange.facts.usage).toMatchObject({ totalTokens: 12 })
  })

  it('is counted by bytes if text follows the last usage', async () => {
    const opening = usage.replace('"completion_tokens":3', '"completion_tokens":0').replace(':12}', ':9}')
    const long = [opening, delta('x'.repeat(400))]
    const cut = await answered('openai', streamReply(long), streaming)
    expect(cut.exchange.facts.usage).toMatchObject({ inputTokens: 9, outputTokens: 100, estimated: true })
    const whole = await answered('openai', streamReply([...long, closing, usage, done]), streaming)
    expect(whole.exchange.facts.usage).toMatchObject({ totalTokens: 12, estimated: false })
  })

  it('of messages is translated to chunks, with usage and end', async () => {
    const { text, exchange } = await answered('anthropic', streamReply(messageEvents), streaming)
    expect(text).toContain('"content":"hi, you"')
    expect(text).toContain('"total_tokens":15')
    expect(text.endsWith(done)).toBe(true)
    expect(exchange.facts.usage).toMatchObject({
      inputTokens: 10,
      outputTokens: 5,
      totalTokens: 15,
      estimated: false,
    })
  })

  it('of chunks is translated to messages', async () => {
    const request = { path: '/v1/messages', body: { ...messagesBody, stream: true } }
    const { text, exchange } = await answered('openai', streamReply(chunks), request)
    expect(text).toContain('event: message_start')
    expect(text).toContain('"text":"Hel"')
    expect(text.trimEnd().endsWith('data: {"type":"message_stop"}')).toBe(true)
    expect(exchange.facts.usage).toMatchObject({ totalTokens: 12 })
  })

  it.each<[string, string, FixtureCall, Reply, string]>([
    ['chat', 'openai', streaming, streamReply([delta('Hello')]), 'data: {"error":{"message":'],
    [
      'chat from messages',
      'anthropic',
      streaming,
      streamReply(messageEvents.slice(0, 3)),
      'data: {"error":{"message":',
    ],
    [
      'messages',
      'anthropic',
      { path: '/v1/messages', body: { ...messagesBody, stream: true } },
      streamReply(messageEvents.slice(0, 3)),
      'event: error\ndata: {"type":"error","error":{"type":"api_error"',
    ],
    [
      'messages from chat',
      'openai',
      { path: '/v1/messages', body: { ...messagesBody, stream: true } },
      streamReply([delta('Hello')]),
      'event: error\ndata: {"type":"error","error":{"type":"api_error"',
    ],
    [
      'responses',
      'openai',
      { path: '/v1/responses', body: { model: 'm', input: 'x', stream: true } },
      streamReply([
        'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Hello"}\n\n',
      ]),
      'event: error\ndata: {"type":"error","code":"upstream_reset"',
    ],
  ])(
    'of %s that was cut ends in an error, without an end marker, and is estimated',
    async (_, provider, request, reply, expected) => {
      const gateway = gatewayFor(provider, () => reply)
      const { text, exchange } = await call(gateway, request)
      expect(text).toContain(`\n${expected}`)
      expect(text.endsWith('\n\n')).toBe(true)
      expect(text).not.toMatch(/\[DONE\]|message_stop|response\.completed/)
      expect(exchange.facts.usage).toMatchObject({ estimated: true, outputTokens: 2 })
      expect(exchange.log.failure).toMatchObject({ code: 'upstream_reset' })
      expect(gateway.metered).toContain(`error * ${provider} upstream_reset`)
    },
  )

  it('ends with a timeout error after a stall', async () => {
    const stalled = streamReply(
      [delta('Hello')],
      new GatewayError('upstream_timeout', 'upstream stopped sending'),
    )
    const { text } = await answered('openai', stalled, streaming)
    expect(text).toContain('"message":"upstream stopped sending"')
    expect(text).not.toContain('[DONE]')
  })

  it('ends with an error for invalid events if translated', async () => {
    const garbled = streamReply(['event: message_start\ndata: {{{\n\n', ...messageEvents])
    const { text, exchange } = await answered('anthropic', garbled, streaming)
    expect(text).toContain('"error"')
    expect(text).not.toContain('[DONE]')
    expect(exchange.log.failure).toMatchObject({ code: 'upstream_invalid' })
  })

  it('is rejected if compressed', async () => {
    const reply = {
      ...streamReply([done]),
      headers: { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' },
    }
    expect((await answered('openai', reply, streaming)).status).toBe(502)
  })

  it('without usage is estimated from its text', async () => {
    const { exchange } = await answered(
      'openai',
      streamReply([delta('x'.repeat(40)), closing, done]),
      streaming,
    )
    expect(exchange.facts.usage).toMatchObject({ estimated: true, outputTokens: 10 })
  })

  it('is charged for the text before a disconnect', async () => {
    const cancellation = createCancellation()
    const gateway = gatewayFor('openai', () =>
      streamReply([delta('x'.repeat(40)), delta('y'.repeat(40)), usage, done]),
    )
    const { reply, exchange } = await open(gateway, { ...streaming, cancellation })
    if (!isSource(reply.body)) throw new Error('expected a stream')
    const source = reply.body
    source.start({
      write() {
        cancellation.cancel()
        source.cancel()
        return false
      },
      end: () => expect.unreachable(),
      fail: () => expect.unreachable(),
    })
    gateway.llm.llmRequest.onEnd?.(exchange)
    expect(exchange.facts.usage).toMatchObject({ estimated: true, outputTokens: 10 })
    expect(gateway.metered).toEqual([
      'done * openai',
      `tokens * openai ${exchange.facts.usage?.totalTokens} team`,
    ])
  })

  it('of messages preserves the reported input after a disconnect', async () => {
    const reply = streamReply(messageEvents.slice(0, 3), new GatewayError('request_aborted', 'left'))
    const { exchange } = await answered('anthropic', reply, {
      path: '/v1/messages',
      body: { ...messagesBody, stream: true },
    })
    expect(exchange.facts.usage).toMatchObject({ inputTokens: 10, outputTokens: 2, estimated: true })
  })
})

describe('token counting', () => {
  it('is forwarded to a provider that supports it, and not charged', async () => {
    const request = { path: '/v1/messages/count_tokens', body: messagesBody }
    const theirs = await answered('anthropic', jsonReply({ input_tokens: 42 }), request)
    expect(theirs.text).toBe('{"input_tokens":42}')
    expect(theirs.exchange.facts.usage).toBeUndefined()
  })

  it('is an estimate for other providers', async () => {
    const gateway = gatewayFor('openai', () => expect.unreachable())
    const { text } = await call(gateway, { path: '/v1/messages/count_tokens', body: messagesBody })
    expect(JSON.parse(text)).toEqual({ input_tokens: 4, estimated: true })
  })
})
