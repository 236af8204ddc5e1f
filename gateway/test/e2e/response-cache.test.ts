import OpenAI from 'openai'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freePorts } from '../support/free-port.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { ledgerRows } from '../support/ledger-rows.ts'
import { aliceKey, aliceRecord, anthropicModel, chat, openAiModel } from '../support/llm-config.ts'
import { seriesOf } from '../support/metrics.ts'
import { type MockAnthropic, mockAnthropic } from '../support/mock-anthropic.ts'
import { type MockOpenAi, mockOpenAi, openAiKey } from '../support/mock-openai.ts'
import { sqliteUrl } from '../support/resource-api.ts'
import { until } from '../support/wait.ts'

const bobKey = 'tg-canary-bob-77d0'
const bobRecord = { key: bobKey, metadata: { id: 'key-bob', name: 'Bob', user: 'bob', group: 'platform' } }
const cache = { ttl: '1h' }
const rates = { input: '2', output: '10' }
const capacity = 100_000

let gateway: Gateway
let openai: MockOpenAi
let anthropic: MockAnthropic
let url: string
let routedUrl: string
let asked = 0

beforeAll(async () => {
  openai = await mockOpenAi({ lifetime: 'file' })
  anthropic = await mockAnthropic({ lifetime: 'file' })
  url = sqliteUrl()
  const [port = 0] = await freePorts(1)
  routedUrl = `http://127.0.0.1:${port}`
  gateway = await startGateway(
    {
      config: {
        database: { url },
        // Each data plane has its own memory.
        workerThreads: 1,
        logging: { explain: 'all' },
        modelCatalog: [{ inline: { providers: { openai: { models: { 'gpt-test': { rates } } } } } }],
      },
      llm: {
        models: [
          openAiModel('gpt-test', openai.url, { cache }),
          openAiModel('gpt-shared', openai.url, { cache: { ...cache, key: 'apiKey.group' } }),
          openAiModel('gpt-guarded', openai.url, {
            cache,
            guardrails: {
              response: [{ name: 'words', regex: { action: 'reject', rules: [{ pattern: 'forbidden' }] } }],
              streaming: 'buffered',
            },
          }),
          openAiModel('gpt-plain', openai.url),
          openAiModel('text-embedding-3', openai.url, { cache }),
          anthropicModel('claude-test', anthropic.url, { cache }),
        ],
        policies: {
          apiKey: { mode: 'strict', keys: [aliceRecord, bobRecord] },
          localRateLimit: [{ tokens: capacity, unit: 'Hours' }],
        },
      },
      gateways: { routed: { port } },
      routes: [
        {
          name: 'ai',
          gateways: 'routed',
          policies: { ai: { cache } },
          backends: [{ ai: { provider: { openAI: {} }, hostOverride: new URL(openai.url).host } }],
        },
      ],
    },
    { lifetime: 'file' },
  )
})

beforeEach(() => {
  openai.seen.length = 0
  anthropic.seen.length = 0
})

const clientOf = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 })

/** A question that no other test asks. */
function question(): { role: 'user'; content: string }[] {
  asked += 1
  return [{ role: 'user', content: `Question ${asked}` }]
}

const cacheOf = (response: Response) => response.headers.get('x-cache')

describe('the openai package', () => {
  it('gets a stored completion', async () => {
    const request = { model: 'gpt-test', messages: question() }
    const create = () => clientOf(aliceKey).chat.completions.create(request).withResponse()
    const [first, second] = [await create(), await create()]
    expect([cacheOf(first.response), cacheOf(second.response)]).toEqual(['miss', 'hit'])
    expect(second.data).toEqual(first.data)
    expect(second.response.headers.get('content-type')).toBe('application/json')
    expect(second.response.headers.get('age')).toMatch(/^\d+$/)
    expect(openai.seen).toHaveLength(1)
  })

  it('gets a stored stream, also after one that is not streamed', async () => {
    const request = { model: 'gpt-test', messages: question() }
    await clientOf(aliceKey).chat.completions.create(request)
    const results: unknown[] = []
    for (let times = 0; times < 2; times += 1) {
      const { data, response } = await clientOf(aliceKey)
        .chat.completions.create({ ...request, stream: true, stream_options: { include_usage: true } })
        .withResponse()
      const chunks: unknown[] = []
      for await (const chunk of data) chunks.push(chunk)
      expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
      results.push({ cache: cacheOf(response), chunks })
    }
    const [first, second] = results as { cache: string; chunks: unknown[] }[]
    expect([first?.cache, second?.cache]).toEqual(['miss', 'hit'])
    expect(second?.chunks).toEqual(first?.chunks)
    expect(second?.chunks.length).toBeGreaterThan(3)
    expect(openai.seen).toHaveLength(2)
  })

  it('gets stored embeddings, responses and completions', async () => {
    const client = clientOf(aliceKey)
    const input = question()[0]?.content ?? ''
    const calls = [
      () => client.embeddings.create({ model: 'text-embedding-3', input }).withResponse(),
      () => client.responses.create({ model: 'gpt-test', input }).withResponse(),
      () => client.completions.create({ model: 'gpt-test', prompt: input }).withResponse(),
    ]
    for (const create of calls) {
      const [first, second] = [await create(), await create()]
      expect([cacheOf(first.response), cacheOf(second.response)]).toEqual(['miss', 'hit'])
      expect(second.data).toEqual(first.data)
    }
    expect(openai.seen).toHaveLength(3)
  })
})

it('never returns the response of another key', async () => {
  const request = { model: 'gpt-test', messages: question() }
  const results: unknown[] = []
  for (const key of [aliceKey, bobKey, aliceKey, bobKey]) {
    const { response } = await clientOf(key).chat.completions.create(request).withResponse()
    results.push(cacheOf(response))
  }
  expect(results).toEqual(['miss', 'miss', 'hit', 'hit'])
  const shared = { ...request, model: 'gpt-shared' }
  await clientOf(aliceKey).chat.completions.create(shared)
  const { response } = await clientOf(bobKey).chat.completions.create(shared).withResponse()
  expect(cacheOf(response)).toBe('hit')
})

it('returns stored messages, translated ones too, and those of an ai backend', async () => {
  const messages = question()
  const paths = [
    { path: '/v1/messages', model: 'claude-test' },
    { path: '/v1/messages', model: 'gpt-test' },
    { path: '/v1/chat/completions', model: 'claude-test' },
    { path: '/v1/chat/completions', model: 'gpt-routed', url: routedUrl },
  ]
  for (const { path, model, url: other } of paths) {
    for (const stream of [false, true]) {
      const body = { model, messages, max_tokens: 9, stream }
      const headers: Record<string, string> = other ? { authorization: `Bearer ${openAiKey}` } : {}
      const texts: string[] = []
      for (const expected of ['miss', 'hit']) {
        const reply = await chat(other ? { url: other } : gateway, body, { path, headers })
        expect([path, model, stream, reply.status, cacheOf(reply)]).toEqual([
          path,
          model,
          stream,
          200,
          expected,
        ])
        texts.push(await reply.text())
      }
      expect(texts[1]).toBe(texts[0])
    }
  }
})

it('stores nothing for no-store, errors and broken streams', async () => {
  const messages = question()
  const noStore = { headers: { 'cache-control': 'no-store' } }
  expect(cacheOf(await chat(gateway, { model: 'gpt-test', messages }, noStore))).toBeNull()
  openai.behaviour.cutAfter = 2
  const stream = { model: 'gpt-test', messages, stream: true }
  await (await chat(gateway, stream)).text()
  openai.behaviour.cutAfter = undefined
  const again = await chat(gateway, stream)
  await again.text()
  expect(cacheOf(again)).toBe('miss')
  expect(cacheOf(await chat(gateway, { model: 'gpt-test', messages }))).toBe('miss')
  expect(cacheOf(await chat(gateway, { model: 'gpt-plain', messages }))).toBeNull()
})

it('applies guards to stored responses', async () => {
  openai.behaviour.content = 'a forbidden answer'
  const messages = question()
  for (const stream of [false, true]) {
    const calls = openai.seen.length
    for (let times = 0; times < 2; times += 1) {
      const reply = await chat(gateway, { model: 'gpt-guarded', messages, stream })
      expect(await reply.text()).not.toContain('forbidden')
    }
    expect(openai.seen.length - calls).toBe(1)
  }
  openai.behaviour.content = 'an answer'
  const request = { model: 'gpt-guarded', messages: question() }
  const first = await (await chat(gateway, request)).text()
  const second = await chat(gateway, request)
  expect([cacheOf(second), await second.text()]).toEqual(['hit', first])
})

it('marks hits in ledger, log, explanation and metrics, without tokens and cost', async () => {
  const request = { model: 'gpt-test', messages: question() }
  const replies = [await chat(gateway, request), await chat(gateway, request)]
  const ids = replies.map(({ headers }) => headers.get('x-request-id'))
  const left = replies.map(({ headers }) => Number(headers.get('x-ratelimit-remaining')))
  for (const reply of replies) await reply.text()
  // The estimate of a hit is released at its end.
  const after = await chat(gateway, request)
  expect(Number(after.headers.get('x-ratelimit-remaining'))).toBe(left[1])
  const rows = await until('the rows of both', async () => {
    const found = (await ledgerRows(url, 1)).filter(({ id }) => ids.includes(String(id)))
    return found.length === 2 ? found : undefined
  })
  expect(rows).toMatchObject([
    { cache: 'miss', attempts: 1, input_tokens: 21, output_tokens: 9, cost_status: 'exact' },
    { cache: 'hit', attempts: 0, input_tokens: null, cost_picodollars: null, status: 200 },
  ])
  expect(rows[1]).toMatchObject({ served_model: rows[0]?.['served_model'], provider: 'openai' })
  expect(JSON.parse(String(rows[1]?.['explanation']))).toMatchObject({ cache: 'hit' })
  const line = await until('the line of the hit', () =>
    gateway.requests().find((found) => found['requestId'] === ids[1]),
  )
  expect(line).toMatchObject({ cache: 'hit', servedBy: 'gpt-test' })
  expect(line).not.toHaveProperty('totalTokens')
  const metrics = await gateway.metrics()
  const metricOf = (name: string, labels: object) =>
    seriesOf(metrics, name).find((series) => JSON.stringify(series.labels) === JSON.stringify(labels))?.value
  expect(metricOf('tollgate_llm_cache_requests_total', { model: 'gpt-test', result: 'hit' })).toBeGreaterThan(
    3,
  )
  expect(metricOf('tollgate_llm_cache_bytes', { model: 'gpt-test' })).toBeGreaterThan(1_000)
})
