import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { chat, llmConfig } from '../support/llm-config.ts'
import { metricValue, seriesOf } from '../support/metrics.ts'
import { type MockOpenAi, mockOpenAi, openAiErrors } from '../support/mock-openai.ts'
import { rawConnect } from '../support/raw-http.ts'
import { until } from '../support/wait.ts'

let openai: MockOpenAi

beforeAll(async () => {
  openai = await mockOpenAi({ lifetime: 'file' })
})

function started(): Promise<Gateway> {
  return startGateway(
    llmConfig({ openai }, { policies: { localRateLimit: [{ requests: 5, unit: 'Hours' }] } }),
  )
}

describe('the access log', () => {
  it('has one line for each request, for every outcome', async () => {
    const gateway = await started()
    await chat(gateway)
    await chat(gateway, {}, { headers: { authorization: 'Bearer tg-nobody' } })
    await chat(gateway, { model: 'nobody' })
    await chat(gateway, {}, { path: '/v1/nowhere' })
    openai.next(openAiErrors.failed)
    await chat(gateway, { model: 'gpt-test' })
    const connection = await rawConnect(gateway.port)
    connection.send('POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{')
    connection.socket.destroy()
    await gateway.logged(6)
    await new Promise((resolve) => setTimeout(resolve, 500))
    const lines = gateway.requests()
    expect(lines).toHaveLength(6)
    expect(lines.slice(0, 5).map(({ status }) => status)).toEqual([200, 401, 404, 404, 500])
  })

  it('names route, model, key, status, tokens and durations', async () => {
    const gateway = await started()
    await (await chat(gateway, { model: 'gpt-test', stream: true })).text()
    const [line] = await gateway.logged(1)
    expect(line).toMatchObject({
      level: 'info',
      msg: 'request',
      method: 'POST',
      path: '/v1/chat/completions',
      route: expect.any(String),
      model: 'gpt-test',
      servedBy: 'gpt-*',
      provider: 'openai',
      keyId: 'key-alice',
      status: 200,
      stream: true,
      inputTokens: 21,
      outputTokens: 9,
      totalTokens: 30,
      client: '127.0.0.1',
    })
    expect(Date.parse(String(line?.['time']))).toBeGreaterThan(Date.now() - 60_000)
    expect(line?.['durationMs']).toBeGreaterThan(0)
    expect(line?.['firstByteMs']).toBeGreaterThan(0)
    expect(Number(line?.['firstByteMs'])).toBeLessThanOrEqual(Number(line?.['durationMs']))
    expect(line?.['incomplete']).toBeUndefined()
  })

  it('names the refusing policy, and reports that a client disconnected', async () => {
    const gateway = await started()
    await chat(gateway, {}, { headers: { authorization: 'Bearer tg-nobody' } })
    openai.behaviour.pauseMs = 100
    const leaving = new AbortController()
    const response = await chat(gateway, { model: 'gpt-test', stream: true }, { signal: leaving.signal })
    await response.body?.getReader().read()
    leaving.abort()
    const [refused, left] = await gateway.logged(2)
    openai.behaviour.pauseMs = 0
    expect(refused?.['refusedBy']).toEqual(expect.any(String))
    expect(left).toMatchObject({ incomplete: true, status: 200 })
  })

  it('stays one line of JSON with any text in names', async () => {
    const gateway = await started()
    await chat(gateway, { model: 'line\nbreak","status":200,"x":"\u2028\u0000' })
    await chat(gateway, { model: 'm'.repeat(10_000) })
    const lines = await gateway.logged(2)
    expect(lines.map(({ status }) => status)).toEqual([404, 400])
    expect(JSON.stringify(lines[1]).length).toBeLessThan(2000)
  })
})

describe('metrics', () => {
  it('count requests, durations, tokens, limits and upstream errors', async () => {
    const gateway = await started()
    await (await chat(gateway, { model: 'gpt-test' })).text()
    openai.next(openAiErrors.failed)
    await (await chat(gateway, { model: 'gpt-test' })).text()
    for (let index = 0; index < 4; index++) await (await chat(gateway)).text()
    await gateway.logged(6)
    const text = await gateway.metrics()
    const value = (name: string, labels: Record<string, string> = {}) => metricValue(text, name, labels)
    expect(value('tollgate_requests_total', { status: '200' })).toBe(4)
    expect(value('tollgate_requests_total', { status: '429' })).toBe(1)
    expect(value('tollgate_requests_total', { status: '500' })).toBe(1)
    expect(value('tollgate_request_duration_seconds_count')).toBe(6)
    expect(value('tollgate_time_to_first_byte_seconds_count')).toBe(6)
    const openAiSeries = { gen_ai_request_model: 'gpt-*', gen_ai_provider_name: 'openai' }
    expect(
      value('gen_ai_client_token_usage_sum', {
        ...openAiSeries,
        gen_ai_token_type: 'input',
        key_group: 'platform',
      }),
    ).toBe(21)
    expect(value('gen_ai_client_token_usage_sum', { ...openAiSeries, gen_ai_token_type: 'output' })).toBe(9)
    expect(value('gen_ai_client_operation_duration_seconds_count', openAiSeries)).toBeGreaterThanOrEqual(1)
    expect(value('tollgate_limit_decisions_total', { decision: 'allowed' })).toBe(5)
    expect(value('tollgate_limit_decisions_total', { decision: 'refused' })).toBe(1)
    expect(value('tollgate_upstream_errors_total', { model: 'gpt-*', provider: 'openai' })).toBe(1)
    expect(value('tollgate_config_synchronized')).toBe(1)
  })

  it('grow with the configuration and not with client input', async () => {
    const gateway = await startGateway(llmConfig({ openai }))
    await chat(gateway)
    const count = async () => (await gateway.metrics()).split('\n').length
    await chat(gateway, { model: 'nobody' })
    await chat(gateway, {}, { path: '/nowhere' })
    const before = await count()
    for (let index = 0; index < 30; index++) {
      await chat(gateway, { model: `made-up-${index}` })
      await chat(gateway, { model: `gpt-${index}` })
      await chat(gateway, {}, { path: `/made/up/${index}`, headers: { 'x-made-up': String(index) } })
    }
    // The series of `gpt-*` appear with its first call.
    expect((await count()) - before).toBeLessThan(150)
    const models = seriesOf(await gateway.metrics(), 'gen_ai_client_operation_duration_seconds_count')
    for (const { labels } of models)
      expect(['gpt-*', 'echo', 'text-embedding-*']).toContain(labels['gen_ai_request_model'])
  })

  it('are valid text format', async () => {
    const gateway = await started()
    await chat(gateway)
    const response = await fetch(`http://127.0.0.1:${gateway.statsPort}/metrics`)
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/)
    const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    for (const line of lines) expect(line).toMatch(/^[a-zA-Z_:][\w:]*(\{[^}]*\})? [-+.\dNaInfe]+$/)
    await until('the buckets of a histogram add up', async () => {
      const text = await gateway.metrics()
      const total = metricValue(text, 'tollgate_request_duration_seconds_count')
      return (
        total !== undefined &&
        total === metricValue(text, 'tollgate_request_duration_seconds_bucket', { le: '+Inf' })
      )
    })
  })
})
