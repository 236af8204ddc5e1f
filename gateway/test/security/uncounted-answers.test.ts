import { beforeAll, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { chat, llmConfig } from '../support/llm-config.ts'
import { metricValue } from '../support/metrics.ts'
import { type MockOpenAi, mockOpenAi } from '../support/mock-openai.ts'
import { jsonAnswer } from '../support/mock-server.ts'
import { until } from '../support/wait.ts'

let gateway: Gateway
let openai: MockOpenAi

beforeAll(async () => {
  openai = await mockOpenAi({ lifetime: 'file' })
  const localRateLimit = [{ tokens: 1_000, unit: 'Hours', key: 'apiKey.id + request.headers["x-case"]' }]
  gateway = await startGateway(llmConfig({ openai }, { passthrough: true, policies: { localRateLimit } }), {
    lifetime: 'file',
  })
})

const background = { model: 'gpt-test', input: 'hi', background: true, max_output_tokens: 1_000 }
const response = { id: 'resp_1', object: 'response', status: 'queued', output: [], usage: null }

it('a response in the background uses up the budget at once', async () => {
  const init = { path: '/v1/responses', headers: { 'x-case': 'background' } }
  openai.next(jsonAnswer(200, response))
  expect((await chat(gateway, { ...background, messages: undefined }, init)).status).toBe(200)
  expect((await chat(gateway, { ...background, messages: undefined }, init)).status).toBe(429)
})

it('an unstreamed answer that the client does not wait for uses up the budget', async () => {
  const headers = { 'x-case': 'left' }
  const body = { model: 'gpt-test', max_tokens: 1_000 }
  const outputTokens = async () =>
    metricValue(await gateway.metrics(), 'gen_ai_client_token_usage_sum', { gen_ai_token_type: 'output' }) ??
    0
  const before = await outputTokens()
  let isAsked = false
  openai.next(() => {
    isAsked = true
  })
  const leaving = new AbortController()
  const left = chat(gateway, body, { headers, signal: leaving.signal })
  await until('the upstream is asked', () => isAsked)
  leaving.abort()
  await expect(left).rejects.toThrow()
  await until('the tokens are charged', async () => (await outputTokens()) >= before + 1_000)
})
