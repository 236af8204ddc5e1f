import Anthropic from '@anthropic-ai/sdk'
import { BedrockRuntimeClient, ConverseCommand, ConverseStreamCommand } from '@aws-sdk/client-bedrock-runtime'
import { type Content, GoogleGenAI, Type } from '@google/genai'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import OpenAI from 'openai'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { ledgerRows } from '../support/ledger-rows.ts'
import { aliceKey, aliceRecord, chat } from '../support/llm-config.ts'
import { jsonAnswer, member, sendEvents } from '../support/mock-server.ts'
import { sqliteUrl } from '../support/resource-api.ts'
import { encrypted } from '../support/vendors/responses-wire.ts'
import { startVendor, type Vendor, vendorKey } from '../support/vendors/vendor.ts'
import { namedEvent } from '../support/vendors/wire.ts'
import { until } from '../support/wait.ts'

// Models that only the Responses API serves, with the clients of all other conversation APIs.

let vendor: Vendor
let gateway: Gateway
let url: string

beforeAll(async () => {
  vendor = await startVendor('openai, Pro')
  url = sqliteUrl()
  const params = { baseUrl: `${vendor.url}/v1`, apiKey: vendorKey }
  const rules = (pattern: string) => [{ name: 'words', regex: { action: 'mask', rules: [{ pattern }] } }]
  const rates = { input: '2', output: '10', cacheRead: '0.5' }
  const models = [
    { name: 'gpt-5-pro', provider: 'openai', params },
    {
      name: 'own',
      provider: { custom: { formats: [{ type: 'responses', path: '/own/responses' }] } },
      params,
    },
    { name: 'cached', provider: 'openai', params: { ...params, model: 'o3-pro' }, cache: { ttl: '1h' } },
    {
      name: 'checked',
      provider: 'openai',
      params: { ...params, model: 'gpt-5.1-codex-max' },
      guardrails: { request: rules('classified'), response: rules('Hello') },
      prompts: { prepend: [{ role: 'system', content: 'Answer in verse.' }] },
      overrides: { max_tokens: 300 },
    },
    { name: 'cut', provider: 'openai', params: { ...params, model: 'gpt-5-pro' } },
    { name: 'billed', provider: 'openai', params: { ...params, model: 'gpt-5-pro' } },
    { name: 'echo', provider: 'echo' },
  ]
  const failover = (name: string, ...targets: string[]) => ({
    ...{ name, routing: { failover: { targets: targets.map((model, priority) => ({ model, priority })) } } },
  })
  gateway = await startGateway(
    {
      config: {
        database: { url },
        modelCatalog: [{ inline: { providers: { openai: { models: { 'gpt-5-pro': { rates } } } } } }],
      },
      llm: {
        models,
        virtualModels: [failover('sure', 'gpt-5-pro', 'echo'), failover('steady', 'cut', 'echo')],
        policies: { apiKey: { mode: 'strict', keys: [aliceRecord] } },
      },
    },
    { lifetime: 'file' },
  )
})

beforeEach(() => {
  vendor.seen.length = 0
})

const hello = 'Hello there, how may I help? 🙂'
const thought = 'Let me see.'
const parameters = { type: 'object', properties: { city: { type: 'string' } } }
const sent = (request = 0) => vendor.seen[request]?.json as Record<string, unknown>

/** Types of the items that the provider received. */
const itemTypes = (request: number) => (sent(request)['input'] as { type: string }[]).map(({ type }) => type)

describe('the openai package', () => {
  const client = () => new OpenAI({ apiKey: aliceKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 })
  const tools = [{ type: 'function' as const, function: { name: 'get_weather', parameters } }]

  it.each(['gpt-5-pro', 'own'])('receives a completion of %s', async (model) => {
    const completion = await client().chat.completions.create({
      model,
      messages: [{ role: 'user', content: 'Hi' }],
      reasoning_effort: 'high',
    })
    const [choice] = completion.choices
    expect(choice?.message.content).toBe(hello)
    expect(choice?.finish_reason).toBe('stop')
    expect(member(choice, 'message', 'reasoning_content')).toBe(thought)
    expect(completion.usage).toMatchObject({ prompt_tokens_details: { cached_tokens: 6 } })
    expect(vendor.seen[0]?.path).toBe(model === 'own' ? '/own/responses' : '/v1/responses')
    expect(sent()).toEqual({
      model,
      input: [{ type: 'message', role: 'user', content: 'Hi' }],
      store: false,
      reasoning: { effort: 'high', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
    })
  })

  it('streams calls of tools, and returns their results', async () => {
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Weather of both?' }]
    const stream = client().chat.completions.stream({ model: 'gpt-5-pro', messages, tools })
    const { choices, usage } = await stream.finalChatCompletion()
    const message = choices[0]?.message
    if (message?.tool_calls === undefined) throw new Error('no calls')
    const inputs = message.tool_calls.map((call) => JSON.parse(String(member(call, 'function', 'arguments'))))
    expect(inputs).toEqual([{ city: 'Rome' }, { city: 'Oslo' }])
    expect(usage).toMatchObject({ prompt_tokens_details: { cached_tokens: 6 } })
    messages.push(message)
    for (const { id } of message.tool_calls) messages.push({ role: 'tool', tool_call_id: id, content: 'hot' })
    const last = await client().chat.completions.create({ model: 'gpt-5-pro', messages, tools })
    expect(last.choices[0]?.message.content).toBe('The results are hot and hot.')
    expect(itemTypes(1)).toEqual([
      ...['message', 'function_call', 'function_call', 'function_call_output', 'function_call_output'],
    ])
  })

  it('may return encrypted reasoning with results', async () => {
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Weather?' }]
    const request = { model: 'gpt-5-pro', messages, tools, reasoning_effort: 'high' as const }
    const { choices } = await client().chat.completions.create(request)
    const message = choices[0]?.message
    const [call] = message?.tool_calls ?? []
    if (message === undefined || call === undefined) throw new Error('no call')
    messages.push(message, { role: 'tool', tool_call_id: call.id, content: 'hot' })
    await client().chat.completions.create(request)
    expect(itemTypes(1)).toEqual(['message', 'reasoning', 'function_call', 'function_call_output'])
    expect(member(sent(1), 'input', 1, 'encrypted_content')).toBe(encrypted)
  })

  it('parses structured output', async () => {
    const completion = await client().chat.completions.parse({
      model: 'gpt-5-pro',
      messages: [{ role: 'user', content: 'A city' }],
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'city', schema: parameters, strict: true },
      },
    })
    expect(completion.choices[0]?.message.parsed).toEqual({ city: 'Rome' })
  })

  it('receives errors, and refusals of fields', async () => {
    const create = (more: object) =>
      client().chat.completions.create({
        ...{ model: 'gpt-5-pro', messages: [{ role: 'user' as const, content: 'Hi' }] },
        ...more,
      })
    await expect(create({ n: 2 })).rejects.toMatchObject({ status: 400, param: 'n' })
    const failed = {
      id: 'resp_1',
      status: 'failed',
      error: { code: 'server_error', message: 'Down.' },
      output: [],
    }
    vendor.next(jsonAnswer(200, failed))
    await expect(create({})).rejects.toMatchObject({ status: 502, message: expect.stringContaining('Down.') })
  })
})

describe('the Anthropic package', () => {
  const client = () => new Anthropic({ apiKey: aliceKey, baseURL: gateway.url, maxRetries: 0 })
  const shared = { model: 'gpt-5-pro', max_tokens: 4000 }
  const tools = [{ name: 'get_weather', input_schema: parameters as Anthropic.Tool.InputSchema }]
  const thinking = { type: 'enabled' as const, budget_tokens: 2000 }

  it.each([false, true])('returns encrypted reasoning with results (streamed: %s)', async (isStreamed) => {
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Weather?' }]
    const request = { ...shared, messages, tools, thinking }
    const first = isStreamed
      ? await client().messages.stream(request).finalMessage()
      : await client().messages.create(request)
    expect(first.stop_reason).toBe('tool_use')
    const [block, call] = first.content
    if (block?.type !== 'thinking' || call?.type !== 'tool_use') throw new Error('no thinking or call')
    expect([block.thinking, call.input]).toEqual([thought, { city: 'Rome' }])
    messages.push({ role: 'assistant', content: first.content })
    messages.push({
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: call.id, content: 'hot' }],
    })
    const last = await client().messages.create(request)
    expect(last.content.at(-1)).toMatchObject({ text: 'The results are hot.' })
    expect(itemTypes(1)).toEqual(['message', 'reasoning', 'function_call', 'function_call_output'])
    expect(member(sent(1), 'input', 1)).toMatchObject({ id: 'rs_1', encrypted_content: encrypted })
    for (const request of [0, 1])
      expect(sent(request)).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] })
  })

  it('receives no thinking without a request for it', async () => {
    const { content } = await client().messages.create({
      ...{ ...shared, messages: [{ role: 'user', content: 'Hi' }] },
      output_config: { effort: 'high' },
    })
    expect(sent()).toMatchObject({ reasoning: { effort: 'high' } })
    expect([sent()['include'], member(sent(), 'reasoning', 'summary')]).toEqual([undefined, undefined])
    expect(content.at(-1)).toMatchObject({ type: 'text', text: hello })
  })
})

it('Google’s SDK returns encrypted reasoning in thought signatures', async () => {
  const client = new GoogleGenAI({ apiKey: aliceKey, httpOptions: { baseUrl: gateway.url } })
  const declaration = {
    name: 'get_weather',
    parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } } },
  }
  const config = {
    tools: [{ functionDeclarations: [declaration] }],
    thinkingConfig: { includeThoughts: true, thinkingBudget: 2048 },
  }
  const contents: Content[] = [{ role: 'user', parts: [{ text: 'Weather?' }] }]
  const parts = []
  for await (const chunk of await client.models.generateContentStream({
    model: 'gpt-5-pro',
    contents,
    config,
  }))
    parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []))
  expect(parts.map(({ text }) => text ?? '').join('')).toBe(thought)
  const call = parts.find(({ functionCall }) => functionCall)
  expect(call).toMatchObject({
    functionCall: { args: { city: 'Rome' } },
    thoughtSignature: expect.any(String),
  })
  const functionResponse = {
    id: call?.functionCall?.id ?? '',
    name: 'get_weather',
    response: { output: 'hot' },
  }
  contents.push({ role: 'model', parts }, { role: 'user', parts: [{ functionResponse }] })
  const { text } = await client.models.generateContent({ model: 'gpt-5-pro', contents, config })
  expect(text).toBe('The results are hot.')
  expect(member(sent(1), 'input', 1)).toMatchObject({ type: 'reasoning', encrypted_content: encrypted })
})

it('the SDK of AWS converses, with signed reasoning', async () => {
  const client = new BedrockRuntimeClient({
    ...{ region: 'eu-central-1', endpoint: gateway.url, maxAttempts: 1, token: { token: aliceKey } },
    ...{ authSchemePreference: ['httpBearerAuth'], requestHandler: new NodeHttpHandler() },
  })
  const input = {
    ...{ modelId: 'gpt-5-pro', messages: [{ role: 'user' as const, content: [{ text: 'Hi' }] }] },
    additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 2000 } },
  }
  const { output, usage } = await client.send(new ConverseCommand(input))
  expect(output?.message?.content).toMatchObject([
    { reasoningContent: { reasoningText: { text: thought, signature: expect.any(String) } } },
    { text: hello },
  ])
  expect(usage?.cacheReadInputTokens).toBe(6)
  expect(sent()).not.toHaveProperty('max_output_tokens')
  let text = ''
  let signature = ''
  const { stream } = await client.send(new ConverseStreamCommand(input))
  for await (const { contentBlockDelta } of stream ?? []) {
    text += contentBlockDelta?.delta?.text ?? ''
    signature += contentBlockDelta?.delta?.reasoningContent?.signature ?? ''
  }
  expect([text, signature.length > 0]).toEqual([hello, true])
})

describe('policies', () => {
  const ask = async (model: string, more: object = {}) => {
    const response = await chat(gateway, { model, ...more })
    return { response, text: await response.text() }
  }

  it.each([false, true])('guards and prompts apply (streamed: %s)', async (stream) => {
    const messages = [{ role: 'user', content: 'A classified question' }]
    const { text } = await ask('checked', { messages, stream })
    expect(text).not.toContain('Hello')
    expect(text).toContain('help?')
    expect(sent()).toMatchObject({ model: 'gpt-5.1-codex-max', max_output_tokens: 300 })
    const [system, user] = sent()['input'] as { content: string }[]
    expect(system).toMatchObject({ role: 'system', content: 'Answer in verse.' })
    expect(user?.content).not.toContain('classified')
  })

  it('responses are cached in the form of the client', async () => {
    const first = await ask('cached')
    const second = await ask('cached')
    expect([first, second].map(({ response }) => response.headers.get('x-cache'))).toEqual(['miss', 'hit'])
    expect(JSON.parse(second.text)).toEqual(JSON.parse(first.text))
    expect(vendor.seen).toHaveLength(1)
  })

  it('a failure moves to the next model, of another API', async () => {
    vendor.next(jsonAnswer(500, { error: { message: 'Down', type: 'server_error' } }))
    const { response, text } = await ask('sure')
    expect([response.status, JSON.parse(text).system_fingerprint]).toEqual([200, 'fp_echo'])
    expect(vendor.seen).toHaveLength(1)
  })

  it('a stream without content is replaced by that of the next model', async () => {
    vendor.next((_, response) => {
      const begun = {
        type: 'response.created',
        response: { id: 'resp_1', status: 'in_progress', output: [] },
      }
      sendEvents(response, [namedEvent(begun)], { cutAfter: 1 })
    })
    const { text } = await ask('steady', { stream: true })
    expect(vendor.seen).toHaveLength(1)
    expect(text.match(/"role":"assistant"/g)).toHaveLength(1)
    expect([text.includes('fp_echo'), text.includes('"error"')]).toEqual([true, false])
  })

  it('usage and costs are in the ledger', async () => {
    Object.assign(vendor.billed, { input: 0, output: 0 })
    await ask('billed', { stream: true })
    const row = await until('the row of the request', async () =>
      (await ledgerRows(url, 1)).find((each) => each['request_model'] === 'billed'),
    )
    const { input, output } = vendor.billed
    expect(row).toMatchObject({
      ...{ input_tokens: input, cached_input_tokens: 6, output_tokens: output, tokens_estimated: 0 },
      cost_picodollars: (input - 6) * 2e6 + 6 * 0.5e6 + output * 10e6,
    })
  })
})
