import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createAuthority } from '../support/certificates.ts'
import { startGateway } from '../support/gateway.ts'
import { aliceRecord, chat, llmConfig } from '../support/llm-config.ts'
import { mockOpenAi } from '../support/mock-openai.ts'
import { startRateLimitService, startSilentServer } from '../support/rate-limit-service.ts'
import { certificateFiles, routing } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

const perKey = { entries: [{ key: 'user', value: 'apiKey.user' }] }
const tokensPerKey = { ...perKey, type: 'tokens' }

type Global = { host: string; domain: string; descriptors: object[] }

function globally(service: { host: string }, descriptors: object[], more: object = {}): Global {
  return { host: service.host, domain: 'test', descriptors, ...more }
}

function limited(remoteRateLimit: object, openai?: { url: string }, more: object = {}) {
  const apiKey = { keys: [aliceRecord] }
  return llmConfig(openai ? { openai } : {}, { policies: { apiKey, remoteRateLimit, ...more } })
}

const standing = (response: Response) =>
  ['limit', 'remaining'].map((name) => response.headers.get(`x-ratelimit-${name}`))

describe('global request limits', () => {
  it("count at the service and report the client's limit status", async () => {
    const service = await startRateLimitService({ limits: { 'user=alice': 2 } })
    const gateway = await startGateway(limited(globally(service, [perKey])))
    const first = await chat(gateway)
    expect([first.status, ...standing(first)]).toEqual([200, '2', '1'])
    expect(Number(first.headers.get('x-ratelimit-reset'))).toBeGreaterThan(0)
    expect((await chat(gateway)).status).toBe(200)
    const refused = await chat(gateway)
    expect([refused.status, await refused.text(), ...standing(refused)]).toEqual([
      429,
      'rate limit exceeded',
      '2',
      '0',
    ])
    expect(refused.headers.get('content-type')).toBe('text/plain')
    expect(refused.headers.get('retry-after')).toBe(refused.headers.get('x-ratelimit-reset'))
    expect(service.seen[0]).toEqual({
      domain: 'test',
      descriptors: [{ entries: [{ key: 'user', value: 'alice' }], hitsAddend: '1' }],
      hitsAddend: 1,
    })
  })

  it('are one limit for two gateways', async () => {
    const service = await startRateLimitService({ limits: { 'user=alice': 10 } })
    const config = limited(globally(service, [perKey]))
    const gateways = await Promise.all([startGateway(config), startGateway(config)])
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) => chat(gateways[index % 2] ?? gateways[0])),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(10)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(20)
  })

  it('are skipped for requests that local limits refuse, and return units that those counted', async () => {
    const service = await startRateLimitService({ limits: { 'user=alice': 1 } })
    const gateway = await startGateway(
      limited(globally(service, [perKey]), undefined, { localRateLimit: [{ requests: 2, unit: 'Hours' }] }),
    )
    expect((await chat(gateway)).status).toBe(200)
    // The service refuses these, so none of them consumes the remaining local limit.
    for (let index = 0; index < 3; index++) expect((await chat(gateway)).status).toBe(429)
    service.limits = { 'user=alice': 1_000 }
    const last = await chat(gateway)
    expect([last.status, ...standing(last)]).toEqual([200, '2', '0'])
    const asked = service.seen.length
    expect((await chat(gateway)).status).toBe(429)
    expect(service.seen).toHaveLength(asked)
  })

  it('apply on gateways, routes and MCP', async () => {
    const service = await startRateLimitService({ limits: { 'at=gateway': 4, 'at=route': 3, 'at=mcp': 1 } })
    const at = (place: string) => globally(service, [{ entries: [{ key: 'at', value: `"${place}"` }] }])
    const { gateway, port } = await routing(
      [
        {
          matches: [{ path: { exact: '/hello' } }],
          policies: { directResponse: { status: 200, body: 'hi' }, rateLimit: { global: at('route') } },
        },
      ],
      {
        gateway: { remoteRateLimit: at('gateway') },
        mcp: {
          targets: [{ name: 'none', mcp: { host: 'http://127.0.0.1:1/mcp' } }],
          policies: { remoteRateLimit: at('mcp') },
        },
      },
    )
    const get = async () => (await fetch(`http://127.0.0.1:${port}/hello`)).status
    expect([await get(), await get(), await get(), await get()]).toEqual([200, 200, 200, 429])
    // Requests for no route pass the gateway's limits, too.
    expect((await fetch(`http://127.0.0.1:${port}/nothing`)).status).toBe(429)
    const mcp = () => fetch(gateway.mcpUrl, { method: 'POST', body: '{}' })
    await mcp()
    expect((await mcp()).status).toBe(429)
  })

  it("pass the service's headers to upstream and client, and its body to refused clients", async () => {
    const openai = await mockOpenAi()
    const service = await startRateLimitService()
    service.extra = {
      requestHeadersToAdd: [
        { key: 'X-Plan', value: 'gold' },
        { key: 'Transfer-Encoding', value: 'chunked' },
        { key: 'bad name', value: 'x' },
        { key: 'x-split', value: 'a\r\nx-injected: 1' },
      ],
      responseHeadersToAdd: [
        { key: 'X-Quota', value: 'plenty' },
        { key: 'connection', value: 'close' },
        { key: 'content-length', value: '3' },
        { key: 'x-split', value: 'a\r\nx-injected: 1' },
      ],
    }
    const gateway = await startGateway(limited(globally(service, [perKey]), openai))
    const allowed = await chat(gateway, { model: 'gpt-test' }, { headers: { 'x-plan': 'free' } })
    expect([allowed.status, allowed.headers.get('x-quota'), allowed.headers.get('x-split')]).toEqual([
      200,
      'plenty',
      null,
    ])
    const upstream = openai.seen[0]?.headers ?? {}
    expect([upstream['x-plan'], upstream['x-split'], upstream['x-injected']]).toEqual([
      'gold',
      undefined,
      undefined,
    ])
    service.extra = {
      overallCode: 'CODE_OVER_LIMIT',
      rawBody: Buffer.from('{"slow":"down"}').toString('base64'),
      responseHeadersToAdd: [
        { key: 'Content-Type', value: 'application/json' },
        { key: 'x-envoy-ratelimited', value: 'true' },
      ],
    }
    const refused = await chat(gateway, { model: 'gpt-test' })
    expect([refused.status, await refused.json()]).toEqual([429, { slow: 'down' }])
    expect([refused.headers.get('content-type'), refused.headers.get('x-envoy-ratelimited')]).toEqual([
      'application/json',
      'true',
    ])
  })
})

describe('a service that counts only the top-level number', () => {
  it('limits requests and tokens, and its headers are shown as they are', async () => {
    const openai = await mockOpenAi()
    const service = await startRateLimitService({ mode: 'limitador', limits: { 'user=alice': 50 } })
    const gateway = await startGateway(limited(globally(service, [tokensPerKey]), openai))
    const first = await chat(gateway, { model: 'gpt-test' })
    expect([first.status, ...standing(first)]).toEqual([200, '50, 50;w=3600', '49'])
    // 30 tokens a call, and one for each question: this service knows no question that costs nothing.
    await until('the report arrives', () => service.counts.get('user=alice') === 31)
    expect((await chat(gateway, { model: 'gpt-test' })).status).toBe(200)
    await until('the service heard of the second call', () => service.seen.length === 4)
    expect(service.counts.get('user=alice')).toBe(32)
    // The second report exceeds the remaining units, and such a service does not count it.
    const name = 'tollgate_global_limit_reports_total{limit="llm: global test",outcome="over_limit"} 1'
    await until('the metric shows it', async () => (await gateway.metrics()).includes(name))
  })

  it('counts every token with its own methods, and refuses once the budget is exceeded', async () => {
    const openai = await mockOpenAi()
    const service = await startRateLimitService({ mode: 'limitador', limits: { 'user=alice': 60 } })
    const config = globally(service, [tokensPerKey], { protocol: 'kuadrant' })
    const gateway = await startGateway(limited(config, openai))
    for (const total of [30, 60]) {
      expect((await chat(gateway, { model: 'gpt-test' })).status).toBe(200)
      await until('the report arrives', () => service.counts.get('user=alice') === total)
    }
    const refused = await chat(gateway, { model: 'gpt-test' })
    expect([refused.status, await refused.text()]).toEqual([429, 'rate limit exceeded'])
    expect(service.counts.get('user=alice')).toBe(60)
  })
})

describe('a token budget', () => {
  it('that is used up to the last token refuses the next request', async () => {
    const openai = await mockOpenAi()
    const service = await startRateLimitService({ limits: { 'user=alice': 30 } })
    const gateway = await startGateway(limited(globally(service, [tokensPerKey]), openai))
    expect((await chat(gateway, { model: 'gpt-test' })).status).toBe(200)
    await until('the report arrives', () => service.counts.get('user=alice') === 30)
    expect((await chat(gateway, { model: 'gpt-test' })).status).toBe(429)
    expect(openai.seen).toHaveLength(1)
  })

  it('beside a used-up one is not charged for the question about that one', async () => {
    const openai = await mockOpenAi()
    const service = await startRateLimitService({ limits: { 'user=alice': 30, 'team=a': 1_000 } })
    const team = { entries: [{ key: 'team', value: '"a"' }], type: 'tokens' }
    const gateway = await startGateway(limited(globally(service, [tokensPerKey, team]), openai))
    expect((await chat(gateway, { model: 'gpt-test' })).status).toBe(200)
    await until('the reports arrive', () => service.counts.get('team=a') === 30)
    expect((await chat(gateway, { model: 'gpt-test' })).status).toBe(429)
    expect(service.counts.get('team=a')).toBe(30)
  })
})

describe('a service in trouble', () => {
  it.each([
    ['does not answer', 'hang'],
    ['has no quota', 'exhausted'],
    ['talks garbage', 'garbage'],
  ] as const)('that %s refuses requests, or lets them through where that is wanted', async (_, mode) => {
    const service = await startRateLimitService({ mode })
    const config = globally(service, [perKey], { timeout: '200ms' })
    const [closed, open] = await Promise.all([
      startGateway(limited(config)),
      startGateway(limited({ ...config, failureMode: 'FailOpen' })),
    ])
    const startedAt = performance.now()
    const refused = await chat(closed)
    expect([refused.status, await refused.text(), refused.headers.get('content-type')]).toEqual([
      500,
      'rate limit failed',
      'text/plain',
    ])
    expect(performance.now() - startedAt).toBeLessThan(20_000)
    expect((await chat(open)).status).toBe(200)
    const [line] = await closed.logged(1)
    expect(line?.['refusedBy']).toBe('rate-limit: llm: global test failed')
    expect(await open.metrics()).toContain(
      'tollgate_global_limit_checks_total{limit="llm: global test",outcome="failed_open"} 1',
    )
  })

  it('is not waited for by every request while failures let through', async () => {
    const service = await startRateLimitService({ mode: 'hang' })
    const config = globally(service, [perKey, tokensPerKey], { timeout: '300ms', failureMode: 'failOpen' })
    const gateway = await startGateway(limited(config))
    const startedAt = performance.now()
    for (let index = 0; index < 30; index++) expect((await chat(gateway)).status).toBe(200)
    const seconds = (performance.now() - startedAt) / 1_000
    // One check a request until five had no answer, then at most one a second.
    const checks = service.seen.filter(({ hitsAddend = 0 }) => hitsAddend <= 1)
    expect(checks.length).toBeLessThan(13 + seconds)
    service.mode = 'envoy'
    service.limits = { 'user=alice': 0 }
    await until('the service is asked again', async () => (await chat(gateway)).status === 429)
  })

  it('is waited for no longer than configured, also while connecting', async () => {
    const silent = await startSilentServer()
    const gateway = await startGateway(limited(globally(silent, [perKey], { timeout: '200ms' })))
    const startedAt = performance.now()
    expect((await chat(gateway)).status).toBe(500)
    expect(performance.now() - startedAt).toBeLessThan(20_000)
  })

  it('fails only the calls it fails', async () => {
    const service = await startRateLimitService({ mode: 'flap' })
    const gateway = await startGateway(limited(globally(service, [perKey])))
    const statuses: number[] = []
    for (let index = 0; index < 4; index++) statuses.push((await chat(gateway)).status)
    expect(statuses).toEqual([500, 200, 500, 200])
  })

  it('is found again after a restart', async () => {
    const service = await startRateLimitService({ limits: { 'user=alice': 1_000 } })
    const gateway = await startGateway(limited(globally(service, [perKey])))
    expect((await chat(gateway)).status).toBe(200)
    await service.stop()
    expect((await chat(gateway)).status).toBe(500)
    await service.start()
    await until('the gateway is connected again', async () => (await chat(gateway)).status === 200)
  })
})

describe('the connection to the service', () => {
  it('is the same after a reload that changes other things', async () => {
    const service = await startRateLimitService()
    const config = limited(globally(service, [perKey]))
    // Each data plane has a connection.
    const gateway = await startGateway({ ...config, config: { workerThreads: 1 } })
    await chat(gateway)
    await gateway.reload({
      ...limited(globally(service, [perKey], { timeout: '2s', failureMode: 'failOpen' })),
      config: { workerThreads: 1 },
    })
    await Promise.all(Array.from({ length: 20 }, () => chat(gateway)))
    expect([service.seen.length, service.connections]).toEqual([21, 1])
  })

  it('may be closed by the service in order without a request that fails', async () => {
    const service = await startRateLimitService()
    const gateway = await startGateway(limited(globally(service, [perKey], { timeout: '5s' })))
    const statuses: number[] = []
    const client = async () => {
      for (let index = 0; index < 20; index++) statuses.push((await chat(gateway)).status)
    }
    const clients = Promise.all(Array.from({ length: 10 }, client))
    const closing = setInterval(service.retire, 40)
    await clients
    clearInterval(closing)
    expect(service.connections).toBeGreaterThan(2)
    expect(statuses.filter((status) => status !== 200)).toEqual([])
  })

  it('is made over TLS where the named backend requires it, to the server of that name', async () => {
    const authority = createAuthority()
    const files = certificateFiles(authority)
    const service = await startRateLimitService({ tls: authority.issue('limiter.test') })
    const backend = (hostname: string) => ({
      name: 'limiter',
      host: service.host,
      policies: { backendTLS: { root: files.cert, hostname } },
    })
    const config = (hostname: string) => ({
      ...limited({ backend: '/limiter', domain: 'test', descriptors: [perKey] }),
      backends: [backend(hostname)],
    })
    const gateway = await startGateway(config('limiter.test'))
    expect((await chat(gateway)).status).toBe(200)
    await gateway.reload(config('another.test'))
    expect((await chat(gateway)).status).toBe(500)
    await gateway.reload(config('limiter.test'))
    expect((await chat(gateway)).status).toBe(200)
    expect(service.seen).toHaveLength(2)
  })

  it('leads to a backend that there is', async () => {
    const config = (more: object) => ({ ...limited({ domain: 'd', descriptors: [perKey], ...more }) })
    const gateway = await startGateway(config({ host: '127.0.0.1:9' }))
    for (const [more, message] of [
      [{ backend: 'nobody' }, 'no backend is named "nobody"'],
      [{ service: { name: 'limiter', port: 8081 } }, "agentgateway's service is not supported"],
      [{ host: '127.0.0.1:9', timeout: '0s' }, 'must be greater than 0'],
    ] as const) {
      gateway.write(
        JSON.stringify({ ...JSON.parse(readFileSync(gateway.file, 'utf8')), ...filled(config(more)) }),
      )
      const { lastError } = await until('the file is refused', async () => {
        const status = await gateway.status()
        return status.lastError?.includes(message) && status
      })
      expect(lastError).toContain('remoteRateLimit')
    }

    function filled({ llm }: { llm?: object }) {
      return { llm: { port: gateway.port, ...llm } }
    }
  })
})

describe('global token limits', () => {
  it('report the usage of streams, errors and clients that left, and nothing else', async () => {
    const openai = await mockOpenAi()
    const service = await startRateLimitService({ limits: { 'user=alice': 1_000_000 } })
    const gateway = await startGateway(limited(globally(service, [tokensPerKey]), openai))
    const model = 'gpt-test'
    await (await chat(gateway, { model })).text()
    await (await chat(gateway, { model, stream: true })).text()
    await (await chat(gateway, { model, stream: true, stream_options: { include_usage: false } })).text()
    await (await chat(gateway, { model: 'no-such-model' })).text()
    openai.behaviour.cutAfter = 2
    await (await chat(gateway, { model, stream: true })).text().catch(() => '')
    openai.behaviour.cutAfter = undefined
    openai.behaviour.pauseMs = 50
    const leaving = new AbortController()
    const stream = await chat(gateway, { model, stream: true }, { signal: leaving.signal })
    await stream.body?.getReader().read()
    leaving.abort()
    const lines = await gateway.logged(6)
    const used = lines.map((line) => Number(line['totalTokens'] ?? 0))
    await until('all reports are in', () => service.seen.filter(isReport).length >= 5)
    const reported = service.seen.filter(isReport).map(({ hitsAddend = 0 }) => hitsAddend)
    expect(reported.toSorted()).toEqual(used.filter((tokens) => tokens > 0).toSorted())
    expect(lines.filter((line) => line['tokensEstimated'] === true)).toHaveLength(2)
  })

  it('are reported to the last one over many calls at once', async () => {
    const openai = await mockOpenAi()
    openai.behaviour.pauseMs = 2
    const service = await startRateLimitService({ limits: { 'user=alice': 1_000_000 } })
    const gateway = await startGateway(limited(globally(service, [tokensPerKey]), openai))
    const calls = 60
    await Promise.all(
      Array.from({ length: calls }, async (_, index) => {
        const leaving = new AbortController()
        const model = index % 5 === 0 ? 'no-such-model' : 'gpt-test'
        const body = {
          model,
          stream: index % 2 === 0,
          messages: [{ role: 'user', content: 'x'.repeat(index) }],
        }
        const init = index % 3 === 0 ? { signal: leaving.signal } : {}
        if (index % 3 === 0) setTimeout(() => leaving.abort(), 5 + index)
        await chat(gateway, body, init)
          .then((response) => response.text())
          .catch(() => 'left')
      }),
    )
    // Early leavers may not have reached the gateway at all, so the total is read at the end.
    await gateway.stop()
    const used = gateway.requests().map((line) => Number(line['totalTokens'] ?? 0))
    const total = used.reduce((sum, tokens) => sum + tokens, 0)
    expect(total).toBeGreaterThan(0)
    expect(service.counts.get('user=alice')).toBe(total)
    expect(service.seen.filter(isReport)).toHaveLength(used.filter((tokens) => tokens > 0).length)
  })

  it('refuse once the service has heard that they are used up', async () => {
    const openai = await mockOpenAi()
    const service = await startRateLimitService({ limits: { 'user=alice': 29 } })
    const gateway = await startGateway(limited(globally(service, [tokensPerKey]), openai))
    expect((await chat(gateway, { model: 'gpt-test' })).status).toBe(200)
    await until('the report arrives', () => service.counts.get('user=alice') === 30)
    const refused = await chat(gateway, { model: 'gpt-test' })
    expect([refused.status, await refused.text(), ...standing(refused)]).toEqual([
      429,
      'rate limit exceeded',
      '29',
      '0',
    ])
    expect(openai.seen).toHaveLength(1)
  })

  it('are reported to a service that was away, and before the gateway ends', async () => {
    const openai = await mockOpenAi()
    const service = await startRateLimitService({ limits: { 'user=alice': 1_000 } })
    const config = globally(service, [tokensPerKey], { failureMode: 'failOpen' })
    const gateway = await startGateway(limited(config, openai))
    await service.stop()
    expect((await chat(gateway, { model: 'gpt-test' })).status).toBe(200)
    await gateway.logged(1)
    const ended = gateway.stop()
    await service.start()
    await ended
    expect(service.counts.get('user=alice')).toBe(30)
  })

  it('are reported of requests that the end of the gateway cuts off', async () => {
    const openai = await mockOpenAi()
    openai.behaviour.pauseMs = 10_000
    const service = await startRateLimitService({ limits: { 'user=alice': 1_000 } })
    const gateway = await startGateway({
      ...limited(globally(service, [tokensPerKey]), openai),
      config: { connectionTerminationDeadline: '200ms' },
    })
    const stream = await chat(gateway, { model: 'gpt-test', stream: true })
    await stream.body?.getReader().read()
    await gateway.stop()
    const used = gateway.requests().map((line) => line['totalTokens'])
    expect(used).toEqual([expect.any(Number)])
    expect(service.counts.get('user=alice')).toBe(used[0])
  })
})

function isReport({ descriptors }: { descriptors: { hitsAddend?: string }[] }): boolean {
  return descriptors.some(({ hitsAddend }) => Number(hitsAddend ?? 0) > 0)
}
