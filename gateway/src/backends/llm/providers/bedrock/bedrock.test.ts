import { describe, expect, it } from 'vitest'
import { bodyOf, call, fixtureGateway, jsonReply } from '../../../../../test/fixtures/llm.ts'
import { checkLlm } from '../../config/check.ts'
import type { LlmConfig, LlmParams } from '../../config/config.ts'

const messages = [{ role: 'user', content: 'x' }]
const keys = { accessKeyId: 'AKID', secretAccessKey: 'hush' }

type Sent = { path?: string; query?: string; body?: object; headers?: Record<string, string> }

async function sentFor(model: string, { body, ...request }: Sent = {}, params: LlmParams = {}) {
  const config: LlmConfig = {
    models: [
      { name: '*', provider: 'bedrock', auth: { aws: keys }, params: { awsRegion: 'eu-west-1', ...params } },
    ],
  }
  const gateway = fixtureGateway(config, () => jsonReply({}))
  await call(gateway, { ...request, body: { model, messages, max_tokens: 5, ...body } })
  const [sent] = gateway.sent
  return { sent, url: sent && sent.origin + sent.path, gateway }
}

function issuesOf(params: LlmParams): string[] {
  const reported: string[] = []
  checkLlm({ models: [{ name: '*', provider: 'bedrock', params }] }, (path, message) =>
    reported.push(`${path.slice(2).join('.')}: ${message}`),
  )
  return reported
}

const host = 'https://bedrock-runtime.eu-west-1.amazonaws.com/model'
const profile = 'arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-v1:0'
const application = 'arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123'

describe('paths', () => {
  it.each([
    ['/v1/chat/completions', 'amazon.nova-lite-v1:0', {}, 'amazon.nova-lite-v1%3A0/converse'],
    ['/v1/chat/completions', 'us.meta.llama4', { stream: true }, 'us.meta.llama4/converse-stream'],
    ['/v1/chat/completions', 'eu.anthropic.claude-x', {}, 'eu.anthropic.claude-x/invoke'],
    [
      '/v1/messages',
      'anthropic.claude-x',
      { stream: true },
      'anthropic.claude-x/invoke-with-response-stream',
    ],
    ['/v1/messages', profile, {}, `${encodeURIComponent(profile)}/invoke`],
    ['/v1/messages', application, {}, `${encodeURIComponent(application)}/converse`],
    ['/v1/messages', 'a/../b', {}, 'a%2F..%2Fb/converse'],
    ['/v1/messages/count_tokens', 'anthropic.claude-x', {}, 'anthropic.claude-x/count-tokens'],
  ])('of %s with model %s', async (path, model, body, expected) => {
    expect((await sentFor(model, { path, body })).url).toBe(`${host}/${expected}`)
  })

  it('of embeddings', async () => {
    const path = '/v1/embeddings'
    const config: LlmConfig = {
      models: [{ name: '*', provider: 'bedrock', auth: { aws: keys }, params: { awsRegion: 'eu-west-1' } }],
    }
    const gateway = fixtureGateway(config, () => jsonReply({ embeddings: { float: [[1]] } }))
    const request = { model: 'cohere.embed-v4:0', input: ['a'], dimensions: 256, encoding_format: 'base64' }
    const { text } = await call(gateway, { path, body: request })
    expect(gateway.sent[0]?.path).toBe('/model/cohere.embed-v4%3A0/invoke')
    expect(bodyOf(gateway.sent[0])).toEqual({
      texts: ['a'],
      input_type: 'search_query',
      output_dimension: 256,
    })
    expect(JSON.parse(text).data[0].embedding).toBe(
      Buffer.from(new Float32Array([1]).buffer).toString('base64'),
    )
  })

  it('of embeddings of Nova, with the count of its header', async () => {
    const config: LlmConfig = {
      models: [{ name: '*', provider: 'bedrock', auth: { aws: keys }, params: { awsRegion: 'us-east-1' } }],
    }
    const gateway = fixtureGateway(config, () =>
      jsonReply({ embeddings: [{ embeddingType: 'TEXT', embedding: [1, 2] }] }, 200, {
        'x-amzn-bedrock-input-token-count': '6',
      }),
    )
    const request = { model: 'amazon.nova-2-multimodal-embeddings-v1:0', input: 'a', dimensions: 256 }
    const { text } = await call(gateway, { path: '/v1/embeddings', body: request })
    expect(bodyOf(gateway.sent[0])).toEqual({
      taskType: 'SINGLE_EMBEDDING',
      singleEmbeddingParams: {
        embeddingPurpose: 'GENERIC_INDEX',
        embeddingDimension: 256,
        text: { truncationMode: 'END', value: 'a' },
      },
    })
    expect(JSON.parse(text)).toMatchObject({ data: [{ embedding: [1, 2] }], usage: { prompt_tokens: 6 } })
    const refusal = await call(gateway, { path: '/v1/embeddings', body: { ...request, input: ['a', 'b'] } })
    expect(refusal.text).toContain('one text per request')
  })

  it('in China have another domain', async () => {
    const { url } = await sentFor('m', {}, { awsRegion: 'cn-north-1' })
    expect(url).toBe('https://bedrock-runtime.cn-north-1.amazonaws.com.cn/model/m/converse')
  })
})

describe('requests', () => {
  it('of Claude have the version of the service, without its unknown fields', async () => {
    const body = { stream: true, service_tier: 'auto', thinking: { type: 'enabled' } }
    const { sent } = await sentFor('anthropic.claude-x', { path: '/v1/messages', body })
    expect(bodyOf(sent)).toEqual({
      messages,
      max_tokens: 5,
      thinking: { type: 'enabled' },
      anthropic_version: 'bedrock-2023-05-31',
    })
  })

  it('have no query and no settings of AWS of the client', async () => {
    const headers = {
      'x-amzn-bedrock-guardrailidentifier': 'other',
      'x-amz-security-token': 'stolen',
      'x-team': 'a',
    }
    const { sent } = await sentFor('anthropic.claude-x', {
      path: '/v1/messages',
      query: '?beta=true',
      headers,
    })
    expect(sent?.path).not.toContain('?')
    expect(sent?.headers).toMatchObject({ 'x-team': 'a' })
    expect(Object.keys(sent?.headers ?? {}).filter((name) => name.startsWith('x-amz'))).toEqual([
      'x-amz-date',
    ])
  })

  it('have the guardrail of the configuration', async () => {
    const params = { awsGuardrailIdentifier: 'gr-1', awsGuardrailVersion: '3' }
    const body = { guardrailConfig: { guardrailIdentifier: 'other' } }
    const { sent } = await sentFor('anthropic.claude-x', { path: '/v1/messages' }, params)
    expect(sent?.path).toBe('/model/anthropic.claude-x/converse')
    expect(bodyOf(sent)).toMatchObject({
      guardrailConfig: { guardrailIdentifier: 'gr-1', guardrailVersion: '3' },
    })
    expect((await sentFor('m', { body }, params)).sent).toBeUndefined()
  })

  it('are signed for the region at other addresses, or have a key of Bedrock', async () => {
    const { sent } = await sentFor('m', {}, { baseUrl: 'http://proxy.test' })
    expect(sent?.headers['authorization']).toContain('/eu-west-1/bedrock/aws4_request')
    const config: LlmConfig = {
      models: [{ name: '*', provider: 'bedrock', params: { awsRegion: 'eu-west-1', apiKey: 'bedrock-key' } }],
    }
    const gateway = fixtureGateway(config, () => jsonReply({}))
    await call(gateway, { body: { model: 'm', messages } })
    expect(gateway.sent[0]?.headers['authorization']).toBe('Bearer bedrock-key')
  })
})

describe('settings', () => {
  it.each([
    [{}, 'params.awsRegion: must be set for provider "bedrock"'],
    [{ awsRegion: 'evil.test/' }, 'params.awsRegion: must be a region such as us-east-1'],
    [
      { awsRegion: 'us-east-1', awsGuardrailVersion: '1' },
      'params.awsGuardrailVersion: is only valid with a guardrail',
    ],
    [
      { awsRegion: 'us-east-1', awsGuardrailIdentifier: 'g', awsGuardrailVersion: 'x' },
      'params.awsGuardrailVersion: must be a number or DRAFT',
    ],
    [
      { awsRegion: 'us-east-1', vertexProject: 'x' },
      'params.vertexProject: is only valid with provider "vertex"',
    ],
  ])('%j are reported', (params, expected) => {
    expect(issuesOf(params).some((issue) => issue.startsWith(expected))).toBe(true)
  })

  it.each(['us-east-1', 'us-gov-west-1', 'ap-southeast-2', 'cn-north-1'])('accept region %s', (awsRegion) => {
    expect(issuesOf({ awsRegion })).toEqual([])
  })
})

describe('calls of Bedrock', () => {
  const params = { awsRegion: 'us-east-1', apiKey: 'k' }
  const models = [{ name: '*', provider: 'bedrock' as const, params }]

  it.each([
    ['/v1/model/titan-image/async', 404, undefined],
    ['/async-invoke', 404, undefined],
    ['/guardrail/g/version/1/apply', 404, undefined],
    ['/model/titan-image/Invoke', 404, undefined],
    ['/model/titan-image%2Finvoke', 404, undefined],
    ['/model/titan-image/invoke-with-bidirectional-stream', 404, undefined],
    ['/v1/model/titan-image/invoke', 200, '/model/titan-image/invoke'],
    ['/model/arn:aws:bedrock:r:1:x/y/converse', 200, '/model/arn%3Aaws%3Abedrock%3Ar%3A1%3Ax%2Fy/converse'],
  ])('are read, and not forwarded in other ways: %s', async (path, expected, sent) => {
    const gateway = fixtureGateway({ models, passthrough: true }, () => jsonReply({}))
    const { status } = await call(gateway, { path, body: { model: 'titan-image', inputText: 'x' } })
    expect([status, gateway.sent[0]?.path]).toEqual([expected, sent])
  })

  it('have the model of the path, which the key must allow', async () => {
    const gateway = fixtureGateway({ models }, () => jsonReply({}))
    const path = '/model/amazon.nova-pro-v1%3A0/converse-stream'
    const body = { messages: [{ role: 'user', content: [{ text: 'x' }] }], model: 'other' }
    const { exchange } = await call(gateway, { path, body, query: '?x=1' })
    expect(exchange.facts.llm).toMatchObject({
      operation: 'chat',
      api: 'converse',
      requestModel: 'amazon.nova-pro-v1:0',
      streaming: true,
    })
    expect(gateway.sent[0]?.path).toBe(path)
    expect(bodyOf(gateway.sent[0])).toEqual({ messages: body.messages })
    const refused = await call(gateway, { path, body, mayUseModel: (name) => name === 'other' })
    expect([refused.status, refused.headers['x-amzn-errortype']]).toEqual([403, 'AccessDeniedException'])
    expect(JSON.parse(refused.text)).toMatchObject({ code: 'model_not_allowed' })
  })

  it('with messages of Claude reach every provider of messages', async () => {
    const path = '/model/claude-x/invoke-with-response-stream'
    const messages = [{ role: 'user', content: 'x' }]
    const body = { anthropic_version: 'bedrock-2023-05-31', max_tokens: 5, messages }
    const config: LlmConfig = { models: [{ name: '*', provider: 'anthropic', params: { apiKey: 'k' } }] }
    const gateway = fixtureGateway(config, () => jsonReply({}))
    const { exchange } = await call(gateway, { path, body, query: '?X-Amz-Security-Token=secret' })
    expect(bodyOf(gateway.sent[0])).toEqual({ model: 'claude-x', stream: true, max_tokens: 5, messages })
    expect(gateway.sent[0]?.path).toBe('/v1/messages')
    expect(exchange.facts.llm).toMatchObject({ api: 'messages', requestModel: 'claude-x', streaming: true })
    expect(exchange.llm?.operation.api).toBe('messages')
  })

  it('have version and betas of Anthropic as the provider reads them', async () => {
    const path = '/model/anthropic.claude-x/invoke'
    const body = { anthropic_version: '2026-10-21', anthropic_beta: ['own-1'], max_tokens: 5, messages: [] }
    const bedrock = fixtureGateway({ models }, () => jsonReply({}))
    await call(bedrock, { path, body })
    expect(bodyOf(bedrock.sent[0])).toEqual({
      max_tokens: 5,
      messages: [],
      anthropic_version: '2026-10-21',
      anthropic_beta: ['own-1'],
    })
    const headers = { 'anthropic-beta': 'claude-code-20250219, context-1m-2025-08-07' }
    const plain = { model: 'anthropic.claude-x', max_tokens: 5, messages: [] }
    await call(bedrock, { path: '/v1/messages', body: plain, headers })
    expect(bodyOf(bedrock.sent[1])).toMatchObject({
      anthropic_version: 'bedrock-2023-05-31',
      anthropic_beta: ['context-1m-2025-08-07'],
    })
    expect(bedrock.sent[1]?.headers['anthropic-beta']).toBeUndefined()
    const direct = fixtureGateway(
      { models: [{ name: '*', provider: 'anthropic', params: { apiKey: 'k' } }] },
      () => jsonReply({}),
    )
    await call(direct, { path, body })
    expect(direct.sent[0]?.headers).toMatchObject({
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'own-1',
    })
    const count = '/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict'
    const counted = { anthropic_version: 'vertex-2023-10-16', model: 'claude-x', messages: [] }
    await call(direct, { path: count, body: counted })
    expect(bodyOf(direct.sent.pop())).toEqual({ model: 'claude-x', messages: [] })
    const { status } = await call(direct, { path, body: { ...body, anthropic_beta: 'x' } })
    expect([status, direct.sent.length]).toEqual([400, 1])
  })

  it('are unchanged for models with passthrough', async () => {
    const path = '/model/anthropic.claude-x/invoke'
    const text = '{ "anthropic_version":"bedrock-2023-05-31", "max_tokens":5,"messages":[]}'
    const gateway = fixtureGateway(
      { models: [{ ...models[0], name: '*', provider: 'bedrock', passthrough: 'detect' }] },
      () => jsonReply({ usage: { input_tokens: 3, output_tokens: 4 } }),
    )
    const { exchange } = await call(gateway, { path, body: text })
    expect([gateway.sent[0]?.path, String(gateway.sent[0]?.body)]).toEqual([path, text])
    expect(exchange.facts.usage).toMatchObject({ totalTokens: 7 })
  })

  it('with a guardrail have that of the configuration', async () => {
    const guarded = { ...params, awsGuardrailIdentifier: 'gr-1' }
    const gateway = fixtureGateway({ models: [{ name: '*', provider: 'bedrock', params: guarded }] }, () =>
      jsonReply({}),
    )
    const body = { messages: [], guardrailConfig: { guardrailIdentifier: 'other', trace: 'enabled' } }
    await call(gateway, { path: '/model/m/converse', body })
    expect(bodyOf(gateway.sent[0])).toMatchObject({
      guardrailConfig: { guardrailIdentifier: 'gr-1', guardrailVersion: 'DRAFT' },
    })
    const invoked = await call(gateway, { path: '/model/m/invoke', body: { prompt: 'x' } })
    expect([invoked.status, JSON.parse(invoked.text).code]).toEqual([400, 'unsupported_endpoint'])
    const headers = { 'x-amzn-bedrock-guardrailidentifier': 'g' }
    const named = await call(gateway, { path: '/model/m/invoke', body: { prompt: 'x' }, headers })
    expect([named.status, named.headers['x-amzn-errortype']]).toEqual([400, 'ValidationException'])
    expect(gateway.sent).toHaveLength(1)
  })

  it('have the prompts of the configuration, or are refused', async () => {
    const prompts = { prepend: [{ role: 'system' as const, content: 'Be kind.' }] }
    const gateway = fixtureGateway({ models: [{ name: '*', provider: 'bedrock', params, prompts }] }, () =>
      jsonReply({}),
    )
    const messages = [{ role: 'user', content: [{ text: 'x' }] }]
    await call(gateway, { path: '/model/m/converse', body: { messages } })
    expect(bodyOf(gateway.sent[0])).toEqual({ messages, system: [{ text: 'Be kind.' }] })
    const invoked = await call(gateway, { path: '/model/m/invoke', body: { prompt: 'x' } })
    expect([invoked.status, invoked.text]).toEqual([400, expect.stringContaining('use Converse')])
    const embed = { path: '/model/amazon.titan-embed-text-v2:0/invoke', body: { inputText: 'x' } }
    expect((await call(gateway, embed)).status).toBe(200)
  })

  it('are counted by the service, else estimated', async () => {
    const gateway = fixtureGateway({ models }, () => jsonReply({ inputTokens: 3 }))
    const body = {
      input: { converse: { messages: [{ role: 'user', content: [{ text: 'four words of text' }] }] } },
    }
    const counted = await call(gateway, { path: '/model/anthropic.claude-x/count-tokens', body })
    expect(JSON.parse(counted.text)).toEqual({ inputTokens: 3 })
    const estimated = await call(gateway, { path: '/model/m/count-tokens', body })
    expect(estimated.headers['x-tollgate-estimated']).toBe('true')
    expect(JSON.parse(estimated.text).inputTokens).toBeGreaterThan(3)
    expect(gateway.sent).toHaveLength(1)
  })
})
