import { describe, expect, it } from 'vitest'
import { faultyUpstream } from '../support/faulty-upstream.ts'
import { type AccessLine, type Gateway, startGateway } from '../support/gateway.ts'
import { type LedgerRow, ledgerRows } from '../support/ledger-rows.ts'
import { aliceKey, anthropicModel, chat, llmConfig, models, openAiModel } from '../support/llm-config.ts'
import { programTarget } from '../support/mcp-fixtures.ts'
import { openSession } from '../support/mcp-raw.ts'
import { seriesOf } from '../support/metrics.ts'
import { mockAnthropic } from '../support/mock-anthropic.ts'
import { mockOpenAi } from '../support/mock-openai.ts'
import { jsonAnswer, startMockServer } from '../support/mock-server.ts'
import { startRateLimitService } from '../support/rate-limit-service.ts'
import { sqliteUrl } from '../support/resource-api.ts'
import { readStream } from '../support/sse.ts'
import { until } from '../support/wait.ts'

// Every amount is the same number in the ledger, the access log, the metrics, limits and budgets.

const rates = { input: '2.50', output: '10', cacheRead: '1.25' }
const capacity = 1_000_000
const inline = {
  providers: {
    openai: { models: { 'gpt-test': { rates }, 'text-embedding-3': { rates } } },
    anthropic: { models: { 'claude-test': { rates: { input: '3', output: '15' } } } },
  },
}

const usage = (prompt: number, completion = 0) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
})

/** Providers that fail in various ways, the first two after they reported usage. */
async function failingModels() {
  const failing = await startMockServer(
    jsonAnswer(503, { error: { message: 'overloaded', type: 'server_error' }, usage: usage(1_000) }),
  )
  const untranslatable = await startMockServer(
    jsonAnswer(200, { type: 'message', content: 'no list', usage: { input_tokens: 300, output_tokens: 7 } }),
  )
  const endless = await startMockServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: {"choices":[{"index":0,"delta":{"content":"one two three four"}}]}\n\n')
  })
  const cut = await faultyUpstream('closes mid stream')
  const refusing = await faultyUpstream('refuses')
  // A model that has failed is tried last for a while, so that each call has models of its own.
  const ofCall = [1, 2, 3, 4, 5].flatMap((call) => [
    withModel(openAiModel(`failing-${call}`, failing.url), 'gpt-test'),
    withModel(openAiModel(`refusing-${call}`, refusing.url), 'gpt-test'),
    withModel(anthropicModel(`untranslatable-${call}`, untranslatable.url), 'claude-test'),
  ])
  return { endless, failing: [...ofCall, openAiModel('endless', endless.url), openAiModel('cut', cut.url)] }
}

function withModel(model: object, name: string): object {
  const params = 'params' in model && typeof model.params === 'object' ? model.params : {}
  return { ...model, params: { ...params, model: name } }
}

const failover = (name: string, ...targets: string[]) => ({
  name,
  routing: { failover: { targets: targets.map((model, priority) => ({ model, priority })) } },
})

async function startAll(url: string) {
  const [openai, anthropic] = await Promise.all([mockOpenAi(), mockAnthropic()])
  const limiter = await startRateLimitService({ limits: { 'all=llm': capacity } })
  const descriptor = { entries: [{ key: 'all', value: '"llm"' }], type: 'tokens' }
  const { endless, failing } = await failingModels()
  const config = llmConfig(
    {},
    {
      models: [...models({ openai, anthropic }), ...failing],
      virtualModels: [
        failover('after-failure-1', 'failing-1', 'gpt-test'),
        failover('after-failure-2', 'failing-2', 'gpt-test'),
        failover('after-all-3', 'refusing-3', 'failing-3', 'untranslatable-3', 'claude-test'),
        failover('after-all-4', 'refusing-4', 'failing-4', 'untranslatable-4', 'claude-test'),
        failover('never', 'refusing-5', 'failing-5'),
      ],
      policies: {
        localRateLimit: [{ tokens: capacity, unit: 'Hours' }],
        remoteRateLimit: { host: limiter.host, domain: 'test', descriptors: [descriptor] },
        budgets: [
          { name: 'tokens', limit: { tokens: capacity }, window: '30d' },
          { name: 'money', limit: { usd: '100' }, window: '30d' },
        ],
      },
      guardrails: {
        response: [{ name: 'words', regex: { action: 'reject', rules: [{ pattern: 'forbidden' }] } }],
        streaming: 'buffered',
      },
    },
  )
  const gateway = await startGateway({
    ...config,
    config: { modelCatalog: [{ inline }], database: { url } },
    mcp: { targets: [programTarget('files')] },
  })
  return { gateway, openai, endless, limiter }
}

/** Sends requests of every kind; returns their number. */
async function driveTraffic({ gateway, openai, endless }: Awaited<ReturnType<typeof startAll>>) {
  const messages = { path: '/v1/messages' }
  const calls: Parameters<typeof chat> extends [unknown, ...infer Rest] ? Rest[] : never = [
    [{ model: 'gpt-test' }],
    [{ model: 'gpt-test', stream: true }],
    [{ model: 'gpt-test', stream: true, stream_options: { include_usage: false } }],
    [{ model: 'claude-test', stream: true }],
    [{ model: 'claude-test', max_tokens: 9 }, messages],
    [{ model: 'gpt-test', max_tokens: 9, stream: true }, messages],
    [{ model: 'claude-test', max_tokens: 9 }, { path: '/v1/messages/count_tokens' }],
    [{ model: 'gpt-test', input: 'hi', stream: true }, { path: '/v1/responses' }],
    [{ model: 'gpt-test', input: 'hi', background: true, max_output_tokens: 50 }, { path: '/v1/responses' }],
    [{ model: 'text-embedding-3', input: ['a', 'b'] }, { path: '/v1/embeddings' }],
    [{ model: 'echo' }],
    [{ model: 'after-failure-1' }],
    [{ model: 'after-failure-2', stream: true }],
    [{ model: 'after-all-3' }],
    [{ model: 'after-all-4', max_tokens: 9, stream: true }, messages],
    [{ model: 'never' }],
    [{ model: 'cut', stream: true }],
    [{ model: 'refusing-1' }],
    [{ model: 'unknown' }],
    [{ model: 'gpt-test' }, { headers: { authorization: 'Bearer wrong' } }],
  ]
  const ids: string[] = []
  const send = async (...call: (typeof calls)[number]) => {
    const response = await chat(gateway, ...call)
    ids.push(response.headers.get('x-request-id') ?? '')
    await readStream(response)
    return response.status
  }
  for (const call of calls) await send(...call)
  openai.behaviour.content = 'a forbidden word'
  expect(await send({ model: 'gpt-test' })).toBe(403)
  expect(await send({ model: 'gpt-test', stream: true })).toBe(403)
  const leaving = new AbortController()
  const left = chat(gateway, { model: 'endless', stream: true, n: 2 }, { signal: leaving.signal })
  await until('the provider streams', () => endless.seen.length === 1)
  leaving.abort()
  await expect(left).rejects.toThrow()
  return { ids, count: calls.length + 3 }
}

const sum = (values: readonly unknown[]) =>
  values.reduce<number>((total, value) => total + Number(value ?? 0), 0)
const pico = (dollars: unknown) => Math.round(Number(dollars ?? 0) * 1e12)

function amountsOfLines(lines: readonly AccessLine[]) {
  return {
    tokens: sum(lines.map((line) => line['totalTokens'])),
    cost: sum(lines.map((line) => pico(line['costUsd']))),
  }
}

async function amountsOfMetrics(gateway: Gateway) {
  const text = await gateway.metrics()
  const tokens = seriesOf(text, 'gen_ai_client_token_usage_sum').filter(({ labels }) =>
    ['input', 'output'].includes(labels['gen_ai_token_type'] ?? ''),
  )
  return {
    tokens: sum(tokens.map(({ value }) => value)),
    cost: sum(seriesOf(text, 'tollgate_llm_cost_usd_total').map(({ value }) => pico(value))),
  }
}

async function usedTokens({ adminPort }: Gateway): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/api/limits`)
  const { local }: { local: { counts: string; state: { remaining: number } }[] } = JSON.parse(
    await response.text(),
  )
  const tokens = local.find(({ counts }) => counts === 'tokens')
  return capacity - (tokens?.state.remaining ?? 0)
}

function charged(rows: readonly LedgerRow[], budget: string): number {
  const charges: { budget: string; amount: number }[] = rows.flatMap(({ charges: text }) =>
    JSON.parse(String(text ?? '[]')),
  )
  return sum(charges.filter((charge) => charge.budget === budget).map(({ amount }) => amount))
}

describe('the amounts of all requests', () => {
  it('are equal in ledger, log, metrics, limits and budgets, and are written at the end of the process', async () => {
    const url = sqliteUrl()
    const started = await startAll(url)
    const { gateway } = started
    const { ids, count } = await driveTraffic(started)
    const session = await openSession(gateway.mcpUrl)
    await session.request('tools/call', { name: 'whoami', arguments: {} })
    // Two MCP messages and their notification precede the call.
    const rows = await ledgerRows(url, count + 3)
    const ofLlm = rows.filter(({ kind }) => kind === 'llm')
    const lines = await until('all lines of the log', () => {
      const written = gateway.requests().filter((line) => line['route'] === 'llm')
      return written.length >= count && written
    })

    expect(ofLlm).toHaveLength(count)
    expect(lines).toHaveLength(count)
    for (const id of ids) expect(ofLlm.filter((row) => row['id'] === id)).toHaveLength(1)
    for (const line of lines) {
      const row = rows.find(({ id }) => id === line['requestId'])
      expect(row).toMatchObject({
        status: line['status'],
        total_tokens: line['totalTokens'] ?? null,
        input_tokens: line['inputTokens'] ?? null,
        cost_status: line['costStatus'] ?? null,
      })
      expect(row?.['cost_picodollars'] ?? 0).toBe(pico(line['costUsd']))
    }

    const tokens = sum(ofLlm.map((row) => row['total_tokens']))
    const cost = sum(ofLlm.map((row) => row['cost_picodollars']))
    expect(tokens).toBeGreaterThan(5_000)
    expect(amountsOfLines(lines)).toEqual({ tokens, cost })
    expect(await amountsOfMetrics(gateway)).toEqual({ tokens, cost })
    expect(await usedTokens(gateway)).toBe(tokens)
    await until('the service has counted', () => started.limiter.counts.get('all=llm') === tokens)
    expect(charged(rows, 'llm/tokens/tokens')).toBe(tokens)
    expect(charged(rows, 'llm/money/usd')).toBe(cost)

    const byModel = (name: string) => ofLlm.filter((row) => row['request_model'] === name)
    for (const name of ['after-failure-1', 'after-failure-2']) {
      expect(byModel(name)).toMatchObject([{ attempts: 2, total_tokens: 1_030, provider: 'openai' }])
    }
    // Only unstreamed responses are read before the first byte.
    expect(byModel('after-all-3')).toMatchObject([
      { attempts: 4, total_tokens: 1_340, provider: 'anthropic' },
    ])
    expect(byModel('after-all-4')).toMatchObject([{ attempts: 3 }])
    expect(byModel('never')).toMatchObject([
      { status: 503, total_tokens: 1_000, error_code: 'upstream_error' },
    ])
    expect(byModel('endless')).toMatchObject([{ status: 499, tokens_estimated: 1 }])
    expect(byModel('refusing-1')).toMatchObject([
      { total_tokens: null, error_code: 'upstream_connect', attempts: 1 },
    ])
    const refused = ofLlm.filter((row) => row['error_code'] === 'guardrail_intervention')
    expect(refused.map((row) => row['total_tokens'])).toEqual([30, 30])
    expect(rows.filter((row) => row['mcp_method'] === 'tools/call')).toMatchObject([
      { kind: 'mcp', mcp_target: 'files', mcp_item: 'whoami', status: 200, total_tokens: null },
    ])
    for (const row of rows) expect(JSON.stringify(row)).not.toContain(aliceKey)

    await chat(gateway, { model: 'gpt-test', stream: false }).then(readStream)
    await gateway.stop()
    expect(await ledgerRows(url, count + 4)).toHaveLength(rows.length + 1)
  })
})
