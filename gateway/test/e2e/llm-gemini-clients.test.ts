import { FunctionCallingConfigMode, type GenerateContentParameters, GoogleGenAI, Type } from '@google/genai'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { awsKeys, type BedrockDouble, bedrockRegion, startBedrock } from '../support/aws/bedrock-double.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import {
  anthropicErrors,
  anthropicKey,
  type MockAnthropic,
  mockAnthropic,
} from '../support/mock-anthropic.ts'
import { type MockOpenAi, mockOpenAi, openAiErrors, openAiKey } from '../support/mock-openai.ts'
import { jsonAnswer, member } from '../support/mock-server.ts'

const [accessKeyId = '', secretAccessKey = ''] = Object.entries(awsKeys)[0] ?? []
const claude = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0'

let openai: MockOpenAi
let anthropic: MockAnthropic
let bedrock: BedrockDouble
let gateway: Gateway
let client: GoogleGenAI

beforeAll(async () => {
  openai = await mockOpenAi({ lifetime: 'file' })
  anthropic = await mockAnthropic({ lifetime: 'file' })
  bedrock = await startBedrock('file')
  const auth = { aws: { accessKeyId, secretAccessKey } }
  const aws = { awsRegion: bedrockRegion, baseUrl: bedrock.url }
  gateway = await startGateway(
    {
      llm: {
        policies: {
          apiKey: {
            keys: [
              { key: 'all-models', metadata: { user: 'a' } },
              { key: 'one-model', metadata: { user: 'b' }, allowedModels: ['gpt-test'] },
            ],
          },
        },
        models: [
          { name: 'gpt-*', provider: 'openai', params: { apiKey: openAiKey, baseUrl: `${openai.url}/v1` } },
          {
            name: 'gpt-configured',
            provider: 'openai',
            params: { apiKey: openAiKey, baseUrl: `${openai.url}/v1` },
            overrides: { temperature: 0.25 },
            defaults: { max_tokens: 77 },
          },
          {
            name: 'claude-*',
            provider: 'anthropic',
            params: { apiKey: anthropicKey, baseUrl: `${anthropic.url}/v1` },
          },
          { name: 'nova', provider: 'bedrock', auth, params: { ...aws, model: 'amazon.nova-pro-v1:0' } },
          { name: 'bedrock-claude', provider: 'bedrock', auth, params: { ...aws, model: claude } },
        ],
      },
    },
    { lifetime: 'file' },
  )
  client = clientWith('all-models')
})

beforeEach(() => {
  for (const { seen } of [openai, anthropic, bedrock]) seen.length = 0
})

function clientWith(apiKey: string): GoogleGenAI {
  return new GoogleGenAI({ apiKey, httpOptions: { baseUrl: gateway.url } })
}

async function streamed(request: GenerateContentParameters) {
  const chunks = []
  for await (const chunk of await client.models.generateContentStream(request)) chunks.push(chunk)
  return chunks
}

const parameters = { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ['city'] }
const tools = [{ functionDeclarations: [{ name: 'get_weather', description: 'Weather', parameters }] }]

const upstreams = [
  {
    model: 'gpt-test',
    content: () => openai.behaviour.content,
    usage: {
      promptTokenCount: 21,
      cachedContentTokenCount: 5,
      thoughtsTokenCount: 2,
      candidatesTokenCount: 7,
    },
  },
  {
    model: 'claude-test',
    content: () => anthropic.behaviour.content,
    usage: { promptTokenCount: 22, cachedContentTokenCount: 6, candidatesTokenCount: 11 },
  },
  {
    model: 'nova',
    content: () => 'Hello from Bedrock',
    usage: { promptTokenCount: 21, candidatesTokenCount: 9, totalTokenCount: 30 },
  },
  {
    model: 'bedrock-claude',
    content: () => 'Hello from Claude',
    usage: { promptTokenCount: 17, cachedContentTokenCount: 5, candidatesTokenCount: 7 },
  },
]

describe.each(upstreams)('Google’s SDK with $model', ({ model, content, usage }) => {
  it('receives whole and streamed responses with usage', async () => {
    const config = { systemInstruction: 'You are brief.', temperature: 0.5, maxOutputTokens: 100 }
    const request = { model, contents: 'Good morning', config }
    const whole = await client.models.generateContent(request)
    expect(whole.text).toBe(content())
    expect(whole.candidates?.[0]?.finishReason).toBe('STOP')
    expect(whole.usageMetadata).toMatchObject(usage)
    const chunks = await streamed(request)
    expect(chunks.length).toBeGreaterThan(2)
    expect(chunks.map(({ text }) => text ?? '').join('')).toBe(content())
    const last = chunks.at(-1)
    expect(last?.candidates?.[0]?.finishReason).toBe('STOP')
    expect(last?.usageMetadata).toEqual(whole.usageMetadata)
    expect(last?.modelVersion).toBe(whole.modelVersion)
  })
})

describe('tools', () => {
  it.each(['gpt-test', 'claude-test', 'nova'])('of %s are called in a chat of two turns', async (model) => {
    for (const isStreamed of [false, true]) {
      const chat = client.chats.create({ model, config: { tools } })
      let calls: unknown[] = []
      if (isStreamed) {
        for await (const { functionCalls } of await chat.sendMessageStream({ message: 'Weather?' }))
          calls.push(...(functionCalls ?? []))
      } else calls = (await chat.sendMessage({ message: 'Weather?' })).functionCalls ?? []
      expect(calls.length).toBeGreaterThan(0)
      expect(member(calls[0], 'args', 'city')).toBe('Paris')
      // The result by name only, as most clients return it.
      const message = calls.map(() => ({
        functionResponse: { name: 'get_weather', response: { output: 'sunny' } },
      }))
      const { text } = await chat.sendMessage({ message })
      expect(text).toMatch(/^(?:Hello|Bonjour)/)
    }
    const sent = JSON.stringify(
      [openai, anthropic, bedrock].flatMap(({ seen }) => seen.map(({ json }) => json)),
    )
    expect(sent).toContain('sunny')
    expect(sent).toMatch(/call_mock1|toolu_mock1|tooluse_2/)
  })

  it('may be required', async () => {
    const toolConfig = {
      functionCallingConfig: { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ['get_weather'] },
    }
    await client.models.generateContent({ model: 'gpt-test', contents: 'Hi', config: { tools, toolConfig } })
    await client.models.generateContent({
      model: 'claude-test',
      contents: 'Hi',
      config: { tools, toolConfig },
    })
    expect(openai.seen[0]?.json).toMatchObject({
      tools: [{ function: { parameters: { type: 'object', properties: { city: { type: 'string' } } } } }],
      tool_choice: { type: 'function', function: { name: 'get_weather' } },
    })
    expect(anthropic.seen[0]?.json).toMatchObject({ tool_choice: { type: 'tool', name: 'get_weather' } })
  })

  it('of Claude have its signed thinking in the second turn', async () => {
    const content = [
      { type: 'thinking', thinking: 'Let me see.', signature: 'c2ln' },
      { type: 'tool_use', id: 'toolu_9', name: 'get_weather', input: { city: 'Oslo' } },
    ]
    const head = { id: 'msg_9', type: 'message', role: 'assistant', model: 'claude', stop_reason: 'tool_use' }
    const usage = { input_tokens: 1, output_tokens: 2 }
    anthropic.next(jsonAnswer(200, { ...head, content, usage }))
    const thinkingConfig = { includeThoughts: true, thinkingBudget: 2048 }
    const chat = client.chats.create({ model: 'claude-test', config: { tools, thinkingConfig } })
    const first = await chat.sendMessage({ message: 'Weather?' })
    expect(first.candidates?.[0]?.content?.parts?.[0]).toMatchObject({ text: 'Let me see.', thought: true })
    await chat.sendMessage({
      message: { functionResponse: { name: 'get_weather', response: { output: 'cold' } } },
    })
    expect(anthropic.seen[0]?.json).toMatchObject({ thinking: { type: 'enabled', budget_tokens: 2048 } })
    expect(member(anthropic.seen[1]?.json, 'messages')).toEqual([
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_9', content: 'cold' }] },
    ])
  })
})

it('thoughts are part of a stream on request only', async () => {
  const thoughts = (chunks: Awaited<ReturnType<typeof streamed>>) =>
    chunks.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []).filter(({ thought }) => thought)
  const request = { model: 'bedrock-claude', contents: 'Hi' }
  const shown = await streamed({ ...request, config: { thinkingConfig: { includeThoughts: true } } })
  expect(thoughts(shown)).toEqual([{ text: 'Let me see.', thought: true }])
  expect(thoughts(await streamed(request))).toEqual([])
})

it('structured output has the schema of the request', async () => {
  const config = { responseMimeType: 'application/json', responseSchema: parameters }
  for (const model of ['gpt-test', 'claude-test', 'nova'])
    await client.models.generateContent({ model, contents: 'Hi', config })
  const properties = { city: { type: 'string' } }
  const schema = { type: 'object', properties, required: ['city'], additionalProperties: false }
  expect(openai.seen[0]?.json).toMatchObject({
    response_format: { type: 'json_schema', json_schema: { schema, strict: true } },
  })
  expect(anthropic.seen[0]?.json).toMatchObject({
    output_config: { format: { type: 'json_schema', schema } },
  })
  expect(JSON.stringify(bedrock.seen[0]?.json)).toContain('additionalProperties')
})

it('settings of the configuration apply to the request of the provider', async () => {
  await client.models.generateContent({ model: 'gpt-configured', contents: 'Hi', config: { temperature: 1 } })
  const sent = openai.seen[0]?.json
  expect(sent).toMatchObject({ temperature: 0.25 })
  expect(member(sent, 'max_tokens') ?? member(sent, 'max_completion_tokens')).toBe(77)
})

it('a stream without alt=sse is a JSON array', async () => {
  const response = await fetch(`${gateway.url}/v1beta/models/claude-test:streamGenerateContent`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-goog-api-key': 'all-models' },
    body: JSON.stringify({ contents: [{ parts: [{ text: 'Hi' }] }] }),
  })
  expect(response.headers.get('content-type')).toBe('application/json')
  const elements: unknown = await response.json()
  const texts = Array.isArray(elements)
    ? elements.map((element) => member(element, 'candidates', 0, 'content', 'parts', 0, 'text') ?? '')
    : []
  expect(texts.join('')).toBe(anthropic.behaviour.content)
  expect(texts.length).toBeGreaterThan(3)
})

it('tokens are counted by the provider, else estimated', async () => {
  const count = (model: string) => client.models.countTokens({ model, contents: 'Hi' })
  expect((await count('claude-test')).totalTokens).toBe(14)
  expect(anthropic.seen[0]?.json).toEqual({
    model: 'claude-test',
    messages: [{ role: 'user', content: 'Hi' }],
  })
  expect((await count('bedrock-claude')).totalTokens).toBe(17)
  expect((await count('gpt-test')).totalTokens).toBe(2)
})

it('texts are embedded in batches', async () => {
  const config = { outputDimensionality: 3, taskType: 'RETRIEVAL_DOCUMENT' }
  const contents = ['one', 'two']
  const { embeddings } = await client.models.embedContent({ model: 'gpt-embedding', contents, config })
  expect(embeddings).toEqual(contents.map(() => ({ values: [0.25, -0.5, 0.125] })))
  expect(openai.seen[0]?.json).toEqual({ model: 'gpt-embedding', input: contents, dimensions: 3 })
})

it('models are listed in the shape of Google, as far as the key allows', async () => {
  const listed = async (key: string) => {
    const names = []
    for await (const { name } of await clientWith(key).models.list()) names.push(name)
    return names
  }
  expect(await listed('all-models')).toEqual([
    ...['models/gpt-*', 'models/gpt-configured', 'models/claude-*', 'models/nova', 'models/bedrock-claude'],
  ])
  expect(await listed('one-model')).toEqual(['models/gpt-test'])
  const response = await fetch(`${gateway.url}/v1beta/models?key=one-model`)
  expect(await response.json()).toMatchObject({ models: [{ name: 'models/gpt-test' }] })
  expect(await client.models.get({ model: 'nova' })).toMatchObject({
    ...{ name: 'models/nova', displayName: 'nova', supportedActions: ['generateContent', 'countTokens'] },
  })
  await expect(clientWith('one-model').models.get({ model: 'nova' })).rejects.toMatchObject({ status: 404 })
  await expect(clientWith('wrong').models.get({ model: 'nova' })).rejects.toThrow('UNAUTHENTICATED')
})

describe('errors', () => {
  const ask = (model: string, config: object = {}) =>
    client.models.generateContent({ model, contents: 'Hi', config }).then(
      () => undefined,
      (error: { status: number; message: string }) => ({
        status: error.status,
        ...JSON.parse(error.message).error,
      }),
    )

  it('of providers have the shape of Google, with the delay before a retry', async () => {
    openai.next(openAiErrors.rateLimited)
    expect(await ask('gpt-test')).toMatchObject({
      ...{ code: 429, status: 'RESOURCE_EXHAUSTED', message: expect.stringContaining('Rate limit reached') },
      details: [
        { reason: 'rate_limit_exceeded' },
        { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '1s' },
      ],
    })
    anthropic.next(anthropicErrors.overloaded)
    expect(await ask('claude-test')).toMatchObject({ code: 529, message: 'Overloaded' })
    openai.next(openAiErrors.contextLength)
    expect(await ask('gpt-test')).toMatchObject({ code: 400, status: 'INVALID_ARGUMENT' })
  })

  it('of the translation name the field of the request', async () => {
    expect(await ask('gpt-test', { tools: [{ googleSearch: {} }] })).toMatchObject({
      status: 'INVALID_ARGUMENT',
      details: [{ reason: 'unsupported_parameter', metadata: { param: 'tools[0].googleSearch' } }],
    })
    expect(await ask('nova', { candidateCount: 2 })).toMatchObject({
      details: [{ metadata: { param: 'generationConfig.candidateCount' } }],
    })
    expect([openai.seen, bedrock.seen]).toEqual([[], []])
  })

  it('of a stream reach the client', async () => {
    openai.behaviour.cutAfter = 3
    await expect(streamed({ model: 'gpt-test', contents: 'Hi' })).rejects.toThrow('UNAVAILABLE')
    openai.behaviour.cutAfter = undefined
  })
})
