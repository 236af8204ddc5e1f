import { beforeAll, expect, it } from 'vitest'
import { operations } from '../../src/backends/llm/request/endpoints.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { chatClient } from '../support/llm-clients/chat-client.ts'
import { type ApiClient, type Ask, eventsOf } from '../support/llm-clients/client.ts'
import { geminiClient } from '../support/llm-clients/gemini-client.ts'
import { messagesClient } from '../support/llm-clients/messages-client.ts'
import { responsesClient } from '../support/llm-clients/responses-client.ts'
import { type ClientCall, clientCalls } from '../support/llm-matrix/calls.ts'
import { type Feature, features, lossesOf } from '../support/llm-matrix/features.ts'
import {
  allRows,
  modelConfig,
  modelOf,
  type ProviderRow,
  testedRows,
} from '../support/llm-matrix/providers.ts'
import { expectRecorded, type Table } from '../support/llm-matrix/recording.ts'
import { startVendor, type Vendor, vendorKey } from '../support/vendors/vendor.ts'

// Every call and every feature with every provider, through one gateway. The outcomes are recorded in
// golden/llm-calls.json, from which docs/reference/llm-calls.md is generated.

const clients: readonly ApiClient[] = [chatClient, responsesClient, messagesClient, geminiClient]

let gateway: Gateway
const vendors = new Map<ProviderRow, Vendor>()

beforeAll(async () => {
  for (const row of allRows) vendors.set(row, await startVendor())
  const models = [...vendors].map(([row, vendor]) => modelConfig(row, vendor))
  gateway = await startGateway(
    { llm: { models } },
    { lifetime: 'file', env: { GH_COPILOT_TOKEN: vendorKey } },
  )
})

function vendorOf(row: ProviderRow): Vendor {
  const vendor = vendors.get(row)
  if (vendor === undefined) throw new Error(`no vendor of ${row.label}`)
  return vendor
}

async function post(path: string, body: object | FormData): Promise<{ status: number; text: string }> {
  const isForm = body instanceof FormData
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: isForm ? {} : { 'content-type': 'application/json' },
    body: isForm ? body : JSON.stringify(body),
  })
  return { status: response.status, text: await response.text() }
}

/** The API that a vendor has served for a call: `native`, or its name. */
function outcomeOf(api: string, vendor: Vendor): string {
  const served = vendor.served.at(-1)?.api ?? ''
  const native = Object.entries(operations).find(([name]) => name === served)?.[1].api
  return native === api ? 'native' : `→ ${served}`
}

function refusalOf(api: string, status: number, body: string): string {
  const other = /^(?:batch_)?embed_content/.test(api) ? geminiClient : chatClient
  const client = clients.find((one) => one.api === api) ?? other
  const error = client.error(JSON.parse(body))
  return `${status} ${error?.code ?? error?.type ?? JSON.parse(body).code}`
}

/** One column of cells for each row, with rows in parallel. */
async function tableOf(
  rows: readonly ProviderRow[],
  columns: (row: ProviderRow) => AsyncGenerator<[string, string]>,
): Promise<Table> {
  const cells = rows.map(async (row) => {
    const found: Record<string, string> = {}
    for await (const [column, cell] of columns(row)) found[column] = cell
    return [row.label, found] as const
  })
  return Object.fromEntries(await Promise.all(cells))
}

async function callCell({ api, path, body, follows }: ClientCall, row: ProviderRow): Promise<string> {
  const vendor = vendorOf(row)
  vendor.served.length = 0
  const model = modelOf(row)
  const first = follows && (await post(follows.path(model), follows.body(model)))
  if (first !== undefined && first.status >= 400) return refusalOf(api, first.status, first.text)
  const id = first && JSON.parse(first.text).id
  const { status, text } = await post(path(model), body(model, id))
  if (status >= 400) return refusalOf(api, status, text)
  if (vendor.served.length === 0) return api.endsWith('count_tokens') ? 'estimate' : 'gateway'
  return outcomeOf(api, vendor)
}

it('covers every call that the gateway reads', () => {
  const apis = new Set(
    Object.entries(operations)
      // Realtime is a connection with tests of its own.
      .filter(([name]) => !['models', 'stored', 'passthrough', 'realtime'].includes(name))
      .map(([, { api }]) => api),
  )
  expect(clientCalls.map(({ api }) => api)).toEqual([...apis])
})

it('serves, translates or refuses every call as recorded', async () => {
  const table = await tableOf(allRows, async function* (row) {
    for (const call of clientCalls) yield [call.api, await callCell(call, row)]
  })
  expectRecorded('calls', table)
})

async function exchange(client: ApiClient, model: string, ask: Ask) {
  const { status, text } = await post(client.path(model, ask), client.body(model, ask))
  if (status >= 400) return { status, text }
  return {
    status,
    text,
    answer: ask.streaming ? client.readStream(eventsOf(text)) : client.read(JSON.parse(text)),
  }
}

async function featureCell(client: ApiClient, feature: Feature, row: ProviderRow): Promise<string> {
  if (feature.absentIn?.includes(client.api)) return ''
  const vendor = vendorOf(row)
  const lost: string[] = []
  let next: Ask | undefined = feature.ask
  while (next !== undefined) {
    const { status, text, answer } = await exchange(client, modelOf(row), next)
    if (answer === undefined) return refusalOf(client.api, status, text)
    const received = vendor.served.at(-1)?.received
    if (received === undefined) return `${status} without a call of the vendor`
    lost.push(...lossesOf(feature, received, answer))
    if (next.results !== undefined && !answer.text.includes(next.results.join(' and '))) lost.push('results')
    const results: readonly string[] | undefined = next.results === undefined ? feature.results : undefined
    next = results && { ...feature.ask, previous: answer, results }
  }
  const outcome = outcomeOf(client.api, vendor)
  return lost.length === 0 ? outcome : `${outcome} without ${[...new Set(lost)].join(', ')}`
}

const featureTables: Record<string, Table> = {}

it.each(clients)('gives clients of $api the features of every provider', async (client) => {
  const table = await tableOf(testedRows, async function* (row) {
    for (const feature of features) yield [feature.name, await featureCell(client, feature, row)]
  })
  featureTables[client.api] = table
})

it('has the recorded features', () => {
  expectRecorded('features', featureTables)
})
