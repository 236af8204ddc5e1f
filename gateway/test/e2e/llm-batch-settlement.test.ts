import Anthropic from '@anthropic-ai/sdk'
import OpenAI, { toFile } from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { type LedgerRow, ledgerRows } from '../support/ledger-rows.ts'
import { aliceKey, anthropicModel, llmConfig, openAiModel } from '../support/llm-config.ts'
import { mockBatches } from '../support/mock-batches.ts'
import { sqliteUrl } from '../support/resource-api.ts'
import { until } from '../support/wait.ts'

// Two gateways on one database, the second with two data planes. Each request of the provider uses 7 tokens
// of input and 3 of output, so that the prices below make 12 dollars per million requests.

const prices = { rates: { input: '2', output: '4' }, batch: { input: '0.75', output: '2.25' } }
const picodollarsPerRequest = 12_000_000
const tokensPerRequest = 10
const url = sqliteUrl()

let gateways: [Gateway, Gateway]
/** Requests that the providers have served. */
let served = 0
/** Sent to the gateways. */
let calls = 0

const openAi = (gateway: Gateway) =>
  new OpenAI({ apiKey: aliceKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 })
const claude = (gateway: Gateway) => new Anthropic({ apiKey: aliceKey, baseURL: gateway.url, maxRetries: 0 })

beforeAll(async () => {
  const reporting = await mockBatches({ lifetime: 'file', reportsUsage: true })
  const silent = await mockBatches({ lifetime: 'file' })
  const models = { 'gpt-test': prices, 'gpt-lines': prices }
  const config = {
    ...llmConfig(
      {},
      {
        models: [
          openAiModel('gpt-test', reporting.url),
          openAiModel('gpt-lines', silent.url),
          anthropicModel('claude-test', silent.url),
        ],
        policies: {
          budgets: [
            { name: 'tokens', limit: { tokens: 1_000_000 }, window: '366d' },
            { name: 'money', limit: { usd: '100' }, window: '366d' },
          ],
        },
      },
    ),
    config: {
      modelCatalog: [
        { inline: { providers: { openai: { models }, anthropic: { models: { 'claude-test': prices } } } } },
      ],
      logging: { database: { url } },
      session: { key: 'a'.repeat(64) },
    },
  }
  const options = { lifetime: 'file' } as const
  const threaded = { ...config, config: { ...config.config, workerThreads: 2 } }
  gateways = [await startGateway(config, options), await startGateway(threaded, options)]
})

async function createBatch(client: OpenAI, model: string, requests: number) {
  const line = (index: number) =>
    JSON.stringify({
      ...{ custom_id: `r${index}`, method: 'POST', url: '/v1/chat/completions' },
      body: { model, max_completion_tokens: 500, messages: [{ role: 'user', content: 'hello' }] },
    })
  const lines = Array.from({ length: requests }, (_, index) => line(index)).join('\n')
  const file = await client.files.create({
    purpose: 'batch',
    file: await toFile(Buffer.from(lines), 'in.jsonl'),
  })
  calls += 2
  return client.batches.create({
    ...{ input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' },
  })
}

async function usedOf(gateway: Gateway): Promise<Record<string, string>> {
  const response = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/budgets`)
  const { budgets } = (await response.json()) as { budgets: { budget: string; usage: { used: string } }[] }
  return Object.fromEntries(budgets.map(({ budget, usage }) => [budget, usage.used]))
}

/** Waits until both gateways and the ledger have the amounts that the providers charge. */
async function expectSettled(): Promise<LedgerRow[]> {
  const rows = await ledgerRows(url, calls)
  const sum = (column: string) => rows.reduce((total, row) => total + Number(row[column] ?? 0), 0)
  expect([sum('total_tokens'), sum('cost_picodollars')]).toEqual([
    served * tokensPerRequest,
    served * picodollarsPerRequest,
  ])
  const wanted = {
    tokens: `${served * tokensPerRequest}`,
    money: `${(served * picodollarsPerRequest) / 1e12}`,
  }
  for (const gateway of gateways)
    await until('the budgets of both gateways', async () => {
      const used = await usedOf(gateway)
      return Number(used['tokens']) === Number(wanted.tokens) &&
        Number(used['money']) === Number(wanted.money)
        ? true
        : undefined
    })
  return rows
}

describe('the charge of a batch', () => {
  it('becomes that of its usage when an owner reads the batch, once over all gateways', async () => {
    const [one, other] = gateways.map(openAi)
    if (one === undefined || other === undefined) throw new Error('no clients')
    const created = await createBatch(one, 'gpt-test', 2)
    const estimates = await ledgerRows(url, calls)
    expect(estimates.at(-1)).toMatchObject({ tokens_estimated: 1, cost_status: 'estimated' })
    expect(Number(estimates.at(-1)?.['total_tokens'])).toBeGreaterThan(1000)
    served += 2
    // A list has the status of the batch, and settles nothing.
    const [listed] = (await one.batches.list()).data
    calls += 1
    expect([listed?.id, listed?.status]).toEqual([created.id, 'completed'])
    const batches = await Promise.all(
      [one, other, one, other].map((client) => client.batches.retrieve(created.id)),
    )
    calls += 4
    expect(new Set(batches.map(({ id, output_file_id }) => `${id} ${output_file_id}`)).size).toBe(1)
    await (await other.files.content(batches[0]?.output_file_id ?? '')).text()
    calls += 1
    const rows = await expectSettled()
    const settlements = rows.filter(({ settles }) => settles !== null)
    expect(settlements).toMatchObject([
      { settles: estimates.at(-1)?.['id'], tokens_estimated: 0, cost_status: 'exact', operation: 'batch' },
    ])
  })

  it('becomes that of its results if the batch has no usage', async () => {
    const client = openAi(gateways[1])
    const { id } = await createBatch(client, 'gpt-lines', 3)
    const done = await client.batches.retrieve(id)
    const read = async () => (await client.files.content(done.output_file_id ?? '')).text()
    expect((await read()).trim().split('\n')).toHaveLength(3)
    await read()
    calls += 3
    served += 3
    await expectSettled()
  })

  it('is refunded for a batch without results', async () => {
    const client = openAi(gateways[0])
    const { id } = await createBatch(client, 'gpt-lines', 1)
    await client.batches.cancel(id)
    expect((await client.batches.retrieve(id)).status).toBe('cancelled')
    calls += 2
    await expectSettled()
  })

  it('becomes that of the results of a batch of Anthropic', async () => {
    const { batches } = claude(gateways[0]).messages
    const params = {
      ...{ model: 'claude-test', max_tokens: 500 },
      messages: [{ role: 'user' as const, content: 'hello' }],
    }
    const { id } = await batches.create({ requests: ['a', 'b'].map((custom_id) => ({ custom_id, params })) })
    await batches.retrieve(id)
    for await (const { result } of await batches.results(id)) expect(result.type).toBe('succeeded')
    for await (const _ of await claude(gateways[1]).messages.batches.results(id));
    calls += 4
    served += 2
    await expectSettled()
  })
})
