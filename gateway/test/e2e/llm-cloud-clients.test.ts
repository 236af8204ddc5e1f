import { AnthropicBedrock } from '@anthropic-ai/bedrock-sdk'
import { AnthropicVertex } from '@anthropic-ai/vertex-sdk'
import {
  BedrockRuntimeClient,
  type BedrockRuntimeClientConfig,
  ConverseCommand,
  type ConverseCommandInput,
  ConverseStreamCommand,
  CountTokensCommand,
  InvokeModelCommand,
  InvokeModelWithResponseStreamCommand,
} from '@aws-sdk/client-bedrock-runtime'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import { AzureOpenAI } from 'openai'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { awsKeys, type BedrockDouble, bedrockRegion, startBedrock } from '../support/aws/bedrock-double.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { aliceKey, aliceRecord } from '../support/llm-config.ts'
import { seriesOf } from '../support/metrics.ts'
import { googleKey, type MockGoogle, mockGoogle } from '../support/mock-google.ts'

const nova = 'eu.amazon.nova-pro-v1:0'
const claude =
  'arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0'
const llama = 'meta.llama3-70b-instruct-v1:0'
const guarded = 'eu.anthropic.claude-guarded'
const [accessKeyId = '', secretAccessKey = ''] = Object.entries(awsKeys)[0] ?? []
const restrictedKey = 'tg-canary-restricted-77aa'

let bedrock: BedrockDouble
let google: MockGoogle
let gateway: Gateway
let direct: BedrockRuntimeClient
let through: BedrockRuntimeClient

beforeAll(async () => {
  bedrock = await startBedrock('file')
  google = await mockGoogle()
  const params = { awsRegion: bedrockRegion, baseUrl: bedrock.url }
  const auth = { aws: { accessKeyId, secretAccessKey } }
  const mask = { regex: { action: 'mask', rules: [{ pattern: 'classified' }, { pattern: 'Llama' }] } }
  gateway = await startGateway(
    {
      llm: {
        policies: {
          apiKey: {
            mode: 'strict',
            keys: [aliceRecord, { key: restrictedKey, metadata: { id: 'r' }, allowedModels: ['echo'] }],
          },
        },
        models: [
          { name: 'echo', provider: 'echo' },
          {
            name: 'claude-*',
            provider: 'vertex',
            params: { vertexProject: 'team', baseUrl: google.url, apiKey: googleKey },
          },
          {
            name: guarded,
            provider: 'bedrock',
            auth,
            params: { ...params, awsGuardrailIdentifier: 'gr-1', awsGuardrailVersion: '2' },
          },
          {
            name: 'masked',
            provider: 'bedrock',
            auth,
            params: { ...params, model: llama },
            guardrails: { request: [mask], response: [mask] },
          },
          { name: '*', provider: 'bedrock', auth, params },
        ],
      },
    },
    { lifetime: 'file' },
  )
  const shared = { region: bedrockRegion, maxAttempts: 1 }
  direct = clientOf({ ...shared, endpoint: bedrock.url, credentials: { accessKeyId, secretAccessKey } })
  through = bearerClient(aliceKey)
})

beforeEach(() => {
  bedrock.seen.length = 0
  bedrock.billed.length = 0
})

function clientOf(config: BedrockRuntimeClientConfig): BedrockRuntimeClient {
  return new BedrockRuntimeClient({ ...config, requestHandler: new NodeHttpHandler() })
}

function bearerClient(token: string): BedrockRuntimeClient {
  return clientOf({
    region: bedrockRegion,
    maxAttempts: 1,
    endpoint: gateway.url,
    token: { token },
    authSchemePreference: ['httpBearerAuth'],
  })
}

async function collected<T>(stream: AsyncIterable<T> | undefined): Promise<T[]> {
  const items: T[] = []
  for await (const item of stream ?? []) items.push(item)
  return items
}

const asking = (text: string, more: Partial<ConverseCommandInput> = {}): ConverseCommandInput => ({
  modelId: nova,
  messages: [{ role: 'user', content: [{ text }] }],
  ...more,
})

const tools = [
  {
    toolSpec: {
      name: 'get_weather',
      inputSchema: { json: { type: 'object', properties: { city: { type: 'string' } } } },
    },
  },
]

const messagesBody = (text: string) =>
  JSON.stringify({
    anthropic_version: 'bedrock-2023-05-31',
    max_tokens: 9,
    messages: [{ role: 'user', content: text }],
  })

/** Everything but the description of the HTTP exchange. */
function bare<T extends object>(output: T): object {
  return { ...output, $metadata: undefined }
}

const textOf = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString()

describe("AWS's SDK receives the same from the gateway as from Bedrock", () => {
  it.each([
    ['text', asking('Hi')],
    ['reasoning', asking('think')],
    ['tools', asking('Hi', { toolConfig: { tools } })],
    ['a model by its ARN', asking('Hi', { modelId: claude })],
  ])('by Converse and ConverseStream: %s', async (_, input) => {
    const [whole, same] = await Promise.all(
      [direct, through].map((client) => client.send(new ConverseCommand(input))),
    )
    expect(bare(same ?? {})).toEqual(bare(whole ?? {}))
    const streams = [direct, through].map(async (client) =>
      collected((await client.send(new ConverseStreamCommand(input))).stream),
    )
    const [events = [], relayed] = await Promise.all(streams)
    expect(relayed).toEqual(events)
    expect(events.length).toBeGreaterThan(3)
  })

  it.each([
    ['Claude', claude, messagesBody('Hi')],
    ['another model', llama, JSON.stringify({ prompt: 'Hi' })],
  ])('by InvokeModel, whole and streamed: %s', async (_, modelId, body) => {
    const invoke = async (client: BedrockRuntimeClient) => {
      const whole = await client.send(new InvokeModelCommand({ modelId, body }))
      const streamed = await client.send(new InvokeModelWithResponseStreamCommand({ modelId, body }))
      const chunks = await collected(streamed.body)
      return [textOf(whole.body), chunks.map(({ chunk }) => JSON.parse(textOf(chunk?.bytes)))]
    }
    const expected = await invoke(direct)
    expect(await invoke(through)).toEqual(expected)
    expect(expected[1]?.length).toBeGreaterThan(2)
  })

  it('for embeddings and token counts', async () => {
    const embed = { modelId: 'amazon.titan-embed-text-v2:0', body: JSON.stringify({ inputText: 'a' }) }
    const count = { modelId: claude, input: { converse: { messages: asking('Hi').messages ?? [] } } }
    const read = async (client: BedrockRuntimeClient) => [
      textOf((await client.send(new InvokeModelCommand(embed))).body),
      (await client.send(new CountTokensCommand(count))).inputTokens,
    ]
    expect(await read(through)).toEqual(await read(direct))
  })

  it('for errors, before and inside a stream', async () => {
    const failures = async (client: BedrockRuntimeClient) => {
      const caught = (error: Error & { $metadata?: { httpStatusCode?: number } }) => [
        error.constructor.name,
        error.name,
        error.$metadata?.httpStatusCode,
      ]
      const broken = async (modelId: string) => {
        const { stream } = await client.send(
          new ConverseStreamCommand(asking('break the stream', { modelId })),
        )
        return collected(stream)
      }
      const invoked = async () => {
        const input = { modelId: claude, body: messagesBody('break the stream') }
        return collected((await client.send(new InvokeModelWithResponseStreamCommand(input))).body)
      }
      return [
        await client.send(new ConverseCommand(asking('throttle me'))).catch(caught),
        await client.send(new ConverseCommand(asking('Hi', { modelId: 'missing.model' }))).catch(caught),
        await client.send(new ConverseCommand(asking(''))).catch(caught),
        await client.send(new InvokeModelCommand({ modelId: llama, body: '{"x":1}' })).catch(caught),
        await broken(nova).catch((error) => [error.name, error.message]),
        await invoked().catch((error) => error.name),
      ]
    }
    const expected = await failures(direct)
    expect(await failures(through)).toEqual(expected)
    expect(expected[0]).toEqual(['ThrottlingException', 'ThrottlingException', 429])
    expect(expected[4]).toEqual(['ModelStreamErrorException', 'The model stopped unexpectedly.'])
    expect(expected[5]).toBe('ThrottlingException')
  })
})

it("AWS's SDK reaches models of other providers by Converse", async () => {
  const input = asking('to the echo', { modelId: 'echo' })
  const whole = await through.send(new ConverseCommand(input))
  expect(whole.output?.message?.content).toEqual([{ text: 'to the echo' }])
  expect([whole.stopReason, whole.usage?.totalTokens]).toEqual(['end_turn', expect.any(Number)])
  const events = await collected((await through.send(new ConverseStreamCommand(input))).stream)
  const text = events.map((event) => event.contentBlockDelta?.delta?.text ?? '').join('')
  expect([text, events.at(-1)?.metadata?.usage]).toEqual(['to the echo', whole.usage])
  const anthropic = await through.send(new ConverseCommand(asking('Hi', { modelId: 'claude-x' })))
  expect(anthropic.output?.message?.content).toEqual([{ text: 'Hello' }])
  const refused = through.send(
    new ConverseCommand({ ...input, guardrailConfig: { guardrailIdentifier: 'g', guardrailVersion: '1' } }),
  )
  await expect(refused).rejects.toMatchObject({ name: 'ValidationException' })
})

it('clients of Bedrock have keys of the gateway and its models, and their signatures end there', async () => {
  const refused = async (client: BedrockRuntimeClient) =>
    client.send(new ConverseCommand(asking('Hi'))).catch(({ name, message }) => [name, message])
  expect(await refused(bearerClient(restrictedKey))).toEqual([
    'AccessDeniedException',
    'Model is not allowed for this API key',
  ])
  const signed = clientOf({
    region: bedrockRegion,
    maxAttempts: 1,
    endpoint: gateway.url,
    credentials: { accessKeyId: 'AKIDOFCLIENT', secretAccessKey: 'of-client' },
  })
  expect(await refused(signed)).toEqual(['AccessDeniedException', expect.any(String)])
  signed.middlewareStack.add(
    (next) => (args) => {
      Object.assign((args.request as { headers: object }).headers, { 'x-api-key': aliceKey })
      return next(args)
    },
    { step: 'build' },
  )
  expect(bedrock.seen).toEqual([])
  await signed.send(new ConverseCommand(asking('Hi')))
  const [seen] = bedrock.seen
  expect(JSON.stringify(seen?.headers)).not.toMatch(/AKIDOFCLIENT|amz-sdk|canary-alice/)
})

it('guardrails of the configuration apply to every form of a call', async () => {
  const own = { guardrailConfig: { guardrailIdentifier: 'weaker', guardrailVersion: '1' } }
  const stopped = await through.send(new ConverseCommand(asking('forbidden', { modelId: guarded, ...own })))
  expect(stopped.stopReason).toBe('guardrail_intervened')
  const invoked = await through.send(
    new InvokeModelCommand({ modelId: guarded, body: messagesBody('forbidden') }),
  )
  expect(JSON.parse(textOf(invoked.body))).toMatchObject({ stop_reason: 'refusal' })
  const bodies = bedrock.seen.map(({ json }) => json)
  const guardrailConfig = { guardrailIdentifier: 'gr-1', guardrailVersion: '2' }
  expect(bodies).toEqual([
    expect.objectContaining({ guardrailConfig }),
    expect.objectContaining({ guardrailConfig }),
  ])
})

it('guards of the gateway read and change requests, responses and streams', async () => {
  const body = JSON.stringify({ prompt: 'a classified text' })
  const whole = await through.send(new InvokeModelCommand({ modelId: 'masked', body }))
  expect(textOf(whole.body)).not.toContain('Llama')
  const streamed = await through.send(new InvokeModelWithResponseStreamCommand({ modelId: 'masked', body }))
  const chunks = (await collected(streamed.body)).map(({ chunk }) => textOf(chunk?.bytes)).join()
  expect(chunks).not.toContain('Llama')
  expect(chunks).toContain('Hello')
  const { stream } = await through.send(
    new ConverseStreamCommand(asking('a classified text', { modelId: 'masked' })),
  )
  expect((await collected(stream)).at(-1)).toHaveProperty('metadata')
  for (const { text } of bedrock.seen) expect(text).not.toContain('classified')
  expect(bedrock.seen).toHaveLength(3)
})

it('usage equals what the service billed, in all forms', async () => {
  const total = async (type: string) =>
    seriesOf(await gateway.metrics(), 'gen_ai_client_token_usage_sum').reduce(
      (sum, { labels, value }) => sum + (labels['gen_ai_token_type'] === type ? value : 0),
      0,
    )
  const before = { input: await total('input'), output: await total('output') }
  await through.send(new ConverseCommand(asking('Hi')))
  await collected((await through.send(new ConverseStreamCommand(asking('Hi')))).stream)
  for (const [modelId, body] of [
    [claude, messagesBody('Hi')],
    [llama, JSON.stringify({ prompt: 'Hi' })],
  ] as const) {
    await through.send(new InvokeModelCommand({ modelId, body }))
    await collected((await through.send(new InvokeModelWithResponseStreamCommand({ modelId, body }))).body)
  }
  const sum = (read: (entry: (typeof bedrock.billed)[number]) => number) =>
    bedrock.billed.reduce((all, entry) => all + read(entry), 0)
  expect(await total('input')).toBe(before.input + sum(({ input, cacheRead }) => input + cacheRead))
  expect(await total('output')).toBe(before.output + sum(({ output }) => output))
})

describe("Anthropic's SDK for Bedrock", () => {
  const viaGateway = () => new AnthropicBedrock({ apiKey: aliceKey, baseURL: gateway.url, maxRetries: 0 })
  const request = (model: string, content: string) => ({
    model,
    max_tokens: 50,
    messages: [{ role: 'user' as const, content }],
  })

  it('receives the same from the gateway as from Bedrock', async () => {
    const own = new AnthropicBedrock({
      awsAccessKey: accessKeyId,
      awsSecretKey: secretAccessKey,
      awsRegion: bedrockRegion,
      baseURL: bedrock.url,
      maxRetries: 0,
    })
    const read = async (client: AnthropicBedrock) => {
      const whole = await client.messages.create(request(claude, 'Hi'))
      const streamed = await client.messages.stream(request(claude, 'Hi')).finalMessage()
      const broken = client.messages.stream(request(claude, 'break the stream')).finalMessage()
      const failure = await broken.catch((error) => error.error?.error?.type ?? error.name)
      const refused = await client.messages
        .create(request(claude, 'throttle me'))
        .catch(({ status, name }) => [status, name])
      return [whole, streamed, failure, refused]
    }
    const expected = await read(own)
    expect(await read(viaGateway())).toEqual(expected)
    expect(expected[3]).toEqual([429, expect.any(String)])
  })

  it('reaches models of other providers', async () => {
    const echoed = await viaGateway().messages.create(request('echo', 'to the echo'))
    expect(echoed.content).toEqual([expect.objectContaining({ text: 'to the echo' })])
    const streamed = await viaGateway().messages.stream(request(nova, 'Hi')).finalMessage()
    expect(streamed.content).toEqual([expect.objectContaining({ text: 'Hello from Bedrock' })])
  })
})

it("Anthropic's SDK for Vertex AI receives the same from the gateway as from Google", async () => {
  const clientOfVertex = (baseURL: string, headers: Record<string, string>) =>
    new AnthropicVertex({
      baseURL: `${baseURL}/v1`,
      region: 'global',
      projectId: 'team',
      maxRetries: 0,
      authClient: { getRequestHeaders: async () => new Headers(headers) } as never,
    })
  const read = async (client: AnthropicVertex) => {
    const body = { model: 'claude-x', max_tokens: 9, messages: [{ role: 'user' as const, content: 'Hi' }] }
    return [await client.messages.create(body), await client.messages.stream(body).finalMessage()]
  }
  const expected = await read(clientOfVertex(google.url, { 'x-goog-api-key': googleKey }))
  expect(await read(clientOfVertex(gateway.url, { authorization: `Bearer ${aliceKey}` }))).toEqual(expected)
})

it("OpenAI's client for Azure reaches every provider by its deployments", async () => {
  const client = new AzureOpenAI({
    endpoint: gateway.url,
    apiKey: aliceKey,
    apiVersion: '2024-10-21',
    maxRetries: 0,
  })
  const messages = [{ role: 'user' as const, content: 'Hi' }]
  const { choices } = await client.chat.completions.create({ model: nova, messages })
  expect(choices[0]?.message.content).toBe('Hello from Bedrock')
})
