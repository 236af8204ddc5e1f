import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { type Gateway, type GatewayConfig, startGateway } from '../support/gateway.ts'
import { chat, llmConfig } from '../support/llm-config.ts'
import { metricValue } from '../support/metrics.ts'
import { mockAnthropic } from '../support/mock-anthropic.ts'
import { mockOpenAi, openAiKey } from '../support/mock-openai.ts'
import { until } from '../support/wait.ts'

const catalog = (provider: string, models: object) => ({ providers: { [provider]: { models } } })
const withCatalog = (config: GatewayConfig, ...modelCatalog: object[]) => ({
  ...config,
  config: { modelCatalog },
})

async function costOfCall(
  gateway: Gateway,
  ...call: Parameters<typeof chat> extends [unknown, ...infer R] ? R : never
) {
  const before = gateway.requests().length
  const response = await chat(gateway, ...call)
  await response.text()
  expect(response.status).toBe(200)
  const line = (await gateway.logged(before + 1))[before]
  return { usd: line?.['costUsd'], status: line?.['costStatus'] }
}

describe('costs', () => {
  it('of whole and streamed answers of several APIs are in the log, and added up in metrics', async () => {
    const [openai, anthropic] = await Promise.all([mockOpenAi(), mockAnthropic()])
    const gateway = await startGateway(
      withCatalog(llmConfig({ openai, anthropic }), {
        inline: {
          providers: {
            openai: { models: { 'gpt-test': { rates: { input: '2.50', output: '10', cacheRead: '1.25' } } } },
            anthropic: {
              models: { 'claude-test': { rates: { input: '3', output: '15', cacheRead: '0.3' } } },
            },
          },
        },
      }),
    )
    // 16 tokens of input, 5 cached, 9 of output.
    const ofOpenAi = { usd: 0.00013625, status: 'exact' }
    expect(await costOfCall(gateway, { model: 'gpt-test' })).toEqual(ofOpenAi)
    expect(await costOfCall(gateway, { model: 'gpt-test', stream: true })).toEqual(ofOpenAi)
    expect(
      await costOfCall(gateway, { model: 'gpt-test', input: 'hi', stream: true }, { path: '/v1/responses' }),
    ).toEqual(ofOpenAi)
    // 16 of input, 6 of them written to the cache or read from it.
    const ofAnthropic = await costOfCall(
      gateway,
      { model: 'claude-test', max_tokens: 9 },
      { path: '/v1/messages' },
    )
    expect(ofAnthropic.status).toBe('exact')
    expect(await costOfCall(gateway, { model: 'claude-test', stream: true })).toEqual(ofAnthropic)

    const metrics = await gateway.metrics()
    const labels = { model: 'gpt-*', provider: 'openai', group: 'platform' }
    expect(metricValue(metrics, 'tollgate_llm_cost_usd_total', labels)).toBe(0.00040875)
  })

  it('follow a catalog in a file, and keep the last prices that were valid', async () => {
    const openai = await mockOpenAi()
    const config = llmConfig({ openai })
    const gateway = await startGateway(config)
    expect(await costOfCall(gateway, { model: 'gpt-test' })).toEqual({ usd: undefined, status: undefined })

    const file = join(dirname(gateway.file), 'prices.json')
    const write = (input: string) =>
      writeFileSync(
        file,
        JSON.stringify(catalog('openai', { 'gpt-test': { rates: { input, output: '0' } } })),
      )
    write('1')
    await gateway.reload(withCatalog(config, { file }))
    expect(await costOfCall(gateway, { model: 'gpt-test' })).toEqual({ usd: 0.000021, status: 'exact' })

    write('2')
    await until('the new price holds', async () => {
      return (await costOfCall(gateway, { model: 'gpt-test' })).usd === 0.000042
    })
    write('two')
    const refused = await until('the file is refused', async () => (await gateway.status()).lastError)
    expect(refused).toContain('providers.openai.models.gpt-test.rates.input: must be a price such as 2.50')
    expect(await costOfCall(gateway, { model: 'gpt-test' })).toEqual({ usd: 0.000042, status: 'exact' })
  })

  it('that are unknown are logged as unknown, and counted', async () => {
    const openai = await mockOpenAi()
    const gateway = await startGateway(
      withCatalog(llmConfig({ openai }), {
        inline: catalog('openai', { 'gpt-test': { rates: { input: '1' } } }),
      }),
    )
    expect(await costOfCall(gateway, { model: 'gpt-test' })).toEqual({ usd: undefined, status: 'unpriced' })
    expect(await costOfCall(gateway, { model: 'echo' })).toEqual({ usd: undefined, status: 'missing' })
    const metrics = await gateway.metrics()
    const labels = { model: 'echo', provider: 'echo', reason: 'missing' }
    expect(metricValue(metrics, 'tollgate_llm_cost_unknown_total', labels)).toBe(1)
  })

  it('of providers behind routes are reported as well', async () => {
    const [openai, port] = [await mockOpenAi(), await freePort()]
    const ai = { provider: { openAI: {} }, hostOverride: `127.0.0.1:${new URL(openai.url).port}` }
    const gateway = await startGateway(
      withCatalog(
        { gateways: { default: { port } }, routes: [{ name: 'llm', backends: [{ ai }] }] },
        { inline: catalog('openai', { 'gpt-test': { rates: { input: '1', output: '1' } } }) },
      ),
    )
    const routed = { ...gateway, url: `http://127.0.0.1:${port}` }
    const headers = { authorization: `Bearer ${openAiKey}` }
    expect(await costOfCall(routed, { model: 'gpt-test' }, { headers })).toEqual({
      usd: 0.00003,
      status: 'exact',
    })
  })

  it('are listed with their source, from any data plane', async () => {
    const gateway = await startGateway({
      ...llmConfig({ openai: await mockOpenAi() }),
      config: {
        workerThreads: 2,
        modelCatalog: [{ inline: catalog('openai', { 'gpt-test': { rates: { input: '2.50' } } }) }],
      },
    })
    const response = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/costs?search=GPT`)
    expect(await response.json()).toEqual({
      catalogs: [{ source: 'custom', models: 1 }],
      providers: ['openai'],
      models: [{ provider: 'openai', model: 'gpt-test', rates: { input: '2.50' }, sources: { input: 0 } }],
      total: 1,
    })
  })
})
