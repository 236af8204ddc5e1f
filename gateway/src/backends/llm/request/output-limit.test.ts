import { describe, expect, it } from 'vitest'
import {
  call,
  chatBody,
  fixtureGateway,
  jsonReply,
  open,
  streamReply,
} from '../../../../test/fixtures/llm.ts'
import { createCancellation } from '../../../lib/cancellation.ts'
import { outputLimit } from './output-limit.ts'

const none = { overrides: new Map<string, string>(), defaults: new Map<string, string>() }

describe('the output limit of a call', () => {
  it.each([
    ['chat', { max_tokens: 50 }, 50],
    ['chat', { max_tokens: 50, max_completion_tokens: 70 }, 70],
    ['chat', { max_tokens: 50, max_completion_tokens: 1 }, 50],
    ['chat', { max_tokens: 50, n: 3 }, 150],
    ['chat', {}, 4096],
    ['chat', { max_tokens: 'x' }, 4096],
    ['chat', { max_tokens: 1e12 }, 1_000_000],
    ['completions', { max_tokens: 10, n: 2, best_of: 5 }, 50],
    ['messages', { max_tokens: 12 }, 12],
    ['responses', { max_output_tokens: 1004 }, 1004],
    ['embeddings', { max_tokens: 50 }, 0],
    ['count_tokens', { max_tokens: 50 }, 0],
  ] as const)('of %s %j is %d', (endpoint, request, limit) => {
    expect(outputLimit(endpoint, request, none)).toBe(limit)
  })

  it('is the configured limit if set', () => {
    const overrides = new Map([['max_tokens', '5']])
    expect(outputLimit('chat', { max_tokens: 50 }, { ...none, overrides })).toBe(5)
    expect(outputLimit('chat', { max_tokens: 50 }, { ...none, defaults: overrides })).toBe(50)
    expect(outputLimit('chat', {}, { ...none, defaults: overrides })).toBe(5)
  })

  it('of Bedrock is the largest of request and overrides, else the default', () => {
    const fields = new Map([['max_tokens', '60']])
    const nested = new Map([['inferenceConfig', '{"maxTokens":70}']])
    const request = { inferenceConfig: { maxTokens: 50 } }
    expect(outputLimit('converse', request, { ...none, overrides: fields })).toBe(60)
    expect(outputLimit('converse', request, { ...none, overrides: nested })).toBe(70)
    expect(outputLimit('converse', request, { ...none, defaults: fields })).toBe(50)
    expect(outputLimit('converse', {}, { ...none, defaults: fields })).toBe(60)
    expect(outputLimit('converse', {}, none)).toBe(4096)
  })
})

const config = { models: [{ name: '*', provider: 'openai' }], passthrough: true }
const responses = { path: '/v1/responses' }
const background = { model: 'o4', input: 'four words of text', background: true, max_output_tokens: 1000 }

function responseOf(status: string, usage: object | null): object {
  return { id: 'resp_1', object: 'response', status, output: [], usage }
}

describe('a background response', () => {
  it.each([
    ['without usage', responseOf('queued', null)],
    ['with a first usage', responseOf('in_progress', { input_tokens: 6, output_tokens: 0 })],
  ])('is charged its output limit, %s', async (_, answer) => {
    const gateway = fixtureGateway(config, () => jsonReply(answer))
    const { exchange } = await call(gateway, { ...responses, body: background })
    expect(exchange.facts.usage).toMatchObject({ outputTokens: 1000, estimated: true })
  })

  it('is charged its usage if it completes immediately', async () => {
    const usage = { input_tokens: 6, output_tokens: 4 }
    const gateway = fixtureGateway(config, () => jsonReply(responseOf('completed', usage)))
    const { exchange } = await call(gateway, { ...responses, body: background })
    expect(exchange.facts.usage).toMatchObject({ totalTokens: 10, estimated: false })
  })

  it('is charged its output limit if its stream ends early', async () => {
    const created = {
      type: 'response.created',
      response: responseOf('in_progress', { input_tokens: 6, output_tokens: 0 }),
    }
    const gateway = fixtureGateway(config, () =>
      streamReply([`event: response.created\ndata: ${JSON.stringify(created)}\n\n`]),
    )
    const { exchange } = await call(gateway, { ...responses, body: { ...background, stream: true } })
    expect(exchange.facts.usage).toMatchObject({ inputTokens: 6, outputTokens: 1000, estimated: true })
  })

  it.each([
    [config, { background: 1 }, 'background'],
    [config, { max_output_tokens: undefined }, 'max_output_tokens'],
    [config, { max_output_tokens: -1 }, 'max_output_tokens'],
  ])('is rejected if it cannot be charged: %j %j', async (llm, change, param) => {
    const gateway = fixtureGateway(llm, () => expect.unreachable())
    const { status, text } = await call(gateway, { ...responses, body: { ...background, ...change } })
    expect(status).toBe(400)
    expect(JSON.parse(text)).toMatchObject({ error: { param } })
  })

  it('accepts background: false', async () => {
    const gateway = fixtureGateway(config, () => jsonReply(responseOf('completed', null)))
    const body = { ...background, background: false, max_output_tokens: undefined }
    expect((await call(gateway, { ...responses, body })).status).toBe(200)
  })
})

describe('a response after a disconnect', () => {
  it.each([
    [{ ...chatBody, max_tokens: 50 }, 50],
    [{ ...chatBody, max_tokens: 50, stream: true }, 0],
    [chatBody, 4096],
  ])('is charged its output limit unless it streams: %j', async (body, outputTokens) => {
    const cancellation = createCancellation()
    const gateway = fixtureGateway(config, () => {
      cancellation.cancel()
      throw new Error('gone')
    })
    const { exchange } = await open(gateway, { body, cancellation })
    gateway.llm.llmRequest.onEnd?.(exchange)
    expect(exchange.facts.usage).toMatchObject({ outputTokens, estimated: true })
    expect(exchange.facts.usage?.inputTokens).toBeGreaterThan(0)
  })
})
