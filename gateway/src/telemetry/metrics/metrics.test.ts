import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it, vi } from 'vitest'
import { createMetrics } from './metrics.ts'

const usage = {
  inputTokens: 10,
  outputTokens: 5,
  totalTokens: 15,
  cachedInputTokens: 4,
  cacheCreationInputTokens: 0,
  reasoningTokens: 0,
  estimated: false,
}

async function linesOf(metrics: ReturnType<typeof createMetrics>, prefix: string): Promise<string[]> {
  const { text } = await metrics.render()
  return text.split('\n').filter((line) => line.startsWith(prefix))
}

describe('createMetrics', () => {
  it('counts requests by route and status, with durations in cumulative buckets', async () => {
    const metrics = createMetrics()
    const meter = metrics.route('llm')
    meter.done(200, 7, 3)
    meter.done(200, 400_000, undefined)
    meter.done(429, 1, 1)
    expect(await linesOf(metrics, 'tollgate_requests_total')).toEqual([
      'tollgate_requests_total{route="llm",status="200"} 2',
      'tollgate_requests_total{route="llm",status="429"} 1',
    ])
    const durations = await linesOf(metrics, 'tollgate_request_duration_seconds')
    expect(durations).toContain('tollgate_request_duration_seconds_bucket{route="llm",le="0.005"} 1')
    expect(durations).toContain('tollgate_request_duration_seconds_bucket{route="llm",le="0.01"} 2')
    expect(durations).toContain('tollgate_request_duration_seconds_bucket{route="llm",le="300"} 2')
    expect(durations).toContain('tollgate_request_duration_seconds_bucket{route="llm",le="+Inf"} 3')
    expect(durations).toContain('tollgate_request_duration_seconds_count{route="llm"} 3')
    expect(await linesOf(metrics, 'tollgate_time_to_first_byte_seconds_count')).toEqual([
      'tollgate_time_to_first_byte_seconds_count{route="llm"} 2',
    ])
  })

  it('counts tokens by type, model, provider and key group', async () => {
    const metrics = createMetrics()
    metrics.llm('gpt-*', 'openai').operation('chat').tokens(usage, 'team')
    const labels =
      'gen_ai_operation_name="chat",gen_ai_request_model="gpt-*",gen_ai_provider_name="openai",key_group="team"'
    expect(await linesOf(metrics, 'gen_ai_client_token_usage_sum')).toEqual([
      `gen_ai_client_token_usage_sum{gen_ai_token_type="input",${labels}} 10`,
      `gen_ai_client_token_usage_sum{gen_ai_token_type="output",${labels}} 5`,
      `gen_ai_client_token_usage_sum{gen_ai_token_type="input_cache_read",${labels}} 4`,
    ])
  })

  it('adds up costs without rounding, by model, provider and key group', async () => {
    const metrics = createMetrics()
    const meter = metrics.llm('gpt-*', 'openai')
    meter.cost(10n ** 18n, 'team')
    for (let call = 0; call < 10; call++) meter.cost(100_000_000_000n, 'team')
    metrics.llm('gpt-*', 'openai').cost(1n, '')
    meter.unknownCost('missing')
    expect(await linesOf(metrics, 'tollgate_llm_cost')).toEqual([
      'tollgate_llm_cost_usd_total{model="gpt-*",provider="openai",group="team"} 1000001',
      'tollgate_llm_cost_usd_total{model="gpt-*",provider="openai",group=""} 1e-12',
      'tollgate_llm_cost_unknown_total{model="gpt-*",provider="openai",reason="missing"} 1',
    ])
  })

  it('counts TCP connections, open and ended, and their bytes during transfer', async () => {
    const metrics = createMetrics()
    const meter = metrics.tcp('db')
    meter.opened()
    meter.opened()
    meter.received(10)
    meter.sent(5)
    meter.sent(7)
    meter.closed('broken')
    expect(await linesOf(metrics, 'tollgate_tcp_')).toEqual([
      'tollgate_tcp_connections_open{route="db"} 1',
      'tollgate_tcp_connections_total{route="db",outcome="broken"} 1',
      'tollgate_tcp_bytes_total{route="db",direction="received"} 10',
      'tollgate_tcp_bytes_total{route="db",direction="sent"} 12',
    ])
  })

  it('shares a series between two compilations of the same route', async () => {
    const metrics = createMetrics()
    metrics.route('llm').done(200, 1, 1)
    metrics.route('llm').done(200, 1, 1)
    expect(await linesOf(metrics, 'tollgate_requests_total')).toEqual([
      'tollgate_requests_total{route="llm",status="200"} 2',
    ])
  })

  it('reports no series of a route before its first request', async () => {
    const metrics = createMetrics()
    const meter = metrics.route('idle')
    expect((await metrics.render()).text).not.toContain('idle')
    meter.done(204, 1, undefined)
    expect((await metrics.render()).text).toContain('tollgate_requests_total{route="idle",status="204"} 1')
  })

  it('drops the series of removed routes, and retains those of restored routes', async () => {
    const metrics = createMetrics()
    const use = (name: string) => {
      const route = metrics.route(name)
      const tcp = metrics.tcp(`${name}-tcp`)
      route.done(200, 1, 1)
      tcp.opened()
      tcp.closed('complete')
      return { route, tcp }
    }
    const kept = use('kept')
    use('gone')
    setFlagsFromString('--expose-gc')
    const collect: unknown = runInNewContext('gc')
    await vi.waitFor(async () => {
      if (typeof collect === 'function') collect()
      expect((await metrics.render()).text).not.toContain('gone')
    })
    expect(metrics.route('kept')).toBe(kept.route)
    expect(metrics.tcp('kept-tcp')).toBe(kept.tcp)
    expect(await linesOf(metrics, 'tollgate_requests_total')).toEqual([
      'tollgate_requests_total{route="kept",status="200"} 1',
    ])
  })

  it('reports memory of stored responses while a store uses it', async () => {
    const metrics = createMetrics()
    const kept = metrics.llmCache('m').store()
    kept.stored(100, 1)
    metrics.llmCache('m').store().stored(7, 2)
    metrics.llmCache('gone').store().stored(7, 2)
    setFlagsFromString('--expose-gc')
    const collect: unknown = runInNewContext('gc')
    await vi.waitFor(async () => {
      if (typeof collect === 'function') collect()
      expect(await linesOf(metrics, 'tollgate_llm_cache_bytes')).toEqual([
        'tollgate_llm_cache_bytes{model="m"} 100',
      ])
    })
    kept.stored(50, 1)
    expect(await linesOf(metrics, 'tollgate_llm_cache_')).toEqual([
      'tollgate_llm_cache_bytes{model="m"} 50',
      'tollgate_llm_cache_entries{model="m"} 1',
    ])
  })

  it('escapes label values', async () => {
    const metrics = createMetrics()
    metrics.limit('a"b\n').refused()
    expect(await linesOf(metrics, 'tollgate_limit_decisions_total')).toContain(
      'tollgate_limit_decisions_total{limit="a\\"b\\n",decision="refused"} 1',
    )
  })

  it('reports whether the running configuration is synchronized', async () => {
    const metrics = createMetrics()
    metrics.configSynchronized(true)
    expect(await linesOf(metrics, 'tollgate_config_synchronized')).toEqual(['tollgate_config_synchronized 1'])
    metrics.configSynchronized(false)
    expect(await linesOf(metrics, 'tollgate_config_synchronized')).toEqual(['tollgate_config_synchronized 0'])
  })

  it('reports the database of config resources if one is configured', async () => {
    const metrics = createMetrics()
    expect(await linesOf(metrics, 'tollgate_config_database_connected')).toEqual([])
    for (const connected of [true, false]) {
      metrics.configDatabase(connected)
      const value = connected ? 1 : 0
      expect(await linesOf(metrics, 'tollgate_config_database_connected')).toEqual([
        `tollgate_config_database_connected ${value}`,
      ])
    }
  })
})

it('the exposition has further labels and omits removed metrics', async () => {
  const metrics = createMetrics()
  metrics.expose({
    removed: new Set(['tollgate_time_to_first_byte_seconds', 'tollgate_process_resident_memory_bytes']),
    labels: ['user_id'],
  })
  metrics.route('a').done(200, 70, 5, ['bob'])
  metrics.route('a').done(200, 70, 5, ['bob'])
  const llm = metrics.llm('m', 'p')
  llm
    .operation('chat')
    .tokens({ inputTokens: 3, outputTokens: 4, cachedInputTokens: 0, estimated: false }, 'g', ['bob'])
  llm.cost(1_000_000_000_000n, 'g', ['bob'])
  const { text } = await metrics.render()
  expect(text).toContain('tollgate_requests_total{route="a",status="200",user_id="bob"} 2')
  expect(text).toContain('tollgate_llm_cost_usd_total{model="m",provider="p",group="g",user_id="bob"} 1')
  expect(text).toMatch(/gen_ai_client_token_usage_count\{.*key_group="g",user_id="bob"\} 1/)
  expect(text).not.toContain('time_to_first_byte')
  expect(text).not.toContain('resident_memory')
  expect(text).toContain('tollgate_process_cpu')
  const names = (await metrics.collect()).map(({ name }) => name)
  expect(names).not.toContain('tollgate_process_resident_memory_bytes')
})
