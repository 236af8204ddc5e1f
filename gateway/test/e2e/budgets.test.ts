import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { type Gateway, type GatewayConfig, startGateway } from '../support/gateway.ts'
import { aliceRecord, chat, jsonHeaders, llmConfig } from '../support/llm-config.ts'
import { metricValue } from '../support/metrics.ts'
import { type MockOpenAi, mockOpenAi } from '../support/mock-openai.ts'
import { until } from '../support/wait.ts'

/** Tokens of an answer of the mock, and the estimate of `ask`. */
const tokensPerCall = 30
const team = { name: 'team', limit: { tokens: 20 * tokensPerCall }, window: '366d' }
const prices = {
  inline: { providers: { openai: { models: { 'gpt-test': { rates: { input: '1', output: '1' } } } } } },
}

function newDatabase(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-budgets-'))
  endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
  return `sqlite://${join(folder, 'ledger.db')}`
}

function budgetConfig(
  openai: MockOpenAi,
  budgets: object[],
  { database, config = {} }: { database?: string; config?: object } = {},
): GatewayConfig {
  const logging = database === undefined ? {} : { logging: { database: { url: database } } }
  return {
    ...llmConfig({ openai }, { policies: { budgets } }),
    config: { ...logging, ...config },
  }
}

async function ask(gateway: Gateway, body: object = {}): Promise<Response> {
  const response = await chat(gateway, { model: 'gpt-test', max_tokens: 10, ...body })
  await response.clone().arrayBuffer()
  return response
}

async function admitted(gateway: Gateway, count: number): Promise<number> {
  const responses = await Promise.all(Array.from({ length: count }, () => ask(gateway)))
  return responses.filter(({ status }) => status === 200).length
}

async function budgetsOf(gateway: Gateway, path = '/api/budgets'): Promise<Record<string, unknown>[]> {
  const response = await fetch(`http://127.0.0.1:${gateway.adminPort}${path}`)
  const { budgets } = (await response.json()) as { budgets: Record<string, unknown>[] }
  return budgets
}

describe('budgets', () => {
  it.each([1, 2])(
    'admit no more than their limit of a hundred parallel requests (%s workers)',
    async (workerThreads) => {
      const openai = await mockOpenAi()
      const gateway = await startGateway(budgetConfig(openai, [team], { config: { workerThreads } }))
      expect(await admitted(gateway, 100)).toBe(20)
      expect(openai.seen).toHaveLength(20)
      const response = await ask(gateway)
      expect(response.status).toBe(429)
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(3_600)
      expect(await response.json()).toMatchObject({
        error: {
          code: 'budget_exceeded',
          type: 'rate_limit_error',
          message: /^budget "team" of 600 tokens is exhausted/,
        },
      })
      // The lines of several threads have no order.
      const refusals = (await gateway.logged(101)).filter(({ status }) => status === 429)
      expect(new Set(refusals.map((line) => line['refusedBy']))).toEqual(new Set(['budget: llm: team']))
      const metrics = await gateway.metrics()
      const labels = { budget: 'llm: team', decision: 'refused' }
      expect(metricValue(metrics, 'tollgate_budget_decisions_total', labels)).toBe(81)
      expect(await budgetsOf(gateway)).toMatchObject([{ usage: { used: '600', reserved: '0' } }])
      expect(gateway.stdout()).toContain('budgets counted in memory: no database configured')
    },
  )

  it('refuse in the shape of the Anthropic API', async () => {
    const openai = await mockOpenAi()
    const gateway = await startGateway(budgetConfig(openai, [{ ...team, limit: { tokens: 1 } }]))
    await ask(gateway)
    const response = await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: jsonHeaders,
      body: JSON.stringify({
        model: 'gpt-test',
        max_tokens: 10,
        messages: [{ role: 'user', content: 'hello' }],
      }),
    })
    expect([response.status, await response.json()]).toEqual([
      429,
      {
        type: 'error',
        error: { type: 'rate_limit_error', message: expect.stringContaining('budget "team"') },
      },
    ])
  })

  it('survive a restart, and a kill of the process', async () => {
    const openai = await mockOpenAi()
    const config = budgetConfig(openai, [team], { database: newDatabase() })
    let gateway = await startGateway(config, { mayCrash: true })
    expect(await admitted(gateway, 15)).toBe(15)
    await gateway.stop()
    gateway = await startGateway(config, { mayCrash: true, again: gateway })
    expect(await admitted(gateway, 4)).toBe(4)
    await until('the charges are in the database', async () => {
      const [budget] = await budgetsOf(gateway)
      const metrics = await gateway.metrics()
      return budget !== undefined && metricValue(metrics, 'tollgate_ledger_queue_rows') === 0
    })
    gateway.child.kill('SIGKILL')
    await gateway.exited
    gateway = await startGateway(config, { mayCrash: true, again: gateway })
    expect(await admitted(gateway, 10)).toBe(1)
    await gateway.stop()
  })

  it('count money by value, warn near the limit, and are listed by share', async () => {
    const openai = await mockOpenAi()
    const budget = { ...team, limit: { usd: 0.0003 }, key: 'request.headers["x-team"]', warnAt: 0.5 }
    const gateway = await startGateway(
      budgetConfig(openai, [budget], { database: newDatabase(), config: { modelCatalog: [prices] } }),
    )
    const askFor = (value: string) =>
      chat(gateway, { model: 'gpt-test', max_tokens: 10 }, { headers: { 'x-team': value } })
    const warnings: (string | null)[] = []
    for (let count = 0; count < 10; count += 1) {
      const response = await askFor('red')
      await response.arrayBuffer()
      expect(response.status).toBe(200)
      warnings.push(response.headers.get('x-budget-warning'))
    }
    expect(warnings[4]).toBeNull()
    expect(warnings[5]).toMatch(/^"team";used=0.5;reset=\d+$/)
    expect((await askFor('red')).status).toBe(429)
    expect((await askFor('blue')).status).toBe(200)
    const listed = await until('both values are settled', async () => {
      const budgets = await budgetsOf(gateway)
      return budgets.length === 2 && budgets
    })
    expect(listed.map(({ value, limit, usage }) => [value, limit, usage])).toEqual([
      [
        'red',
        { unit: 'USD', amount: '0.0003' },
        { used: '0.0003', reserved: '0', remaining: '0', share: 1, exceeded: true },
      ],
      [
        'blue',
        { unit: 'USD', amount: '0.0003' },
        expect.objectContaining({ used: '0.00003', exceeded: false }),
      ],
    ])
    const count = (text: string) => gateway.stdout().split(text).length - 1
    await until('the end is logged', () => count('budget exhausted') > 0)
    expect([count('budget warning level reached'), count('budget exhausted')]).toEqual([1, 1])
  })

  it('of virtual keys are enforced and reported in their own shape', async () => {
    const openai = await mockOpenAi()
    const budgets = [
      { name: 'daily', limit: { unit: 'Tokens', amount: '60' }, window: { rolling: '24h' } },
      {
        name: 'observed',
        limit: { unit: 'Tokens', amount: 1 },
        window: { calendar: 'month' },
        onBudgetExceeded: 'Audit',
      },
    ]
    const config = llmConfig({ openai }, { policies: { apiKey: { keys: [{ ...aliceRecord, budgets }] } } })
    const gateway = await startGateway(config)
    expect([(await ask(gateway)).status, (await ask(gateway)).status, (await ask(gateway)).status]).toEqual([
      200, 200, 429,
    ])
    const [daily, observed] = await budgetsOf(gateway, '/api/budgets/status?apiKeyName=Alice')
    expect(daily).toMatchObject({
      apiKeyName: 'Alice',
      name: 'daily',
      limit: { unit: 'Tokens', amount: '60' },
      usage: { used: '60', remaining: '0', exceeded: true },
      window: { durationMs: 86_400_000, expired: false },
      onBudgetExceeded: 'Block',
    })
    expect(observed).toMatchObject({ name: 'observed', onBudgetExceeded: 'Audit', usage: { used: '60' } })
    expect(await budgetsOf(gateway, '/api/budgets/status?apiKeyName=Bob')).toEqual([])
    const [first] = await budgetsOf(gateway, '/api/budgets/status?limit=1')
    expect(first).toMatchObject({ name: 'daily' })
  })

  it('retain their count when the limit changes', async () => {
    const openai = await mockOpenAi()
    const gateway = await startGateway(budgetConfig(openai, [{ ...team, limit: { tokens: 30 } }]))
    expect(await admitted(gateway, 1)).toBe(1)
    expect((await ask(gateway)).status).toBe(429)
    await gateway.reload(budgetConfig(openai, [{ ...team, limit: { tokens: 60 } }]))
    expect((await ask(gateway)).status).toBe(200)
    expect((await ask(gateway)).status).toBe(429)
  })

  it('release the reservation of a request that a guard refuses', async () => {
    const openai = await mockOpenAi()
    const gateway = await startGateway({
      ...budgetConfig(openai, [{ ...team, limit: { tokens: 40 } }]),
      ...llmConfig(
        { openai },
        {
          policies: {
            budgets: [{ ...team, limit: { tokens: 40 } }],
            guardrails: { request: [{ regex: { action: 'reject', rules: [{ pattern: 'hello' }] } }] },
          },
        },
      ),
    })
    for (let count = 0; count < 3; count += 1) expect((await ask(gateway)).status).toBe(403)
    expect(await budgetsOf(gateway)).toMatchObject([{ usage: { used: '0', reserved: '0' } }])
  })
})
