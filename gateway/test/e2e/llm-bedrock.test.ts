import Anthropic from '@anthropic-ai/sdk'
import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
  InvokeModelWithResponseStreamCommand,
} from '@aws-sdk/client-bedrock-runtime'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import OpenAI from 'openai'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { awsKeys, type BedrockDouble, bedrockRegion, startBedrock } from '../support/aws/bedrock-double.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { seriesOf } from '../support/metrics.ts'
import { type MockServer, startMockServer } from '../support/mock-server.ts'

const nova = 'eu.amazon.nova-pro-v1:0'
const claude =
  'arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0'
const [accessKeyId = '', secretAccessKey = ''] = Object.entries(awsKeys)[0] ?? []

let bedrock: BedrockDouble
let sts: MockServer
let gateway: Gateway
let openai: OpenAI
let anthropic: Anthropic

beforeAll(async () => {
  bedrock = await startBedrock('file')
  sts = await startMockServer((_, response) => {
    const keys = Object.entries(awsKeys)[1] ?? []
    response.end(
      `<AssumeRoleResponse><Credentials><AccessKeyId>${keys[0]}</AccessKeyId><SecretAccessKey>${keys[1]}</SecretAccessKey>` +
        `<SessionToken>session-canary</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResponse>`,
    )
  }, 'file')
  const params = { awsRegion: bedrockRegion, baseUrl: bedrock.url }
  const keys = { accessKeyId, secretAccessKey }
  const model = (name: string, more: object, auth: object = keys) => ({
    name,
    provider: 'bedrock',
    auth: { aws: auth },
    params: { ...params, ...more },
  })
  gateway = await startGateway(
    {
      config: {
        modelCatalog: [
          {
            inline: {
              providers: { bedrock: { models: { [nova]: { rates: { input: '1', output: '2' } } } } },
            },
          },
        ],
      },
      llm: {
        models: [
          model('nova', { model: nova }),
          model('claude', { model: claude }),
          model('titan', { model: 'amazon.titan-embed-text-v2:0' }),
          model('cohere', { model: 'cohere.embed-multilingual-v3' }),
          model('guarded', { model: claude, awsGuardrailIdentifier: 'gr-1', awsGuardrailVersion: '2' }),
          model('missing', { model: 'missing.model' }),
          model(
            'role',
            { model: nova },
            { ...keys, assumeRole: { roleArn: 'arn:aws:iam::123456789012:role/app' } },
          ),
          model('stolen', { model: nova }, { ...keys, secretAccessKey: 'wrong' }),
          { name: 'ambient', provider: 'bedrock', params: { ...params, model: nova } },
        ],
      },
    },
    {
      lifetime: 'file',
      env: {
        AWS_ENDPOINT_URL_STS: sts.url,
        AWS_ACCESS_KEY_ID: accessKeyId,
        AWS_SECRET_ACCESS_KEY: secretAccessKey,
      },
    },
  )
  openai = new OpenAI({ apiKey: 'of-client', baseURL: `${gateway.url}/v1`, maxRetries: 0 })
  anthropic = new Anthropic({ apiKey: 'of-client', baseURL: gateway.url, maxRetries: 0 })
})

beforeEach(() => {
  bedrock.seen.length = 0
  bedrock.billed.length = 0
})

const hi = [{ role: 'user' as const, content: 'Hi' }]
const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'get_weather',
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
    },
  },
]

async function collected<T>(stream: AsyncIterable<T> | undefined): Promise<T[]> {
  const items: T[] = []
  for await (const item of stream ?? []) items.push(item)
  return items
}

describe("AWS's own client reads the double", () => {
  const client = () =>
    new BedrockRuntimeClient({
      region: bedrockRegion,
      endpoint: bedrock.url,
      credentials: { accessKeyId, secretAccessKey },
      requestHandler: new NodeHttpHandler(),
      maxAttempts: 1,
    })
  const request = { modelId: nova, messages: [{ role: 'user' as const, content: [{ text: 'think' }] }] }

  it('for responses, streams and their errors', async () => {
    const whole = await client().send(new ConverseCommand(request))
    expect(whole.output?.message?.content?.[2]).toEqual({ text: 'Done.' })
    const { stream } = await client().send(new ConverseStreamCommand(request))
    const events = await collected(stream)
    expect(events.map((event) => Object.keys(event)[0])).toEqual([
      'messageStart',
      ...['contentBlockDelta', 'contentBlockDelta', 'contentBlockDelta', 'contentBlockStop'],
      ...['contentBlockDelta', 'contentBlockStop'],
      ...['contentBlockDelta', 'contentBlockDelta', 'contentBlockStop'],
      'messageStop',
      'metadata',
    ])
    const broken = {
      ...request,
      messages: [{ role: 'user' as const, content: [{ text: 'break the stream' }] }],
    }
    const failing = await client().send(new ConverseStreamCommand(broken))
    await expect(collected(failing.stream)).rejects.toThrow('The model stopped unexpectedly.')
    const body = JSON.stringify({ anthropic_version: 'bedrock-2023-05-31', max_tokens: 9, messages: hi })
    const invoked = await client().send(new InvokeModelWithResponseStreamCommand({ modelId: claude, body }))
    const chunks = (await collected(invoked.body)).map(({ chunk }) =>
      JSON.parse(Buffer.from(chunk?.bytes ?? []).toString()),
    )
    expect(chunks[0].type).toBe('message_start')
    await expect(
      client().send(new ConverseCommand({ ...request, modelId: 'missing.model' })),
    ).rejects.toMatchObject({ name: 'ResourceNotFoundException' })
  })
})

describe('chat completions', () => {
  it('are served by the Converse API, whole and streamed alike, with usage', async () => {
    const whole = await openai.chat.completions.create({ model: 'nova', messages: hi })
    expect(whole.choices[0]).toMatchObject({
      message: { content: 'Hello from Bedrock' },
      finish_reason: 'stop',
    })
    expect(whole.usage).toMatchObject({ prompt_tokens: 21, completion_tokens: 9 })
    expect(bedrock.seen[0]?.path).toBe('/model/eu.amazon.nova-pro-v1%3A0/converse')
    expect(bedrock.seen[0]?.json).toEqual({ messages: [{ role: 'user', content: [{ text: 'Hi' }] }] })
    const options = {
      model: 'nova',
      messages: hi,
      stream: true,
      stream_options: { include_usage: true },
    } as const
    const chunks = await collected(await openai.chat.completions.create(options))
    expect(chunks.map(({ choices: [choice] }) => choice?.delta.content ?? '').join('')).toBe(
      'Hello from Bedrock',
    )
    expect(chunks.at(-1)?.usage).toMatchObject({ prompt_tokens: 21, completion_tokens: 9 })
  })

  it('have parallel tool calls and their results', async () => {
    const first = await openai.chat.completions.create({ model: 'nova', messages: hi, tools })
    const [choice] = first.choices
    expect(choice?.finish_reason).toBe('tool_calls')
    const calls = choice?.message.tool_calls ?? []
    expect(calls.map((call) => call.type === 'function' && JSON.parse(call.function.arguments))).toEqual([
      { city: 'Paris' },
      { city: 'Rome' },
    ])
    const results = calls.map(({ id }) => ({ role: 'tool' as const, tool_call_id: id, content: 'sunny' }))
    const messages = [...hi, ...(choice ? [choice.message] : []), ...results]
    const second = await openai.chat.completions.create({ model: 'nova', messages, tools })
    expect(second.choices[0]?.message.content).toBe('Hello from Bedrock')
    const options = { model: 'nova', messages: hi, tools, stream: true } as const
    const streamed = await collected(await openai.chat.completions.create(options))
    const texts = ['', '']
    for (const { choices } of streamed)
      for (const { index, function: made } of choices[0]?.delta.tool_calls ?? [])
        texts[index] += made?.arguments ?? ''
    expect(texts).toEqual(['{"city":"Paris"}', '{"city":"Rome"}'])
  })

  it('have structured output', async () => {
    const schema = { type: 'object', properties: { city: { type: 'string' } } }
    const { choices } = await openai.chat.completions.create({
      model: 'nova',
      messages: hi,
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
    })
    expect(choices[0]?.message.content).toBe('{"city":"Paris"}')
    expect(bedrock.seen[0]?.json).toMatchObject({
      outputConfig: {
        textFormat: { type: 'json_schema', structure: { jsonSchema: { schema: JSON.stringify(schema) } } },
      },
    })
  })

  it('and responses reach Claude by its own API', async () => {
    const chat = await openai.chat.completions.create({ model: 'claude', messages: hi })
    expect(chat.choices[0]?.message.content).toBe('Hello from Claude')
    const response = await openai.responses.create({ model: 'claude', input: 'Hi' })
    expect(response.output_text).toBe('Hello from Claude')
    const converse = await openai.responses.create({ model: 'nova', input: 'Hi' })
    expect(converse.output_text).toBe('Hello from Bedrock')
    expect(bedrock.seen.map(({ path }) => path.split('/').at(-1))).toEqual(['invoke', 'invoke', 'converse'])
  })

  it('are stopped by a guardrail with the reason', async () => {
    const messages = [{ role: 'user' as const, content: 'forbidden' }]
    const { choices } = await openai.chat.completions.create({ model: 'guarded', messages })
    expect(choices[0]?.finish_reason).toBe('content_filter')
    expect(bedrock.seen[0]?.json).toMatchObject({
      guardrailConfig: { guardrailIdentifier: 'gr-1', guardrailVersion: '2' },
    })
  })
})

describe('messages', () => {
  it('of Claude are unchanged, with the signatures of thinking', async () => {
    const body = {
      model: 'claude',
      max_tokens: 50,
      messages: hi,
      thinking: { type: 'enabled', budget_tokens: 1024 },
    } as const
    const whole = await anthropic.messages.create(body)
    const streamed = await anthropic.messages.stream(body).finalMessage()
    expect(streamed.content).toEqual(whole.content)
    expect(whole.content[0]).toEqual({ type: 'thinking', thinking: 'Let me see.', signature: 'c2lnbmVk' })
    expect(bedrock.seen.map(({ path }) => decodeURIComponent(path))).toEqual([
      `/model/${claude}/invoke`,
      `/model/${claude}/invoke-with-response-stream`,
    ])
    expect(bedrock.seen[0]?.json).toEqual({
      max_tokens: 50,
      messages: hi,
      thinking: body.thinking,
      anthropic_version: 'bedrock-2023-05-31',
    })
  })

  it('of other models are translated, with reasoning and cache marks', async () => {
    const text = { type: 'text' as const, text: 'think', cache_control: { type: 'ephemeral' as const } }
    const body = { model: 'nova', max_tokens: 50, messages: [{ role: 'user' as const, content: [text] }] }
    const whole = await anthropic.messages.create(body)
    expect(whole.content.map(({ type }) => type)).toEqual(['thinking', 'redacted_thinking', 'text'])
    expect(whole.usage).toMatchObject({ input_tokens: 21, cache_read_input_tokens: 100, output_tokens: 9 })
    const streamed = await anthropic.messages.stream(body).finalMessage()
    expect(streamed.content).toEqual(whole.content)
    expect(streamed.usage).toMatchObject({ input_tokens: 21, cache_read_input_tokens: 100, output_tokens: 9 })
  })

  it('of Claude are counted by the service', async () => {
    const counted = await anthropic.messages.countTokens({ model: 'claude', messages: hi })
    expect(counted).toEqual({ input_tokens: 17 })
    expect(bedrock.seen[0]?.path).toMatch(/\/count-tokens$/)
    await anthropic.messages.countTokens({ model: 'nova', messages: hi })
    expect(bedrock.seen).toHaveLength(1)
  })
})

it('embeddings are served by Titan and Cohere', async () => {
  const one = await openai.embeddings.create({ model: 'titan', input: 'a', dimensions: 256 })
  expect(one.data[0]?.embedding).toEqual([0.5, -0.25])
  expect(one.usage).toEqual({ prompt_tokens: 3, total_tokens: 3 })
  const two = await openai.embeddings.create({ model: 'cohere', input: ['a', 'b'], encoding_format: 'float' })
  expect(two.data.map(({ embedding }) => embedding)).toEqual([
    [0.5, -0.25],
    [0.5, -0.25],
  ])
  await expect(openai.embeddings.create({ model: 'titan', input: ['a', 'b'] })).rejects.toThrow(
    'one text per request',
  )
})

describe('errors of the service', () => {
  it('have the shape of the client and advice', async () => {
    const throttled = [{ role: 'user' as const, content: 'throttle me' }]
    const chat = await openai.chat.completions
      .create({ model: 'nova', messages: throttled })
      .catch((error) => error)
    expect(chat).toMatchObject({ status: 429, type: 'rate_limit_error' })
    expect(chat.message).toContain('Too many requests, please wait before trying again: retry later')
    const body = { model: 'claude', max_tokens: 5, messages: throttled }
    const message = await anthropic.messages.create(body).catch((error) => error)
    expect(message).toMatchObject({ status: 429, error: { error: { type: 'rate_limit_error' } } })
    const missing = await openai.chat.completions
      .create({ model: 'missing', messages: hi })
      .catch((error) => error)
    expect(missing.message).toContain('check the id of the model and the region')
    const stolen = await openai.chat.completions
      .create({ model: 'stolen', messages: hi })
      .catch((error) => error)
    expect([stolen.status, stolen.message]).toEqual([
      403,
      expect.stringContaining("check the gateway's keys of AWS"),
    ])
  })

  it('inside a stream end it with an error event', async () => {
    const messages = [{ role: 'user' as const, content: 'break the stream' }]
    const chat = async () =>
      collected(await openai.chat.completions.create({ model: 'nova', messages, stream: true }))
    await expect(chat()).rejects.toThrow('The model stopped unexpectedly.')
    for (const [model, text] of [
      ['claude', 'Too many tokens, please wait before trying again: retry later'],
      ['nova', 'The model stopped unexpectedly.'],
    ] as const) {
      const stream = anthropic.messages.stream({ model, max_tokens: 5, messages })
      await expect(stream.finalMessage()).rejects.toThrow(text)
    }
  })
})

it('roles and the identity of the environment sign, and no output has a secret', async () => {
  for (const model of ['role', 'ambient', 'role'])
    await openai.chat.completions.create({ model, messages: hi })
  expect(bedrock.seen.map(({ headers }) => headers['x-amz-security-token'])).toEqual([
    'session-canary',
    undefined,
    'session-canary',
  ])
  expect(sts.seen).toHaveLength(1)
  expect(bedrock.seen.some(({ headers }) => JSON.stringify(headers).includes('of-client'))).toBe(false)
  const outputs = [gateway.stdout(), gateway.stderr(), await gateway.metrics()].join('\n')
  for (const secret of [...Object.values(awsKeys), 'session-canary', 'wrong'])
    expect(outputs).not.toContain(secret)
})

it('usage and cost equal what the service billed', async () => {
  const total = async (type: string) => {
    const series = seriesOf(await gateway.metrics(), 'gen_ai_client_token_usage_sum')
    return series.reduce(
      (sum, { labels, value }) => sum + (labels['gen_ai_token_type'] === type ? value : 0),
      0,
    )
  }
  const cost = async () =>
    seriesOf(await gateway.metrics(), 'tollgate_llm_cost_usd_total').reduce(
      (sum, { value }) => sum + value,
      0,
    )
  const before = { input: await total('input'), output: await total('output'), cost: await cost() }
  const request = { model: 'nova', messages: hi }
  await openai.chat.completions.create(request)
  await collected(await openai.chat.completions.create({ ...request, stream: true }))
  const afterNova = await cost()
  expect((afterNova - before.cost) * 1e6).toBeCloseTo(2 * (21 + 2 * 9), 6)
  const text = { type: 'text' as const, text: 'x', cache_control: { type: 'ephemeral' as const } }
  const body = { max_tokens: 5, messages: [{ role: 'user' as const, content: [text] }] }
  for (const model of ['nova', 'claude'] as const) {
    await anthropic.messages.create({ ...body, model })
    await anthropic.messages.stream({ ...body, model }).finalMessage()
  }
  for (const model of ['titan', 'cohere']) await openai.embeddings.create({ model, input: 'a' })
  const billed = bedrock.billed.reduce(
    (sum, { input, cacheRead, output }) => ({
      input: sum.input + input + cacheRead,
      output: sum.output + output,
    }),
    { input: 0, output: 0 },
  )
  expect(await total('input')).toBe(before.input + billed.input)
  expect(await total('output')).toBe(before.output + billed.output)
})
