import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  acts,
  chatAnswer,
  fixtureGuards,
  jsonReply,
  pass,
  webhookGuard,
} from '../../../../../test/fixtures/guardrails.ts'
import { fixtureExchange } from '../../../../../test/fixtures/pipeline.ts'
import { cpuMsOf, expectBelow } from '../../../../../test/support/time-bound.ts'
import { createCancellation } from '../../../../lib/cancellation.ts'
import { createLocalMemory } from '../../../../lib/planes/memory.ts'
import type { OutgoingRequest } from '../../../../net/http-client/send.ts'
import type { Facts } from '../../../../pipeline/exchange.ts'
import { createSlots } from '../service/slots.ts'
import { checkWebhook, type WebhookConfig } from './config.ts'
import { webhookLimits } from './limits.ts'

const target = { host: 'guard.test:8000' }
const withRequest = (headers: Record<string, string>): Partial<Facts> => ({
  request: { ...fixtureExchange().facts.request, headers },
})

async function callWith(
  webhook: Partial<WebhookConfig>,
  { phase = 'request' as 'request' | 'response', facts = {} as Partial<Facts>, replyHeaders = {} } = {},
): Promise<OutgoingRequest> {
  const guards = fixtureGuards({ [phase]: [{ webhook: { target, ...webhook } }] }, acts({}))
  await pass(guards, { facts, replyHeaders })
  const [call] = guards.calls
  if (call === undefined) throw new Error('the webhook was not asked')
  return call
}

describe('a call to a webhook', () => {
  it('has the address, path and headers of the protocol, and nothing of the client', async () => {
    const facts = withRequest({ authorization: 'Bearer secret', cookie: 'a=b', 'x-any': 'thing' })
    for (const phase of ['request', 'response'] as const) {
      expect(await callWith({}, { phase, facts })).toMatchObject({
        origin: 'http://guard.test:8000',
        path: `/${phase}`,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
      })
      expect(Object.keys((await callWith({}, { phase, facts })).headers)).toEqual(['content-type'])
    }
  })

  it('omits headers over the body of the request in the response phase', async () => {
    const headers = {
      ':path': '"/" + llmRequest.model',
      'x-model': 'llmRequest.model',
      'x-either': 'llmRequest.model == "m" || true',
      'x-host': 'request.host',
    }
    const call = await callWith({ headers }, { phase: 'response' })
    expect(call.path).toBe('/response')
    expect(Object.keys(call.headers)).toEqual(['content-type', 'x-either', 'x-host'])
    expect((await callWith({ headers }, { phase: 'request' })).headers).toMatchObject({ 'x-model': 'm' })
  })

  it('takes its head from expressions over the request', async () => {
    const headers = {
      ':path': '"/v1/check?phase=" + llm.requestModel',
      ':method': '"PUT"',
      ':authority': 'request.headers["x-tenant"] + ".test"',
      'X-User': 'jwt.sub',
      'x-key': 'apiKey.id',
      'x-count': 'size(llmRequest.messages)',
      'x-flag': 'request.path.startsWith("/v1")',
      'content-type': '"application/vnd.guard+json"',
    }
    const facts: Partial<Facts> = {
      ...withRequest({ 'x-tenant': 'acme' }),
      jwt: { sub: 'jörg' },
      apiKey: { id: 'key-1' },
      llm: {
        operation: 'chat',
        api: 'chat_completions',
        requestModel: 'm',
        configuredModel: undefined,
        provider: undefined,
        streaming: false,
      },
    }
    const call = await callWith({ headers }, { facts })
    expect(call).toMatchObject({ path: '/v1/check?phase=m', method: 'PUT' })
    expect(call.headers).toEqual({
      'content-type': 'application/vnd.guard+json',
      host: 'acme.test',
      'x-user': Buffer.from('jörg').toString('latin1'),
      'x-key': 'key-1',
      'x-count': '1',
      'x-flag': 'true',
    })
  })

  it.each([
    ['cannot be evaluated', 'jwt.sub'],
    ['is a list', '[1]'],
    ['is null', 'null'],
    ['would end the header', '"a\\r\\nx-admin: 1"'],
    ['fails', '1 / 0'],
  ])(
    'leaves out a header whose expression %s, also one of that name that is forwarded',
    async (_, source) => {
      const call = await callWith(
        {
          headers: { 'x-user': source, 'x-other': '"stays"' },
          forwardHeaderMatches: [{ name: 'x-user', value: { regex: '.*' } }],
        },
        { facts: withRequest({ 'x-user': 'smuggled' }) },
      )
      expect(call.headers).toEqual({ 'content-type': 'application/json', 'x-other': 'stays' })
    },
  )

  it.each([
    ['jwt.sub', '/request'],
    ['"check"', '/request'],
    ['"/a b"', '/request'],
    ['"/a\\r\\n"', '/request'],
    ['"/ok"', '/ok'],
  ])('goes to the usual path where %s is none: %s', async (source, path) => {
    expect((await callWith({ headers: { ':path': source } })).path).toBe(path)
  })

  it('retains method and host when the value is invalid', async () => {
    const headers = { ':method': '"CONNECT"', ':authority': '"a b"' }
    expect(await callWith({ headers })).toMatchObject({
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    })
  })

  it('forwards headers that match: of the client to request guards, of the model to response guards', async () => {
    const forwardHeaderMatches = [
      { name: 'X-Tenant', value: { exact: 'acme' } },
      { name: 'x-id', value: { regex: '[a-f0-9]+' } },
      { name: 'traceparent', value: { regex: '.*' } },
    ]
    const facts = withRequest({ 'x-tenant': 'acme', 'x-id': 'a1-', traceparent: '00-1' })
    expect((await callWith({ forwardHeaderMatches }, { facts })).headers).toEqual({
      'content-type': 'application/json',
      'x-tenant': 'acme',
      traceparent: '00-1',
    })
    const replyHeaders = { 'x-tenant': 'other', 'x-id': ['a1', 'x', 'b2'], traceparent: '00-2' }
    expect(
      (await callWith({ forwardHeaderMatches }, { phase: 'response', facts, replyHeaders })).headers,
    ).toEqual({
      'content-type': 'application/json',
      'x-id': ['a1', 'b2'],
      traceparent: '00-1',
    })
  })

  it('goes to a named backend with its TLS, credential, headers and time limit', async () => {
    const backends = [
      {
        name: 'guard',
        host: 'guard.test:443',
        policies: {
          backendTLS: {},
          backendAuth: { key: 'secret' },
          http: { requestTimeout: '500ms' },
          requestHeaderModifier: { set: { 'x-from': 'gateway' } },
        },
      },
    ]
    const config = {
      request: [{ webhook: { target: { backend: '/guard' }, headers: { authorization: '"mine"' } } }],
    }
    const guards = fixtureGuards(config, acts({}), { backends })
    await pass(guards)
    expect(guards.calls[0]).toMatchObject({
      origin: 'https://guard.test:443',
      headers: { authorization: 'Bearer secret', 'x-from': 'gateway' },
    })
    expect(guards.calls[0]?.connection?.tls).toBeDefined()
  })
})

describe('connections to webhooks', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('are as many as allowed, for all guards and phases of one server together', async () => {
    let open = 0
    let most = 0
    const slow = () =>
      new Promise<ReturnType<typeof jsonReply>>((resolve) => {
        open += 1
        most = Math.max(most, open)
        setTimeout(() => {
          open -= 1
          resolve(jsonReply({ action: {} }))
        }, 10)
      })
    const limits = { maxConnections: 100, keepAliveMs: 1 }
    const guards = fixtureGuards({ request: [webhookGuard, webhookGuard], response: [webhookGuard] }, slow, {
      limits,
    })
    const passing = Promise.all(Array.from({ length: 500 }, () => pass(guards, { answer: chatAnswer('x') })))
    await vi.advanceTimersByTimeAsync(10_000)
    expect((await passing).every(({ status }) => status === 200)).toBe(true)
    expect(most).toBe(100)
    expect(guards.calls).toHaveLength(1_500)
    expect(guards.calls[0]?.connection).toMatchObject({ maxConnections: 100, keepAliveMs: 1 })
  })

  it('are waited for within the time limit of the call', async () => {
    const guards = fixtureGuards({ request: [webhookGuard] }, () => new Promise(() => {}), {
      limits: { maxConnections: 1, keepAliveMs: 1 },
    })
    const first = pass(guards)
    await vi.advanceTimersByTimeAsync(5_000)
    const second = pass(guards)
    await vi.advanceTimersByTimeAsync(5_000)
    expect((await first).status).toBe(503)
    await vi.advanceTimersByTimeAsync(5_000)
    expect((await second).status).toBe(503)
    expect(guards.calls).toHaveLength(2)
  })

  it('are given up after the time limit of a named backend', async () => {
    const backends = [
      { name: 'guard', host: 'guard.test:80', policies: { http: { requestTimeout: '500ms' } } },
    ]
    const config = { request: [{ webhook: { target: { backend: '/guard' } } }] }
    const guards = fixtureGuards(config, () => new Promise(() => {}), { backends })
    let status = 0
    void pass(guards).then((outcome) => {
      status = outcome.status
    })
    await vi.advanceTimersByTimeAsync(499)
    expect(status).toBe(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(status).toBe(503)
    expect(guards.calls[0]?.cancellation?.cancelled).toBe(true)
  })

  it('are unlimited when configured as 0', async () => {
    const guards = fixtureGuards({ request: [webhookGuard] }, () => new Promise(() => {}), {
      limits: { maxConnections: 0, keepAliveMs: 1 },
    })
    const passing = Promise.all(Array.from({ length: 300 }, () => pass(guards)))
    await vi.advanceTimersByTimeAsync(1)
    expect(guards.calls).toHaveLength(300)
    expect(guards.calls[0]?.connection?.maxConnections).toBe(Number.POSITIVE_INFINITY)
    await vi.advanceTimersByTimeAsync(10_000)
    await passing
  })
})

describe('slots', () => {
  it('are acquired in order, without cancelled callers', async () => {
    const slots = createSlots(createLocalMemory(), 'http://webhook.test')
    slots.resize(1)
    const gone = createCancellation()
    const entered: string[] = []
    expect(slots.acquire(createCancellation())).toBeUndefined()
    void slots.acquire(gone)?.then(() => entered.push('gone'))
    void slots.acquire(createCancellation())?.then(() => entered.push('second'))
    void slots.acquire(createCancellation())?.then(() => entered.push('third'))
    gone.cancel()
    slots.release()
    await Promise.resolve()
    expect(entered).toEqual(['second'])
    slots.resize(2)
    await Promise.resolve()
    expect(entered).toEqual(['second', 'third'])
  })

  it('remove cancelled callers while a server hangs', async () => {
    const slots = createSlots(createLocalMemory(), 'http://webhook.test')
    slots.resize(1)
    slots.acquire(createCancellation())
    await expectBelow(2_000, () =>
      cpuMsOf(() => {
        for (let index = 0; index < 50_000; index += 1) {
          const waiting = createCancellation()
          slots.acquire(waiting)
          waiting.cancel()
        }
      }),
    )
  })
})

describe('limits of the environment', () => {
  it('are 100 connections and 300 seconds by default', () => {
    expect(webhookLimits({})).toEqual({ maxConnections: 100, keepAliveMs: 300_000 })
    expect(
      webhookLimits({ GUARDRAIL_WEBHOOK_MAX_CONNECTIONS: '0', GUARDRAIL_WEBHOOK_KEEPALIVE_SECONDS: '5' }),
    ).toEqual({ maxConnections: 0, keepAliveMs: 5_000 })
  })

  it.each(['-1', '1.5', 'many', '1e3'])('must be whole numbers, not %s', (text) => {
    expect(() => webhookLimits({ GUARDRAIL_WEBHOOK_MAX_CONNECTIONS: text })).toThrow(
      `GUARDRAIL_WEBHOOK_MAX_CONNECTIONS must be a whole number from 0 on, got "${text}"`,
    )
  })
})

describe('a webhook that cannot be', () => {
  const issuesOf = (config: Partial<WebhookConfig>, phase: 'request' | 'response' = 'request') => {
    const issues: string[] = []
    checkWebhook({ target, ...config }, { phase, backends: [{ name: 'tools', mcp: {} }] }, (path, message) =>
      issues.push(`${path.join('.')}: ${message}`),
    )
    return issues
  }

  it('is reported with its error', () => {
    expect(issuesOf({ target: { host: 'guard.test:0' } })).toEqual([
      'target.host: port 0 cannot be connected to',
    ])
    expect(issuesOf({ target: { backend: '/guard' } })).toEqual([
      'target.backend: no backend is named "guard"',
    ])
    expect(issuesOf({ target: { backend: '/tools' } })).toEqual([
      'target.backend: backend "tools" is not a host',
    ])
    expect(issuesOf({ headers: { ':scheme': '"https"' } })[0]).toContain(
      'expected one of :path, :method, :authority',
    )
    expect(issuesOf({ headers: { 'content-length': '"1"' } })[0]).toContain('is set by the gateway')
    expect(issuesOf({ headers: { host: '"a"', ':authority': '"b"' } })[0]).toContain(
      'duplicates another header',
    )
    expect(issuesOf({ headers: { x: 'jwt.' } })).toHaveLength(1)
    expect(issuesOf({ forwardHeaderMatches: [{ name: 'host', value: { exact: 'x' } }] })).toHaveLength(1)
    expect(issuesOf({ forwardHeaderMatches: [{ name: 'x', value: { regex: '(' } }] })).toHaveLength(1)
  })

  it('loads headers over the body of the request in both phases', () => {
    const config = { headers: { 'x-model': 'llmRequest.model' } }
    expect(issuesOf(config, 'request')).toEqual([])
    expect(issuesOf(config, 'response')).toEqual([])
  })
})
