import { describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { aliceRecord, chat, llmConfig, openAiModel } from '../support/llm-config.ts'
import { mockOpenAi } from '../support/mock-openai.ts'
import { jsonAnswer } from '../support/mock-server.ts'
import { startRateLimitService } from '../support/rate-limit-service.ts'
import { routing, routingConfig } from '../support/traffic.ts'
import { acts, mockWebhook } from '../support/webhook.ts'

type Readings = {
  local: { place: string; limit: string; counts: string; state: Record<string, unknown> }[]
  global: Record<string, unknown>[]
}

async function readLimits({ adminPort }: Gateway): Promise<Readings> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/api/limits`)
  expect(response.status).toBe(200)
  const readings: Readings = JSON.parse(await response.text())
  return readings
}

const hello = (path: string, localRateLimit?: object[]) => ({
  name: path.slice(1),
  matches: [{ path: { exact: path } }],
  policies: {
    directResponse: { status: 200, body: 'hi' },
    ...(localRateLimit && { localRateLimit }),
  },
})

async function statuses(count: number, send: () => Promise<Response>): Promise<number[]> {
  const result: number[] = []
  for (let index = 0; index < count; index++) {
    const response = await send()
    result.push(response.status)
    await response.text()
  }
  return result
}

describe('limits of gateways and routes', () => {
  it('apply together, and a request that the route refuses is not counted', async () => {
    const { gateway, port } = await routing(
      [hello('/one', [{ requests: 2, unit: 'Hours' }]), hello('/other')],
      { gateway: { localRateLimit: [{ requests: 4, unit: 'Hours' }] } },
    )
    const get = (path: string) => () => fetch(`http://127.0.0.1:${port}${path}`)
    expect(await statuses(4, get('/one'))).toEqual([200, 200, 429, 429])
    expect(await statuses(3, get('/other'))).toEqual([200, 200, 429])
    const { local } = await readLimits(gateway)
    expect(local.map(({ place, limit, state }) => [place, limit, state['remaining']])).toEqual([
      ['gateway default', 'gateway default: requests per hour', 0],
      ['route one', 'route one: requests per hour', 0],
    ])
  })

  it('share one count by their id, over gateways and routes, and across a reload of both', async () => {
    const shared = [{ id: 'uid/route/0', requests: 3, unit: 'Hours' }]
    const { gateway, port } = await routing([hello('/one', shared), hello('/two', shared)])
    const get = (path: string) => () => fetch(`http://127.0.0.1:${port}${path}`)
    expect(await statuses(2, get('/one'))).toEqual([200, 200])
    const renamed = { ...hello('/two', shared), name: 'renamed' }
    await gateway.reload(routingConfig(port, [renamed]))
    expect(await statuses(2, get('/two'))).toEqual([200, 429])
  })

  it('for LLM traffic have no effect on other routes of their gateway', async () => {
    const onlyLlm = { requests: 1, unit: 'Hours', appliesTo: 'llm' }
    const promptGuard = { request: [{ regex: { action: 'reject', rules: [{ pattern: 'block' }] } }] }
    const ofAllRules = {
      ai: { appliesTo: 'llm', promptGuard },
      localRateLimit: [{ tokens: 5, unit: 'Hours', appliesTo: 'llm' }],
    }
    const model = {
      matches: [{ path: { pathPrefix: '/model' } }],
      policies: ofAllRules,
      backends: [{ ai: { provider: { echo: {} } } }],
    }
    const plain = { ...hello('/plain'), policies: { ...hello('/plain').policies, ...ofAllRules } }
    const { port } = await routing([model, plain], { gateway: { localRateLimit: [onlyLlm] } })
    const send = (path: string, content: string) => () =>
      fetch(`http://127.0.0.1:${port}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }),
      })
    expect(await statuses(3, send('/plain', 'block'))).toEqual([200, 200, 200])
    expect(await statuses(1, send('/model', 'block'))).toEqual([403])
    expect(await statuses(1, send('/model', 'hello'))).toEqual([429])
    expect(await statuses(1, send('/plain', 'hello'))).toEqual([200])
  })

  it('pass exactly 50 of 500 requests that come at once, however many routes share them', async () => {
    const { port } = await routing([hello('/one'), hello('/other')], {
      gateway: { localRateLimit: [{ requests: 50, unit: 'Hours' }] },
    })
    const answers = await Promise.all(
      Array.from({ length: 500 }, async (_, index) => {
        const response = await fetch(`http://127.0.0.1:${port}${index % 2 ? '/one' : '/other'}`)
        await response.text()
        return response.status
      }),
    )
    expect(answers.filter((status) => status === 200)).toHaveLength(50)
    expect(answers.filter((status) => status === 429)).toHaveLength(450)
  })

  it('count tokens of every LLM behind a gateway, and leave other routes alone', async () => {
    const openai = await mockOpenAi()
    const { gateway, port } = await routing([hello('/plain')], {
      gateway: { localRateLimit: [{ tokens: 30, unit: 'Hours' }] },
      llm: { models: [openAiModel('gpt-*', openai.url)], gateways: 'default', port: undefined },
    })
    const url = `http://127.0.0.1:${port}`
    expect(await statuses(2, () => chat({ url }, { model: 'gpt-test' }))).toEqual([200, 429])
    expect(await statuses(1, () => fetch(`${url}/plain`))).toEqual([200])
    expect((await readLimits(gateway)).local[0]?.state['remaining']).toBe(0)
  })
})

describe('limits of MCP', () => {
  it('count every message, and report it in headers', async () => {
    const gateway = await startGateway({
      mcp: {
        targets: [{ name: 'none', mcp: { host: 'http://127.0.0.1:1/mcp' } }],
        policies: { localRateLimit: [{ requests: 2, unit: 'Hours' }] },
      },
    })
    const post = () =>
      fetch(gateway.mcpUrl, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
      })
    const first = await post()
    expect([first.status === 429, first.headers.get('x-ratelimit-remaining')]).toEqual([false, '1'])
    await post()
    const refused = await post()
    expect([refused.status, await refused.text()]).toEqual([429, 'rate limit exceeded'])
  })
})

describe('tokens that count all the same', () => {
  const limited = (tokens: number, openai: { url: string }, more: object = {}) =>
    llmConfig(
      { openai },
      {
        policies: { apiKey: { keys: [aliceRecord] }, localRateLimit: [{ tokens, unit: 'Hours' }] },
        ...more,
      },
    )
  const remaining = async (gateway: Gateway) =>
    (await readLimits(gateway)).local.map(({ state }) => state['remaining'])

  it('are those of completions', async () => {
    const openai = await mockOpenAi()
    const gateway = await startGateway(limited(100, openai))
    const body = { model: 'gpt-test', prompt: 'hello' }
    await (await chat(gateway, body, { path: '/v1/completions' })).text()
    await (await chat(gateway, { ...body, stream: true }, { path: '/v1/completions' })).text()
    await gateway.logged(2)
    expect(await remaining(gateway)).toEqual([40])
  })

  it('use the last usage of a stream', async () => {
    const openai = await mockOpenAi()
    const usage = (total: number) => ({ prompt_tokens: 1, completion_tokens: total - 1, total_tokens: total })
    openai.next((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const total of [5, 9, 17]) {
        const choices = [{ index: 0, delta: { content: 'x' }, finish_reason: null }]
        response.write(`data: ${JSON.stringify({ id: 'a', choices, usage: usage(total) })}\n\n`)
      }
      response.end('data: [DONE]\n\n')
    })
    const gateway = await startGateway(limited(100, openai))
    await (await chat(gateway, { model: 'gpt-test', stream: true })).text()
    await gateway.logged(1)
    expect(await remaining(gateway)).toEqual([83])
  })

  it('are those of the provider that answered after another had failed, once', async () => {
    const openai = await mockOpenAi()
    const more = {
      virtualModels: [
        {
          name: 'reliable',
          routing: {
            failover: {
              targets: [
                { model: 'gpt-first', priority: 0 },
                { model: 'gpt-second', priority: 1 },
              ],
            },
          },
        },
      ],
    }
    const gateway = await startGateway(limited(100, openai, more))
    openai.next(jsonAnswer(500, { error: { message: 'broken' } }))
    expect((await chat(gateway, { model: 'reliable' })).status).toBe(200)
    await gateway.logged(1)
    expect([openai.seen.length, await remaining(gateway)]).toEqual([2, [70]])
  })

  it('are those of answers that a guard rejects', async () => {
    const openai = await mockOpenAi()
    openai.behaviour.content = 'this is to be rejected: reject'
    const webhook = await mockWebhook()
    webhook.next(acts({ body: 'no', status_code: 403 }))
    const guardrails = { response: [{ webhook: { target: { host: `127.0.0.1:${webhook.port}` } } }] }
    const gateway = await startGateway(limited(100, openai, { guardrails }))
    expect((await chat(gateway, { model: 'gpt-test' })).status).toBe(403)
    await gateway.logged(1)
    expect(await remaining(gateway)).toEqual([70])
  })
})

describe('/api/limits', () => {
  it('report limit status, key values, and requests to the service', async () => {
    const service = await startRateLimitService()
    const descriptors = [{ entries: [{ key: 'user', value: 'apiKey.user' }], type: 'tokens' }]
    const gateway = await startGateway(
      llmConfig(
        {},
        {
          policies: {
            apiKey: { keys: [aliceRecord] },
            rateLimit: {
              local: [
                { requests: 10, unit: 'Hours', key: 'apiKey.id', name: 'per key' },
                { requests: 10, unit: 'Hours', key: 'request.headers["x-secret"]', name: 'per secret' },
              ],
              global: { host: service.host, domain: 'test', descriptors },
            },
          },
        },
      ),
    )
    await (await chat(gateway, {}, { headers: { 'x-secret': 'canary-71' } })).text()
    await gateway.logged(1)
    const readings = await readLimits(gateway)
    expect(readings.local[0]).toMatchObject({
      place: 'llm',
      limit: 'llm: per key',
      state: { key: 'apiKey.id', values: 1, fullest: [{ value: 'key-alice', remaining: 9 }] },
    })
    expect(JSON.stringify(readings)).not.toContain('canary-71')
    expect(readings.global[0]).toMatchObject({
      limit: 'llm: global test',
      service: service.host,
      failureMode: 'failClosed',
      checks: { allowed: 1, refused: 0 },
      descriptors: [{ type: 'tokens', keys: ['user'] }],
    })
    const post = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/limits`, { method: 'POST' })
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })
})
