import { beforeAll, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { operations } from '../../src/backends/llm/request/endpoints.ts'
import type { Gateway } from '../support/gateway.ts'
import { chatClient } from '../support/llm-clients/chat-client.ts'
import { type ApiClient, type Ask, eventsOf } from '../support/llm-clients/client.ts'
import { cohereClient } from '../support/llm-clients/cohere-client.ts'
import { converseClient, eventTextOf } from '../support/llm-clients/converse-client.ts'
import { geminiClient } from '../support/llm-clients/gemini-client.ts'
import { messagesClient } from '../support/llm-clients/messages-client.ts'
import { responsesClient } from '../support/llm-clients/responses-client.ts'
import { type ClientCall, clientCalls } from '../support/llm-matrix/calls.ts'
import { type Feature, features, lossesOf } from '../support/llm-matrix/features.ts'
import { type Matrix, rates, startMatrix } from '../support/llm-matrix/gateway.ts'
import { allRows, modelOf, type ProviderRow, testedRows } from '../support/llm-matrix/providers.ts'
import { expectRecorded, type Table } from '../support/llm-matrix/recording.ts'
import { metricValue } from '../support/metrics.ts'
import type { Vendor } from '../support/vendors/vendor.ts'
import { type ErrorCase, errorCases, errorOf } from '../support/vendors/vendor-errors.ts'
import { until, within } from '../support/wait.ts'

// Every call and every feature with every provider, through one gateway. The outcomes are recorded in
// golden/llm-calls.json, from which docs/reference/llm-calls.md is generated.

const clients: readonly ApiClient[] = [
  chatClient,
  responsesClient,
  messagesClient,
  geminiClient,
  converseClient,
  cohereClient,
]

let gateway: Gateway
let vendorOf: Matrix['vendorOf']

beforeAll(async () => {
  const matrix = await startMatrix()
  gateway = matrix.gateway
  vendorOf = matrix.vendorOf
})

type Reply = { status: number; text: string; headers: Headers }

/** Requests so far. */
let posts = 0

async function post(
  path: string,
  body: object | FormData,
  more: Record<string, string> = {},
): Promise<Reply> {
  const isForm = body instanceof FormData
  posts += 1
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: isForm ? more : { ...more, 'content-type': 'application/json' },
    body: isForm ? body : JSON.stringify(body),
  })
  const { status, headers } = response
  const isBinary = headers.get('content-type')?.includes('eventstream')
  const text = isBinary
    ? eventTextOf(Buffer.from(await response.arrayBuffer()))
    : withErrorType(await response.text(), headers)
  return { status, text, headers }
}

/** The body of an error of AWS, whose type is in a header. */
function withErrorType(text: string, headers: Headers): string {
  const type = headers.get('x-amzn-errortype')
  return type === null ? text : JSON.stringify({ type, ...JSON.parse(text) })
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

/** Sums of a provider, in tokens and US dollars. */
type Sums = { input: number; cached: number; output: number; reasoning: number; usd: number }

const noSums: Sums = { input: 0, cached: 0, output: 0, reasoning: 0, usd: 0 }

function add(sums: Record<string, Sums>, provider: string, more: Sums): void {
  const sum = sums[provider] ?? { ...noSums }
  sums[provider] = sum
  for (const name of ['input', 'cached', 'output', 'reasoning'] as const) sum[name] += more[name]
  sum.usd = Number((sum.usd + more.usd).toFixed(9))
}

/** Sums of the ledger, by provider. */
async function ledgerSums(): Promise<{ sums: Record<string, Sums>; requests: number }> {
  const url = `http://127.0.0.1:${gateway.adminPort}/api/usage.csv?from=2026-01-01&groupBy=provider`
  const [head = '', ...lines] = (await (await fetch(url)).text()).trim().split('\r\n')
  const sums: Record<string, Sums> = {}
  let requests = 0
  for (const line of lines) {
    const cells = Object.fromEntries(line.split(',').map((cell, index) => [head.split(',')[index], cell]))
    const count = (name: string) => Number(cells[name])
    requests += count('requests')
    if (cells['provider'] === '') continue
    const tokens = { input: count('inputTokens'), cached: count('cachedInputTokens') }
    const output = { output: count('outputTokens'), reasoning: count('reasoningTokens') }
    add(sums, String(cells['provider']), { ...tokens, ...output, usd: count('costUsd') })
  }
  return { sums, requests }
}

it('counts and prices what every vendor billed', async () => {
  const billed: Record<string, Sums> = {}
  for (const row of testedRows) {
    const { input, cached, output, reasoning } = vendorOf(row).billed
    const usd = ((input - cached) * rates.input + cached * rates.cacheRead + output * rates.output) / 1e6
    add(billed, row.provider, { input, cached, output, reasoning, usd })
  }
  const { sums } = await until('all requests in the ledger', async () => {
    const ledger = await ledgerSums()
    return ledger.requests === posts && ledger
  })
  expect(sums).toEqual(billed)
  const metrics = await gateway.metrics()
  for (const [provider, { usd, input }] of Object.entries(billed)) {
    expect(metricValue(metrics, 'tollgate_llm_cost_usd_total', { provider })).toBeCloseTo(usd, 9)
    const labels = { gen_ai_provider_name: provider, gen_ai_token_type: 'input' }
    expect(metricValue(metrics, 'gen_ai_client_token_usage_sum', labels)).toBe(input)
  }
})

/** The response to an upgrade, which no vendor accepts. */
function connect(path: string): Promise<{ status: number; text: string }> {
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}${path}`)
  const refused = Promise.withResolvers<{ status: number; text: string }>()
  socket.on('error', refused.reject)
  socket.on('unexpected-response', (_, response) => {
    const chunks: Buffer[] = []
    response.on('data', (chunk) => chunks.push(chunk))
    response.on('end', () => {
      refused.resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() })
      socket.terminate()
    })
  })
  return within('refusal', refused.promise)
}

async function callCell(
  { api, path, body, headers, follows }: ClientCall,
  row: ProviderRow,
): Promise<string> {
  const vendor = vendorOf(row)
  vendor.served.length = 0
  const model = modelOf(row)
  const first = follows && (await post(follows.path(model), follows.body(model) ?? {}))
  if (first !== undefined && first.status >= 400) return refusalOf(api, first.status, first.text)
  const request = body(model, first && JSON.parse(first.text).id)
  const { status, text } = await (request === undefined
    ? connect(path(model))
    : post(path(model), request, headers?.(model)))
  const isServed = request === undefined && vendor.served.length > 0
  if (status >= 400 && !isServed) return refusalOf(api, status, text)
  if (vendor.served.length === 0) return api.endsWith('count_tokens') ? 'estimate' : 'gateway'
  return outcomeOf(api, vendor)
}

it('covers every call that the gateway reads', () => {
  const apis = new Set(
    Object.entries(operations)
      .filter(([name]) => !['models', 'stored', 'passthrough'].includes(name))
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

/** Violations of rules for every error; empty if the client can act on it. */
const problems: string[] = []

async function errorCell(client: ApiClient, name: ErrorCase, row: ProviderRow): Promise<string> {
  const hasError = errorOf(row.label, name) !== undefined
  if (!hasError && !['filtered_prompt', 'filtered_output', 'broken_stream'].includes(name)) return ''
  const ask = { text: `fail:${name}`, streaming: name === 'broken_stream' }
  const { status, text, headers } = await post(client.path(modelOf(row), ask), client.body(modelOf(row), ask))
  const body = ask.streaming && status === 200 ? eventsOf(text).at(-1) : JSON.parse(text)
  const error = client.error(body ?? {})
  if (error === undefined) {
    if (status === 200 && !ask.streaming) return `200 ${client.read(body).finish}`
    problems.push(`${row.label}, ${client.api}, ${name}: ${text}`)
    return `${status} unreadable`
  }
  if (error.code === 'unsupported_endpoint') return `${status} ${error.code}`
  const wait = headers.get('retry-after')
  const { message } = error
  if (typeof message !== 'string' || message === '' || message.includes('<'))
    problems.push(`${row.label}, ${client.api}, ${name}: the message is ${message}`)
  if (name === 'throttled' && announces(row) && wait !== '7')
    problems.push(`${row.label}, ${client.api}: retry-after is ${wait}`)
  return `${ask.streaming ? 'stream' : status} ${error.code ?? error.type}${wait === null ? '' : `, retry after ${wait} s`}`
}

/** Vendors that announce a time, in seven ways. */
function announces({ label }: ProviderRow): boolean {
  return !['bedrock', 'bedrock, Claude', 'cohere', 'mistral', 'deepseek'].includes(label)
}

const errorTables: Record<string, Table> = {}

it.each(clients)('gives clients of $api errors of every provider in their shape', async (client) => {
  errorTables[client.api] = await tableOf(testedRows, async function* (row) {
    for (const name of errorCases) yield [name.replace('_', ' '), await errorCell(client, name, row)]
  })
})

it('has the recorded errors', () => {
  expect(problems).toEqual([])
  expectRecorded('errors', errorTables)
})
