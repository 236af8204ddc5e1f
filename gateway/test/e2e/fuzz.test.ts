import fc from 'fast-check'
import { beforeAll, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { chat, jsonHeaders, llmConfig } from '../support/llm-config.ts'
import { mockAnthropic } from '../support/mock-anthropic.ts'
import { mockOpenAi } from '../support/mock-openai.ts'
import { rawExchange } from '../support/raw-http.ts'

let gateway: Gateway

beforeAll(async () => {
  const openai = await mockOpenAi({ lifetime: 'file' })
  const anthropic = await mockAnthropic({ lifetime: 'file' })
  gateway = await startGateway(llmConfig({ openai, anthropic }), { lifetime: 'file' })
})

const roles = fc.constantFrom('system', 'developer', 'user', 'assistant', 'tool', 'function', '', '__proto__')
const partTypes = fc.constantFrom(
  'text',
  'image_url',
  'image',
  'tool_use',
  'tool_result',
  'thinking',
  'refusal',
  'file',
  'x',
)

/** Almost right: the fields of both APIs with values that are right, wrong or strange. */
const part = fc.dictionary(
  fc.constantFrom(
    'type',
    'text',
    'image_url',
    'source',
    'id',
    'name',
    'input',
    'content',
    'tool_use_id',
    'cache_control',
  ),
  fc.oneof(partTypes, fc.jsonValue({ maxDepth: 2 }), fc.constant({ url: 'data:image/png;base64,AAAA' })),
)
const toolCall = fc.dictionary(
  fc.constantFrom('id', 'type', 'function', 'index'),
  fc.oneof(
    fc.constant('function'),
    fc.jsonValue({ maxDepth: 2 }),
    fc.constant({ name: 'f', arguments: '{"a":' }),
  ),
)
const message = fc.dictionary(
  fc.constantFrom('role', 'content', 'tool_calls', 'tool_call_id', 'name', 'refusal', 'function_call'),
  fc.oneof(
    roles,
    fc.string(),
    fc.array(part, { maxLength: 3 }),
    fc.array(toolCall, { maxLength: 3 }),
    fc.jsonValue({ maxDepth: 2 }),
  ),
)
const fields = fc.dictionary(
  fc.constantFrom(
    ...[
      'max_tokens',
      'max_completion_tokens',
      'stop',
      'stop_sequences',
      'temperature',
      'tools',
      'tool_choice',
      'system',
      'n',
    ],
    ...[
      'stream_options',
      'metadata',
      'thinking',
      'response_format',
      'parallel_tool_calls',
      'user',
      'reasoning_effort',
      'unknown',
    ],
  ),
  fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.array(part, { maxLength: 2 }),
    fc.constantFrom('auto', 'none', 'required', 5, true),
  ),
)

const request = fc.record({
  model: fc.constantFrom('echo', 'gpt-test', 'claude-test'),
  messages: fc.oneof(fc.array(message, { maxLength: 4 }), fc.jsonValue({ maxDepth: 2 })),
  stream: fc.oneof(fc.boolean(), fc.constantFrom('true', 1, null)),
  fields,
  path: fc.constantFrom(
    '/v1/chat/completions',
    '/v1/messages',
    '/v1/messages/count_tokens',
    '/v1/completions',
    '/v1/responses',
  ),
})

it('any JSON of a client is answered without an internal error', async () => {
  await fc.assert(
    fc.asyncProperty(request, async ({ model, messages, stream, fields: more, path }) => {
      const response = await chat(gateway, { max_tokens: 5, ...more, model, messages, stream }, { path })
      const text = await response.text()
      expect([response.status, text]).toEqual([
        expect.toSatisfy((status) => status < 500),
        expect.any(String),
      ])
      if (response.status !== 200) expect(() => JSON.parse(text)).not.toThrow()
    }),
    { numRuns: 400 },
  )
}, 60_000)

it('any bytes sent as JSON are answered with one of the refusals', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: jsonHeaders,
        body: new Uint8Array(bytes),
      })
      await response.text()
      expect(response.status).toBe(400)
    }),
    { numRuns: 200 },
  )
}, 60_000)

const pieces = fc.constantFrom(
  ...[
    'POST',
    'GET',
    ' ',
    '/v1/chat/completions',
    '/v1/models',
    ' HTTP/1.1',
    ' HTTP/1.0',
    '\r\n',
    '\r\n\r\n',
    '\n',
    '\r',
    '\0',
  ],
  ...[
    'host: x',
    'content-length: 5',
    'content-length: 0',
    'transfer-encoding: chunked',
    '0',
    '5\r\nhello\r\n',
    ':',
    '\t',
    ';x=1',
  ],
  ...[
    'authorization: Bearer tg-canary-alice-4c81',
    'content-type: application/json',
    'expect: 100-continue',
    'upgrade: h2c',
  ],
  ...[
    'connection: upgrade',
    'connection: close',
    '{"model":"echo"}',
    '\xff\xfe',
    '%',
    '%2e%2e',
    '?',
    '#',
    '../',
    '\u0080',
  ],
)

it('any mix of HTTP fragments is answered without an internal error, and the gateway stays up', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(pieces, { minLength: 1, maxLength: 25 }), async (parts) => {
      const received = await rawExchange(gateway.port, `${parts.join('')}\r\n\r\n`, {
        silenceMs: 15,
        patienceMs: 60,
      })
      expect(received).not.toMatch(/HTTP\/1\.1 5(?!0[15])/)
    }),
    { numRuns: 300 },
  )
  expect((await chat(gateway)).status).toBe(200)
}, 120_000)
