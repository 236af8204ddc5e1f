import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { chat, llmConfig } from '../support/llm-config.ts'
import { metricValue } from '../support/metrics.ts'
import { type MockAnthropic, mockAnthropic } from '../support/mock-anthropic.ts'
import { type MockOpenAi, mockOpenAi } from '../support/mock-openai.ts'

let gateway: Gateway
let openai: MockOpenAi
let anthropic: MockAnthropic

beforeAll(async () => {
  openai = await mockOpenAi({ lifetime: 'file' })
  anthropic = await mockAnthropic({ lifetime: 'file' })
  gateway = await startGateway(llmConfig({ openai, anthropic }), { lifetime: 'file' })
})

const messages = { path: '/v1/messages' }
const openAiTokens = { inputTokens: 21, outputTokens: 9, totalTokens: 30, cachedInputTokens: 5 }
const anthropicTokens = { inputTokens: 22, outputTokens: 11, totalTokens: 33, cachedInputTokens: 6 }

const calls = [
  { title: 'chat completions', body: { model: 'gpt-test' }, init: {}, tokens: openAiTokens },
  {
    title: 'streamed chat completions',
    body: { model: 'gpt-test', stream: true },
    init: {},
    tokens: openAiTokens,
  },
  {
    title: 'streamed chat completions without usage for the client',
    body: { model: 'gpt-test', stream: true, stream_options: { include_usage: false } },
    init: {},
    tokens: openAiTokens,
  },
  {
    title: 'chat completions of Anthropic',
    body: { model: 'claude-test' },
    init: {},
    tokens: anthropicTokens,
  },
  {
    title: 'streamed chat completions of Anthropic',
    body: { model: 'claude-test', stream: true },
    init: {},
    tokens: anthropicTokens,
  },
  {
    title: 'messages',
    body: { model: 'claude-test', max_tokens: 9 },
    init: messages,
    tokens: anthropicTokens,
  },
  {
    title: 'streamed messages',
    body: { model: 'claude-test', max_tokens: 9, stream: true },
    init: messages,
    tokens: anthropicTokens,
  },
  {
    title: 'messages of OpenAI',
    body: { model: 'gpt-test', max_tokens: 9 },
    init: messages,
    tokens: openAiTokens,
  },
  {
    title: 'streamed messages of OpenAI',
    body: { model: 'gpt-test', max_tokens: 9, stream: true },
    init: messages,
    tokens: openAiTokens,
  },
  {
    title: 'responses',
    body: { model: 'gpt-test', input: 'hi' },
    init: { path: '/v1/responses' },
    tokens: openAiTokens,
  },
  {
    title: 'streamed responses',
    body: { model: 'gpt-test', input: 'hi', stream: true },
    init: { path: '/v1/responses' },
    tokens: openAiTokens,
  },
  {
    title: 'legacy completions',
    body: { model: 'gpt-test', prompt: 'hi' },
    init: { path: '/v1/completions' },
    tokens: openAiTokens,
  },
  {
    title: 'streamed legacy completions',
    body: { model: 'gpt-test', prompt: 'hi', stream: true },
    init: { path: '/v1/completions' },
    tokens: openAiTokens,
  },
  {
    title: 'embeddings',
    body: { model: 'text-embedding-3-small', input: 'hi' },
    init: { path: '/v1/embeddings' },
    tokens: { inputTokens: 7, outputTokens: 0, totalTokens: 7 },
  },
]

describe('usage reaches log and metrics of', () => {
  it.each(calls)('$title', async ({ body, init, tokens }) => {
    const linesBefore = gateway.requests().length
    const before = await tokenSums()
    const response = await chat(gateway, body, init)
    expect(response.status).toBe(200)
    await response.text()
    const line = (await gateway.logged(linesBefore + 1)).at(-1)
    expect(line).toMatchObject(tokens)
    expect(line?.['tokensEstimated']).toBeUndefined()

    const after = await tokenSums()
    expect(after.input - before.input).toBe(tokens.inputTokens)
    expect(after.output - before.output).toBe(tokens.outputTokens)
  })
})

async function tokenSums(): Promise<{ input: number; output: number }> {
  const metrics = await gateway.metrics()
  const sum = (type: string) =>
    metricValue(metrics, 'gen_ai_client_token_usage_sum', {
      gen_ai_token_type: type,
      key_group: 'platform',
    }) ?? 0
  return { input: sum('input'), output: sum('output') }
}
