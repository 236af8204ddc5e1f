import { describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { chat, llmConfig } from '../support/llm-config.ts'
import { namedServer, readToEnd, tcpConnect } from '../support/tcp-servers.ts'
import { namedUpstream, routing, routingConfig } from '../support/traffic.ts'
import { until } from '../support/wait.ts'
import { mockWebhook } from '../support/webhook.ts'

const shop = { name: 'shop-route', backends: [{ backend: '/shop' }] }
const endpoints = (...list: object[]) => ({ backends: [{ name: 'shop', endpoints: list }] })

async function textsOf(port: number, count: number): Promise<string[]> {
  const answers = await Promise.all(Array.from({ length: count }, () => call(port, '/')))
  return answers.map(({ text }) => text)
}

describe('a backend with endpoints', () => {
  it('shares requests by weight, and by the current endpoints after a reload', async () => {
    const [three, one, none] = await Promise.all([namedUpstream('3'), namedUpstream('1'), namedUpstream('0')])
    const first = endpoints(
      { host: three.host, weight: 3 },
      { host: one.host },
      { host: none.host, weight: 0 },
    )
    const { gateway, port } = await routing([shop], first)
    const texts = await textsOf(port, 400)
    const share = texts.filter((text) => text === '3').length / texts.length
    expect(share).toBeGreaterThan(0.65)
    expect(share).toBeLessThan(0.85)
    expect(none.seen).toEqual([])

    await gateway.reload(routingConfig(port, [shop], endpoints({ host: none.host })))
    expect(new Set(await textsOf(port, 10))).toEqual(new Set(['0']))
    await gateway.reload(routingConfig(port, [shop], endpoints()))
    expect(await call(port, '/')).toMatchObject({ status: 503, text: 'the backend has no endpoints' })
    await gateway.reload(routingConfig(port, [shop], endpoints({ host: one.host })))
    expect(await textsOf(port, 3)).toEqual(['1', '1', '1'])
    expect((await gateway.status()).synchronized).toBe(true)
  })

  it('replaces its endpoints together with the routes in one reload', async () => {
    const [one, two] = await Promise.all([namedUpstream('one'), namedUpstream('two')])
    const { gateway, port } = await routing([shop], endpoints({ host: one.host }))
    const renamed = { ...shop, name: 'other' }
    await gateway.reload(routingConfig(port, [renamed], endpoints({ host: two.host })))
    expect(await textsOf(port, 3)).toEqual(['two', 'two', 'two'])
    gateway.write(routingConfig(port, [renamed], endpoints({ host: 'no port' })))
    await until('the bad file is noticed', async () => (await gateway.status()).lastError !== undefined)
    expect(await textsOf(port, 3)).toEqual(['two', 'two', 'two'])
  })

  it('sends the requests of a session to one endpoint', async () => {
    const [one, two] = await Promise.all([namedUpstream('one'), namedUpstream('two')])
    const policies = { sessionAffinity: { source: 'request.headers["x-session"]' } }
    const { port } = await routing([shop], {
      backends: [{ name: 'shop', endpoints: [{ host: one.host }, { host: two.host }], policies }],
    })
    const ofSession = async (session: number) => {
      const headers = { 'x-session': `session-${session}` }
      const answers = await Promise.all([1, 2, 3, 4].map(() => call(port, '/', { headers })))
      return new Set(answers.map(({ text }) => text))
    }
    const sessions = await Promise.all(Array.from({ length: 30 }, (_, index) => ofSession(index)))
    expect(sessions.filter(({ size }) => size !== 1)).toEqual([])
    expect(new Set(sessions.flatMap((texts) => [...texts]))).toEqual(new Set(['one', 'two']))
    expect(new Set(await textsOf(port, 40))).toEqual(new Set(['one', 'two']))
  })

  it('retries on another endpoint, and leaves out one that fails', async () => {
    const good = await namedUpstream('good')
    const health = { eviction: { consecutiveFailures: 1, duration: '1h' } }
    const list = [{ host: `127.0.0.1:${await freePort()}`, weight: 100 }, { host: good.host }]
    const { port } = await routing([{ ...shop, policies: { retry: { attempts: 1 } } }], {
      backends: [{ name: 'shop', endpoints: list, policies: { health } }],
    })
    expect(new Set(await textsOf(port, 20))).toEqual(new Set(['good']))
  })

  it('carries TCP connections', async () => {
    const [one, two, port] = await Promise.all([namedServer('one'), namedServer('two'), freePort()])
    const config = (host: string) => ({
      gateways: { db: { port, protocol: 'TCP' } },
      tcpRoutes: [{ gateways: 'db', backends: [{ backend: '/db' }] }],
      backends: [{ name: 'db', endpoints: [{ host }] }],
    })
    const gateway = await startGateway(config(one.host))
    expect(await readToEnd(await tcpConnect(port))).toBe('one')
    await gateway.reload(config(two.host))
    expect(await readToEnd(await tcpConnect(port))).toBe('two')
  })

  it('serves guardrail webhooks, which fail closed without endpoints', async () => {
    const webhook = await mockWebhook()
    const guard = { webhook: { target: { backend: '/guard' } } }
    const config = (...list: object[]) => ({
      ...llmConfig({}, { guardrails: { request: [guard] } }),
      backends: [{ name: 'guard', endpoints: list }],
    })
    const gateway = await startGateway(config({ host: `127.0.0.1:${webhook.port}` }))
    const ask = async (content: string) =>
      (await chat(gateway, { model: 'echo', messages: [{ role: 'user', content }] })).status
    expect([await ask('hello'), await ask('block this')]).toEqual([200, 403])
    await gateway.reload(config())
    expect(await ask('hello')).toBe(503)
  })
})

describe('an error backend', () => {
  it('answers its share of the requests', async () => {
    const upstream = await namedUpstream('up')
    const message = 'Service shop/missing does not exist'
    const { port, gateway } = await routing([
      { backends: [{ host: upstream.host, weight: 3 }, { error: { status: 500, message } }] },
      { name: 'all', matches: [{ path: { pathPrefix: '/all' } }], backends: [{ error: {} }] },
    ])
    const texts = await textsOf(port, 400)
    const share = texts.filter((text) => text === message).length / texts.length
    expect(share).toBeGreaterThan(0.15)
    expect(share).toBeLessThan(0.35)
    expect(await call(port, '/all')).toMatchObject({ status: 500, text: 'this backend is not available' })
    const line = await until('the line in the log', () =>
      gateway.requests().find(({ route }) => route === 'all'),
    )
    expect(line).toMatchObject({ status: 500, refusedBy: 'backend_error' })
  })

  it('stands beside an ai backend', async () => {
    const { port } = await routing([
      { backends: [{ ai: { provider: { echo: {} } } }, { error: { status: 501, message: 'broken' } }] },
    ])
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })
    const headers = { 'content-type': 'application/json' }
    const asked = Array.from({ length: 60 }, () => call(port, '/', { method: 'POST', body, headers }))
    const statuses = (await Promise.all(asked)).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([200, 501]))
  })
})

describe('several mirrors', () => {
  it('each receive a copy', async () => {
    const [upstream, one, two] = await Promise.all(['up', 'one', 'two'].map((name) => namedUpstream(name)))
    const { port } = await routing(
      [
        {
          policies: {
            requestMirror: [
              { backend: { host: one?.host } },
              { backend: { backend: '/two' } },
              { backend: { backend: '/two' }, percentage: 0 },
            ],
          },
          backends: [{ host: upstream?.host }],
        },
      ],
      { backends: [{ name: 'two', endpoints: [{ host: two?.host }] }] },
    )
    expect((await call(port, '/x', { method: 'POST', body: 'content' })).text).toBe('up')
    for (const copies of [one, two]) {
      await until('the copy arrives', () => copies?.seen.length === 1)
      expect(copies?.seen[0]).toMatchObject({ method: 'POST', path: '/x', text: 'content' })
    }
  })
})
