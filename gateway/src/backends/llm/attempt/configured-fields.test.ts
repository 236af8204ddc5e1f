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

  it('are otherwise at the top, without the form of the response', async () => {
    const overrides = { stream: true, performanceConfig: { latency: 'optimized' } }
    expect(await sentFor({ ...bedrock, overrides }, { messages, inferenceConfig })).toEqual({
      messages,
      inferenceConfig,
      performanceConfig: { latency: 'optimized' },
    })
  })

  it('are in additionalModelRequestFields, if only the model reads them', async () => {
    const fields = { overrides: { top_k: 4 }, defaults: { thinking: { type: 'enabled' }, seed: 1 } }
    const additionalModelRequestFields = { top_k: 9, seed: 2, other: true }
    expect(await sentFor({ ...bedrock, ...fields }, { messages, additionalModelRequestFields })).toEqual({
      messages,
      additionalModelRequestFields: { top_k: 4, seed: 2, other: true, thinking: { type: 'enabled' } },
    })
    const defaults = { additionalModelRequestFields: { other: true }, top_k: 5 }
    expect(await sentFor({ ...bedrock, defaults }, { messages })).toEqual({
      messages,
      additionalModelRequestFields: { other: true, top_k: 5 },
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

describe('a configured model', () => {
  const overrides = { model: 'other', stream: true }

  it.each([
    ['bedrock', bedrock, '/model/m/converse', { messages }, '/model/other/converse'],
    [
      'gemini',
      { provider: 'gemini', params: { apiKey: 'k' } } as const,
      '/v1beta/models/m:generateContent',
      { contents: [{ parts: [{ text: 'hi' }] }] },
      '/v1beta/models/other:generateContent',
    ],
  ])('is in the path of a call of %s', async (_, provider, path, body, sentPath) => {
    const model = { name: '*', ...provider, overrides, defaults: { model: 'default' } }
    const gateway = fixtureGateway({ models: [model] }, () => jsonReply({}))
    await call(gateway, { path, body })
    const [sent] = gateway.sent
    expect(sent?.path.split('?')[0]).toBe(sentPath)
    expect(sent && bodyOf(sent)).toEqual(body)
  })

  it('is in other bodies', async () => {
    const gateway = fixtureGateway({ models: [{ name: '*', provider: 'groq', overrides }] }, () =>
      jsonReply({}),
    )
    await call(gateway, { path: '/v1/chat/completions', body: { model: 'm', messages: [] } })
    expect(gateway.sent[0] && bodyOf(gateway.sent[0])).toMatchObject({ model: 'other', stream: true })
  })
})

describe('betas of a Converse request', () => {
  const anthropic_beta = ['context-1m-2025-08-07', 'new-1']
  const body = { messages, additionalModelRequestFields: { anthropic_beta } }
  const path = '/model/m/converse'

  async function sentTo(model: Partial<ModelConfig>) {
    const gateway = fixtureGateway({ models: [{ name: '*', provider: 'anthropic', ...model }] }, () =>
      jsonReply({}),
    )
    await call(gateway, { path, body })
    return gateway.sent[0]
  }

  it('are in the header for Anthropic, and in the body for Bedrock', async () => {
    const anthropic = await sentTo({ params: { apiKey: 'k' } })
    expect(anthropic?.headers['anthropic-beta']).toBe(anthropic_beta.join(','))
    expect(anthropic && bodyOf(anthropic)).not.toHaveProperty('anthropic_beta')
    const native = await sentTo({ ...bedrock, params: { ...bedrock.params, model: 'anthropic.claude-x' } })
    expect(native && bodyOf(native)).toEqual(body)
  })

  it('must be names', async () => {
    const gateway = fixtureGateway({ models: [{ name: '*', provider: 'anthropic' }] }, () => jsonReply({}))
    await call(gateway, { path, body: { messages, additionalModelRequestFields: { anthropic_beta: 'x y' } } })
    expect(gateway.sent).toEqual([])
  })
})

describe('betas of a header', () => {
  const chat = { messages: [{ role: 'user', content: 'hi' }], model: 'm' }
  const headers = { 'anthropic-beta': 'context-1m-2025-08-07,unknown-1' }
  const claude = { ...bedrock, params: { ...bedrock.params, model: 'anthropic.claude-x' } }
  const guarded = { ...claude, params: { ...claude.params, awsGuardrailIdentifier: 'g' } }
  const nova = { ...bedrock, params: { ...bedrock.params, model: 'amazon.nova-pro-v1:0' } }

  it.each([
    ['Claude', claude, { anthropic_beta: ['context-1m-2025-08-07'] }],
    [
      'Claude with a guardrail',
      guarded,
      { additionalModelRequestFields: { anthropic_beta: ['context-1m-2025-08-07'] } },
    ],
    ['another model', nova, {}],
  ])('are in the translated body for %s', async (_, model, expected) => {
    const gateway = fixtureGateway({ models: [{ name: '*', ...model }] }, () => jsonReply({}))
    await call(gateway, { path: '/v1/chat/completions', body: chat, headers })
    const [sent] = gateway.sent
    const fields = Object.entries(Object(sent && bodyOf(sent)))
    const found = fields.filter(([name]) => /^(?:anthropic_beta|additionalModel)/.test(name))
    expect(Object.fromEntries(found)).toEqual(expected)
    expect(sent?.headers['anthropic-beta']).toBeUndefined()
  })
})
