import { describe, expect, it } from 'vitest'
import { bodyOf, call, fixtureGateway, jsonReply } from '../../../../test/fixtures/llm.ts'
import type { ModelConfig } from '../config/config.ts'

const messages = [{ role: 'user', content: [{ text: 'hi' }] }]
const bedrock = { provider: 'bedrock', params: { awsRegion: 'eu-central-1' }, auth: { key: 'k' } } as const

async function sentFor(model: Partial<ModelConfig>, body: object, action = 'converse') {
  const gateway = fixtureGateway({ models: [{ name: '*', provider: 'anthropic', ...model }] }, () =>
    jsonReply({}),
  )
  await call(gateway, { path: `/model/m/${action}`, body })
  const [sent] = gateway.sent
  return sent && bodyOf(sent)
}

const common = {
  overrides: { max_tokens: 5, temperature: 0.1 },
  defaults: { top_p: 0.2, stop: 'end', max_completion_tokens: 7 },
}
const inferenceConfig = { maxTokens: 9, topP: 0.9 }

describe('configured fields of Converse', () => {
  it('are members of inferenceConfig, if all APIs have them', async () => {
    expect(await sentFor({ ...bedrock, ...common }, { messages, inferenceConfig })).toEqual({
      messages,
      inferenceConfig: { maxTokens: 5, topP: 0.9, temperature: 0.1, stopSequences: ['end'] },
    })
    expect(await sentFor({ ...bedrock, defaults: { max_tokens: 5 } }, { messages })).toEqual({
      messages,
      inferenceConfig: { maxTokens: 5 },
    })
  })

  it('are otherwise at the top, without model and stream', async () => {
    const overrides = { model: 'x', stream: true, performanceConfig: { latency: 'optimized' } }
    expect(await sentFor({ ...bedrock, overrides }, { messages, inferenceConfig })).toEqual({
      messages,
      inferenceConfig,
      performanceConfig: { latency: 'optimized' },
    })
  })

  it('remove a setting by null, and extend a configured inferenceConfig', async () => {
    const overrides = { top_p: null, inferenceConfig: { maxTokens: 3, topP: 0.3 } }
    expect(await sentFor({ ...bedrock, overrides }, { messages, inferenceConfig })).toEqual({
      messages,
      inferenceConfig: { maxTokens: 3 },
    })
  })

  it('are translated, or fields of the provider', async () => {
    const fields = { ...common, overrides: { ...common.overrides, metadata: { user_id: 'u' } } }
    expect(await sentFor(fields, { messages, inferenceConfig })).toMatchObject({
      ...{ max_tokens: 5, temperature: 0.1, top_p: 0.9, stop_sequences: ['end'], metadata: { user_id: 'u' } },
    })
    expect(await sentFor({ provider: 'groq', ...fields }, { messages })).toMatchObject({
      ...{ max_tokens: 5, temperature: 0.1, top_p: 0.2, stop: ['end'], metadata: { user_id: 'u' } },
    })
  })

  it('are no fields of a token count', async () => {
    const body = { input: { converse: { messages } } }
    const claude = { ...bedrock, ...common, params: { ...bedrock.params, model: 'anthropic.claude-x' } }
    expect(await sentFor(claude, body, 'count-tokens')).toEqual(body)
  })
})

describe('configured limits of models of the Responses API', () => {
  const model = { name: '*', provider: 'openai', params: { model: 'gpt-5-pro' } } as const
  const sentBy = async (fields: Partial<ModelConfig>, path: string, body: object) => {
    const gateway = fixtureGateway({ models: [{ ...model, ...fields }] }, () => jsonReply({}))
    await call(gateway, { path, body })
    const [sent] = gateway.sent
    return sent && bodyOf(sent)
  }
  const clients: [path: string, body: object][] = [
    ['/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }],
    ['/v1/messages', { model: 'm', max_tokens: 90, messages: [{ role: 'user', content: 'Hi' }] }],
    ['/v1beta/models/m:generateContent', { contents: [{ parts: [{ text: 'Hi' }] }] }],
    ['/model/m/converse', { messages }],
  ]

  it.each(clients)('apply to clients of %s', async (path, body) => {
    expect(await sentBy({ overrides: { max_tokens: 50 } }, path, body)).toMatchObject({
      max_output_tokens: 50,
    })
  })

  it('are those of the client if they are defaults', async () => {
    const path = '/v1beta/models/m:generateContent'
    const defaults = { max_completion_tokens: 50 }
    const generationConfig = { maxOutputTokens: 70 }
    const contents = [{ parts: [{ text: 'Hi' }] }]
    expect(await sentBy({ defaults }, path, { contents })).toMatchObject({ max_output_tokens: 50 })
    expect(await sentBy({ defaults }, path, { contents, generationConfig })).toMatchObject({
      max_output_tokens: 70,
    })
  })
})
