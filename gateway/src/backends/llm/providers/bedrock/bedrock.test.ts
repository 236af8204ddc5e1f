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

it.each([
  [undefined, 200],
  ['gr-1', 404],
])('forwards unread calls without a guardrail only: %s', async (awsGuardrailIdentifier, expected) => {
  const params = {
    awsRegion: 'us-east-1',
    apiKey: 'k',
    ...(awsGuardrailIdentifier && { awsGuardrailIdentifier }),
  }
  const models = [{ name: '*', provider: 'bedrock' as const, params }]
  const gateway = fixtureGateway({ models, passthrough: true }, () => jsonReply({}))
  const model = 'amazon.titan-image-v2'
  const { status } = await call(gateway, { path: `/v1/model/${model}/invoke`, body: { model } })
  expect(status).toBe(expected)
})
