import { generateKeyPairSync } from 'node:crypto'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { googleKey, googleToken, type MockGoogle, mockGoogle } from '../support/mock-google.ts'
import { until } from '../support/wait.ts'

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

let google: MockGoogle
let gateway: Gateway

beforeAll(async () => {
  google = await mockGoogle()
  const credential = JSON.stringify({
    type: 'service_account',
    client_email: 'gateway@team.iam.gserviceaccount.com',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    token_uri: `${google.url}/token`,
  })
  const vertex = { vertexProject: 'team', baseUrl: google.url }
  const auth = { gcp: { credential } }
  gateway = await startGateway(
    {
      llm: {
        models: [
          { name: 'vertex', provider: 'vertex', auth, params: { ...vertex, model: 'google/gemini-3-pro' } },
          { name: 'counted', provider: 'vertex', auth, params: { ...vertex, model: 'google/gemini-3-pro' } },
          { name: 'claude-*', provider: 'vertex', auth, params: vertex },
          { name: '*', provider: 'gemini', params: { baseUrl: google.url, apiKey: googleKey } },
        ],
      },
    },
    { lifetime: 'file' },
  )
})

beforeEach(() => {
  google.seen.length = 0
})

const question = [{ role: 'user' as const, content: 'Hi' }]
const openAi = () => new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'unused', maxRetries: 0 })
const anthropic = () => new Anthropic({ baseURL: gateway.url, apiKey: 'unused', maxRetries: 0 })

const tool = {
  type: 'function' as const,
  function: {
    name: 'weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}

it("the double answers Google's SDK", async () => {
  const client = new GoogleGenAI({ apiKey: googleKey, httpOptions: { baseUrl: google.url } })
  const whole = await client.models.generateContent({ model: 'gemini-2.5-flash', contents: 'Hi' })
  expect(whole.text).toBe('Hello 🙂')
  let streamed = ''
  const config = { thinkingConfig: { includeThoughts: true } }
  const stream = await client.models.generateContentStream({
    model: 'gemini-2.5-flash',
    contents: 'Hi',
    config,
  })
  for await (const chunk of stream) streamed += chunk.text ?? ''
  expect(streamed).toBe(whole.text)
  const { totalTokens } = await client.models.countTokens({ model: 'gemini-3-pro', contents: 'Hi' })
  expect(totalTokens).toBe(31)
})

describe("Google's SDK", () => {
  const clientOf = (baseUrl: string, apiVersion: string) =>
    new GoogleGenAI({ apiKey: googleKey, apiVersion, httpOptions: { baseUrl } })

  async function readAll(client: GoogleGenAI, model: string) {
    const config = {
      thinkingConfig: { includeThoughts: true },
      tools: [
        { functionDeclarations: [{ name: 'weather', parametersJsonSchema: tool.function.parameters }] },
      ],
    }
    const calls = await client.models.generateContent({ model, contents: 'Hi', config })
    const chunks = []
    for await (const chunk of await client.models.generateContentStream({ model, contents: 'Hi' }))
      chunks.push(chunk)
    const counted = await client.models.countTokens({ model, contents: 'Hi' })
    const failed = await client.models
      .generateContent({ model, contents: 'exhaust' })
      .catch(({ status, message }) => ({ status, message }))
    // The whole HTTP response contains headers of the connection.
    const bare = JSON.stringify([calls, chunks, counted, failed], (name, value) =>
      name === 'sdkHttpResponse' ? undefined : value,
    )
    return JSON.parse(bare)
  }

  it.each(['v1', 'v1beta'])('receives the same from the gateway as from Google, in %s', async (version) => {
    const direct = await readAll(clientOf(google.url, version), 'gemini-3-pro')
    expect(await readAll(clientOf(gateway.url, version), 'gemini-3-pro')).toEqual(direct)
    expect(direct[1].length).toBeGreaterThan(1)
    expect(direct[3]).toMatchObject({ status: 429 })
    // An alias that leads to Vertex AI.
    expect(await readAll(clientOf(gateway.url, version), 'vertex')).toEqual(direct)
  })

  it('sends a key of the gateway, which Google never receives', async () => {
    const keyed = await startGateway({
      llm: {
        policies: { apiKey: { keys: [{ key: 'gateway-canary-key', metadata: { user: 'a' } }] } },
        models: [{ name: '*', provider: 'gemini', params: { baseUrl: google.url, apiKey: googleKey } }],
      },
    })
    const client = (apiKey: string) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: keyed.url } })
    const request = { model: 'gemini-2.5-flash', contents: 'Hi' }
    expect((await client('gateway-canary-key').models.generateContent(request)).text).toBe('Hello 🙂')
    await expect(client('wrong').models.generateContent(request)).rejects.toMatchObject({ status: 401 })
    const url = `${keyed.url}/v1beta/models/gemini-2.5-flash:generateContent`
    const init = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ contents: [{ parts: [{ text: 'Hi' }] }] }),
    }
    expect((await fetch(`${url}?key=gateway-canary-key`, init)).status).toBe(200)
    const denied = await fetch(`${url}?key=wrong`, init)
    expect(denied.status).toBe(401)
    expect(await denied.json()).toMatchObject({ error: { code: 401, status: 'UNAUTHENTICATED' } })
    await keyed.logged(4)
    const outputs = [keyed.stdout(), keyed.stderr(), JSON.stringify(google.seen)].join('\n')
    expect(outputs).not.toContain('gateway-canary-key')
  })
})

describe.each(['gemini-3-pro', 'vertex'])('OpenAI’s SDK with %s', (model) => {
  it('receives whole and streamed completions', async () => {
    const params = { model, messages: question, reasoning_effort: 'low' as const }
    const whole = await openAi().chat.completions.create(params)
    expect(whole).toMatchObject({
      model: 'gemini-3-pro',
      choices: [{ message: { content: 'Hello 🙂', reasoning_content: 'Hmm. ' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 20, completion_tokens: 12, total_tokens: 32 },
    })
    const stream = await openAi().chat.completions.create({
      ...params,
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = []
    for await (const chunk of stream) chunks.push(chunk)
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('Hello 🙂')
    expect(chunks.at(-1)?.usage).toEqual(whole.usage)
  })

  it('calls tools in parallel, and returns results with the signature of the calls', async () => {
    const messages: OpenAI.ChatCompletionMessageParam[] = [...question]
    const first = await openAi().chat.completions.create({ model, messages, tools: [tool] })
    const message = first.choices[0]?.message
    expect(first.choices[0]?.finish_reason).toBe('tool_calls')
    const calls = message?.tool_calls ?? []
    expect(calls.map((call) => call.type === 'function' && call.function.arguments)).toEqual([
      '{"city":"Rome"}',
      '{"city":"Oslo"}',
    ])
    // Clients send the known fields only.
    const known = calls.map(({ id, ...call }) => ({
      id,
      type: 'function' as const,
      function: call.type === 'function' ? call.function : { name: '', arguments: '' },
    }))
    messages.push({ role: 'assistant', content: null, tool_calls: known })
    for (const { id } of calls.toReversed())
      messages.push({ role: 'tool', tool_call_id: id, content: id === calls[0]?.id ? 'hot' : 'cold' })
    const second = await openAi().chat.completions.create({ model, messages, tools: [tool] })
    expect(second.choices[0]?.message.content).toBe(
      'It is {"name":"weather","response":{"output":"hot"}} true',
    )
  })
})

describe('Anthropic’s SDK', () => {
  it.each(['gemini-3-pro', 'vertex', 'claude-sonnet-4-5-20250929'])(
    'streams messages of %s',
    async (model) => {
      const params = { model, max_tokens: 50, messages: question }
      const whole = await anthropic().messages.create(params)
      const streamed = await anthropic().messages.stream(params).finalMessage()
      expect(streamed.content).toEqual(whole.content)
      expect(streamed.usage.output_tokens).toBe(whole.usage.output_tokens)
      expect(whole.stop_reason).toBe('end_turn')
    },
  )

  it('returns tool results with the signature of the calls', async () => {
    const tools = [
      { name: 'weather', input_schema: { ...tool.function.parameters, type: 'object' as const } },
    ]
    const params = { model: 'gemini-3-pro', max_tokens: 50, tools }
    const { content } = await anthropic()
      .messages.stream({ ...params, messages: question })
      .finalMessage()
    const results = content.flatMap((block) =>
      block.type === 'tool_use'
        ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: 'hot' }]
        : [],
    )
    expect(results).toHaveLength(2)
    const messages = [
      ...question,
      { role: 'assistant' as const, content },
      { role: 'user' as const, content: results },
    ]
    const { content: last } = await anthropic().messages.create({ ...params, messages })
    expect(last[0]).toMatchObject({ text: 'It is {"name":"weather","response":{"output":"hot"}} true' })
  })
})

it('responses are served by translation', async () => {
  const response = await openAi().responses.create({ model: 'gemini-3-pro', input: 'Hi' })
  expect(response.output_text).toBe('Hello 🙂')
  expect(response.usage).toMatchObject({ input_tokens: 20, output_tokens: 12 })
})

it.each([
  ['lost', 'Hi', 404, 'models/lost is not found for API version v1beta'],
  ['gemini-3-pro', 'exhaust', 429, 'Quota exceeded for quota metric.'],
])('errors of Google for %s have the shape of the client', async (model, content, status, message) => {
  const messages = [{ role: 'user' as const, content }]
  await expect(openAi().chat.completions.create({ model, messages })).rejects.toMatchObject({
    status,
    error: { message },
  })
  await expect(anthropic().messages.create({ model, max_tokens: 5, messages })).rejects.toMatchObject({
    status,
  })
})

it('counts are those that Google charged, with one token for concurrent calls that no output shows', async () => {
  const { input, output } = google.billed
  const ask = (stream: boolean) =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'counted', messages: question, stream }),
    }).then((response) => response.text())
  await Promise.all([ask(false), ask(true), ask(true)])
  const lines = await until('three lines of the model', async () => {
    const found = (await gateway.logged(1)).filter(({ model }) => model === 'counted')
    return found.length === 3 && found
  })
  const sum = (name: string) => lines.reduce((total, line) => total + Number(line[name]), 0)
  expect([sum('inputTokens'), sum('outputTokens')]).toEqual([
    google.billed.input - input,
    google.billed.output - output,
  ])
  const outputs = [gateway.stdout(), gateway.stderr(), await gateway.metrics()].join('\n')
  for (const secret of [googleKey, googleToken, 'PRIVATE KEY']) expect(outputs).not.toContain(secret)
})
