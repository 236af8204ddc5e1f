import { expect, it } from 'vitest'
import { isTooLong } from './context-error.ts'

const bodyOf = (value: unknown) => Buffer.from(JSON.stringify(value))

it.each([
  ['OpenAI', { error: { code: 'context_length_exceeded', message: '' } }],
  [
    'Anthropic',
    {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 9 tokens > 8 maximum' },
    },
  ],
  [
    'Anthropic, by size',
    { type: 'error', error: { type: 'request_too_large', message: 'Request exceeds the maximum size' } },
  ],
  [
    'vLLM',
    {
      object: 'error',
      message: "This model's maximum context length is 8 tokens. However, you requested 9 tokens",
    },
  ],
  [
    'llama.cpp',
    {
      error: {
        code: 400,
        type: 'exceed_context_size_error',
        message: 'the request exceeds the available context size',
      },
    },
  ],
  ['Bedrock', { message: 'Input is too long for requested model.' }],
  [
    'Gemini',
    {
      error: {
        code: 400,
        message: 'The input token count (9) exceeds the maximum number of tokens allowed (8).',
      },
    },
  ],
  [
    'Mistral',
    {
      message:
        'Prompt contains 9 tokens and 0 draft tokens, too large for model with 8 maximum context length',
    },
  ],
])('recognises a prompt that is too long for %s', (_, body) => {
  expect(isTooLong(bodyOf(body))).toBe(true)
})

it.each([
  ['another mistake', bodyOf({ error: { code: 'invalid_value', message: 'max_tokens must be positive' } })],
  [
    'another limit',
    bodyOf({ error: { message: "string too long: 'user' must have at most 64 characters" } }),
  ],
  ['a text', Buffer.from('prompt is too long')],
  ['a long body', bodyOf({ error: { code: 'context_length_exceeded', message: 'x'.repeat(20_000) } })],
])('does not recognise %s', (_, body) => {
  expect(isTooLong(body)).toBe(false)
})
