import { describe, expect, it } from 'vitest'
import { hasErrorShape, readUpstreamError, toErrorBody } from './upstream-error.ts'

const openAi = (status: number, body: object) =>
  toErrorBody('openai', readUpstreamError(status, JSON.stringify(body)))

describe('an error for clients of OpenAI', () => {
  it.each([
    [
      'a limit of Anthropic',
      429,
      { error: { type: 'rate_limit_error', message: 'm' } },
      'rate_limit_exceeded',
    ],
    ['a limit of Mistral', 429, { message: 'm', type: 'rate_limited', code: '1300' }, 'rate_limit_exceeded'],
    ['a spent balance', 429, { error: { message: 'm', code: 'insufficient_quota' } }, 'insufficient_quota'],
    ['a model of Google', 404, { error: { message: 'm', status: 'NOT_FOUND' } }, 'model_not_found'],
    ['a model of Cohere', 404, { message: "model 'x' not found" }, 'model_not_found'],
    ['a model of Mistral', 400, { message: 'm', type: 'invalid_model', code: '1500' }, 'model_not_found'],
    ['another 404', 404, { message: 'no such page' }, 'upstream_error'],
    [
      'a long prompt of Gemini',
      400,
      { error: { message: 'The input token count (9) exceeds the maximum', status: 'INVALID_ARGUMENT' } },
      'context_length_exceeded',
    ],
    ['a long prompt of Cohere', 400, { message: 'too many tokens: at most 8' }, 'context_length_exceeded'],
    [
      'another invalid request',
      400,
      { error: { message: 'm', status: 'FAILED_PRECONDITION' } },
      'FAILED_PRECONDITION',
    ],
  ])('has the code of %s', (_, status, body, code) => {
    expect(openAi(status, body)).toMatchObject({ error: { code, param: null } })
  })

  it('names the credential to check', () => {
    expect(openAi(401, { error: { message: 'invalid x-api-key.' } })).toMatchObject({
      error: { message: 'invalid x-api-key: check the credential for the provider' },
    })
  })
})

it('clients of Anthropic recognise a prompt that is too long', () => {
  const shown = (message: string) => toErrorBody('anthropic', { status: 400, code: 'x', message })['error']
  expect(shown("This model's maximum context length is 8 tokens")).toMatchObject({
    message: "prompt is too long: This model's maximum context length is 8 tokens",
  })
  expect(shown('prompt is too long: 9 tokens > 8 maximum')).toMatchObject({
    message: 'prompt is too long: 9 tokens > 8 maximum',
  })
})

it.each([
  ['openai', { error: { message: 'm', type: 't' } }, true],
  ['openai', { error: 'Unauthorized' }, false],
  ['openai', { message: 'm', type: 't' }, false],
  ['anthropic', { type: 'error', error: { type: 't', message: 'm' } }, true],
  ['anthropic', { error: { code: 404, message: 'm', status: 'NOT_FOUND' } }, false],
  ['google', { error: { code: 404, message: 'm', status: 'NOT_FOUND' } }, true],
  ['google', { error: { type: 't', message: 'm' } }, false],
  ['cohere', { message: 'm' }, true],
  ['cohere', { detail: 'm' }, false],
] as const)('the shape of %s in %j is %s', (format, body, expected) => {
  expect(hasErrorShape(format, body)).toBe(expected)
})
