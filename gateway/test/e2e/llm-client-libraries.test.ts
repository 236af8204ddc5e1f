import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { ChatAnthropic } from '@langchain/anthropic'
import type { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { type AIMessageChunk, HumanMessage, ToolMessage } from '@langchain/core/messages'
import { ChatGoogleGenerativeAI } from '@langchain/google-genai'
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai'
import {
  embedMany,
  generateObject,
  generateText,
  jsonSchema,
  type LanguageModel,
  stepCountIs,
  streamText,
  tool,
} from 'ai'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Gateway } from '../support/gateway.ts'
import { schema } from '../support/llm-matrix/features.ts'
import { startMatrix } from '../support/llm-matrix/gateway.ts'
import { modelOf, type ProviderRow, testedRows } from '../support/llm-matrix/providers.ts'
import { recordedCell } from '../support/llm-matrix/recording.ts'
import { member } from '../support/mock-server.ts'

// Client libraries with the models of every provider, through one gateway.

let gateway: Gateway

beforeAll(async () => {
  const matrix = await startMatrix()
  gateway = matrix.gateway
})

const apiKey = 'unused'
const v1 = () => `${gateway.url}/v1`

/** Rows whose models an API of clients serves. */
function rowsOf(api: string): readonly ProviderRow[] {
  return testedRows.filter((row) => !recordedCell(api, row.label).startsWith('400'))
}

type Library<Model> = { name: string; api: string; create(model: string): Model }

const inParallel = (rows: readonly ProviderRow[], run: (row: ProviderRow) => Promise<void>) =>
  Promise.all(
    rows.map((row) => run(row).catch((error) => Promise.reject(new Error(row.label, { cause: error })))),
  )

const hello = 'Hello there, how may I help? 🙂'
/** Clients of Google wrap results in objects, which become JSON in other APIs. */
const results = /The results are .*21 degrees in Rome.* and .*21 degrees in Oslo/

const vercel: readonly Library<LanguageModel>[] = [
  {
    name: 'openai, chat',
    api: 'chat_completions',
    create: (model) => createOpenAI({ apiKey, baseURL: v1() }).chat(model),
  },
  {
    name: 'openai, responses',
    api: 'responses',
    create: (model) => createOpenAI({ apiKey, baseURL: v1() }).responses(model),
  },
  {
    name: 'openai-compatible',
    api: 'chat_completions',
    create: (model) =>
      createOpenAICompatible({ name: 'tollgate', apiKey, baseURL: v1(), supportsStructuredOutputs: true })(
        model,
      ),
  },
  {
    name: 'anthropic',
    api: 'messages',
    create: (model) => createAnthropic({ apiKey, baseURL: v1() })(model),
  },
  {
    name: 'google',
    api: 'generate_content',
    create: (model) => createGoogleGenerativeAI({ apiKey, baseURL: `${gateway.url}/v1beta` })(model),
  },
]

describe.each(vercel)('the AI SDK with $name', ({ api, create }) => {
  const citySchema = jsonSchema<{ city: string }>({ ...schema, type: 'object' })
  const weather = tool({
    description: 'Weather of a city',
    inputSchema: citySchema,
    execute: async ({ city }) => `21 degrees in ${city}`,
  })
  const asking = {
    tools: { get_weather: weather },
    stopWhen: stepCountIs(3),
    maxOutputTokens: 500,
    maxRetries: 0,
  }

  it('generates and streams text', () =>
    inParallel(rowsOf(api), async (row) => {
      const request = { model: create(modelOf(row)), prompt: 'Hi', maxOutputTokens: 500, maxRetries: 0 }
      const whole = await generateText(request)
      const streamed = streamText(request)
      expect(whole.text).toBe(hello)
      expect(await streamed.text).toBe(hello)
      const { inputTokens, outputTokens } = await streamed.usage
      expect(whole.usage).toMatchObject({ inputTokens, outputTokens })
      expect(outputTokens).toBeGreaterThan(0)
    }))

  it('runs tools in several steps', () =>
    inParallel(rowsOf(api), async (row) => {
      const request = { model: create(modelOf(row)), prompt: 'Weather of both?', ...asking }
      const whole = await generateText(request)
      expect(whole.text).toMatch(results)
      const streamed = streamText(request)
      expect(await streamed.text).toMatch(results)
      expect(await streamed.steps).toHaveLength(2)
    }))

  it('generates objects', () =>
    inParallel(rowsOf(api), async (row) => {
      const model = create(modelOf(row))
      const { object } = await generateObject({
        model,
        prompt: 'A city',
        schema: citySchema,
        maxOutputTokens: 500,
        maxRetries: 0,
      })
      expect(object).toEqual({ city: 'Rome' })
    }))
})

const langChain: readonly Library<BaseChatModel>[] = [
  {
    name: 'ChatOpenAI',
    api: 'chat_completions',
    create: (model) => new ChatOpenAI({ model, apiKey, maxRetries: 0, configuration: { baseURL: v1() } }),
  },
  {
    name: 'ChatOpenAI, responses',
    api: 'responses',
    create: (model) =>
      new ChatOpenAI({
        model,
        apiKey,
        maxRetries: 0,
        useResponsesApi: true,
        configuration: { baseURL: v1() },
      }),
  },
  {
    name: 'ChatAnthropic',
    api: 'messages',
    create: (model) =>
      new ChatAnthropic({ model, apiKey, maxRetries: 0, maxTokens: 1000, anthropicApiUrl: gateway.url }),
  },
  {
    name: 'ChatGoogleGenerativeAI',
    api: 'generate_content',
    create: (model) => new ChatGoogleGenerativeAI({ model, apiKey, maxRetries: 0, baseUrl: gateway.url }),
  },
]

describe.each(langChain)('LangChain with $name', ({ api, create }) => {
  const definition = {
    type: 'function',
    function: { name: 'get_weather', description: 'Weather of a city', parameters: schema },
  }

  it('generates and streams text', () =>
    inParallel(rowsOf(api), async (row) => {
      const model = create(modelOf(row))
      const whole = await model.invoke('Hi')
      expect(whole.text).toBe(hello)
      const chunks: AIMessageChunk[] = []
      for await (const chunk of await model.stream('Hi')) chunks.push(chunk)
      expect(chunks.map(({ text }) => text).join('')).toBe(hello)
      // Counts at the start of a stream of Anthropic are added to those at its end by the library.
      const tokens = (message: unknown) => Number(member(message, 'usage_metadata', 'output_tokens'))
      const streamed = chunks.reduce((sum, chunk) => sum.concat(chunk))
      expect(tokens(streamed)).toBeGreaterThanOrEqual(tokens(whole))
    }))

  it('runs tools', () =>
    inParallel(rowsOf(api), async (row) => {
      const model = create(modelOf(row)).bindTools?.([definition])
      const question = new HumanMessage('Weather of both?')
      const called = await model?.invoke([question])
      const calls = called?.tool_calls ?? []
      expect(calls.map(({ args }) => args)).toEqual([{ city: 'Rome' }, { city: 'Oslo' }])
      const answers = calls.map(
        ({ id = '', name, args }) =>
          new ToolMessage({ tool_call_id: id, name, content: `21 degrees in ${args['city']}` }),
      )
      const turns = called === undefined ? [question] : [question, called, ...answers]
      expect((await model?.invoke(turns))?.text).toMatch(results)
    }))

  it('generates objects', () =>
    inParallel(rowsOf(api), async (row) => {
      const structured = create(modelOf(row)).withStructuredOutput({ title: 'city', ...schema })
      expect(await structured.invoke('A city')).toEqual({ city: 'Rome' })
    }))
})

it('embeds texts with both', () =>
  inParallel(
    testedRows.filter(({ label }) =>
      ['openai', 'azure', 'gemini', 'cohere', 'mistral', 'custom'].includes(label),
    ),
    async (row) => {
      const vector = [0.25, -0.5, 0.125]
      const model = createOpenAI({ apiKey, baseURL: v1() }).embeddingModel(modelOf(row))
      const { embeddings } = await embedMany({ model, values: ['a', 'b'], maxRetries: 0 })
      expect(embeddings).toEqual([vector, vector])
      const embedder = new OpenAIEmbeddings({
        model: modelOf(row),
        apiKey,
        maxRetries: 0,
        configuration: { baseURL: v1() },
      })
      expect(await embedder.embedDocuments(['a', 'b'])).toEqual([vector, vector])
    },
  ))
