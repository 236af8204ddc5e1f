import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { endAfter } from '../support/cleanup.ts'
import { runTollgate, startGateway } from '../support/gateway.ts'
import { call, http2Client } from '../support/http-call.ts'
import { chat, llmConfig } from '../support/llm-config.ts'
import { type MockServer, startMockServer } from '../support/mock-server.ts'
import { rawExchange } from '../support/raw-http.ts'
import { namedUpstream, sharedRouting } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

const denied = { deny: 'string(request.body).contains("secret")' }
const route = (policies: object, backends: readonly object[], path = '/') => ({
  name: `route ${path}`,
  matches: [{ path: { pathPrefix: path } }],
  policies,
  backends,
})
const rules = (...list: unknown[]) => ({ authorization: { rules: list } })
const limited = { frontendPolicies: { http: { maxBufferSize: 200_000 } } }
const post = (body: string | Uint8Array, headers: Record<string, string> = {}) => ({
  method: 'POST',
  body,
  headers,
})

let upstream: MockServer & { host: string }
let running: ReturnType<typeof sharedRouting>

beforeAll(async () => {
  upstream = await namedUpstream('up', 'file')
  running = sharedRouting()
})

const last = (server: MockServer = upstream) => server.seen.at(-1)

describe('rules over request.body', () => {
  it('permit and refuse over HTTP/1 and HTTP/2, and forward permitted bodies with their length', async () => {
    const allow = 'string(request.body).startsWith("{") && size(request.body) < 1000'
    const { port } = await running([route(rules(denied, allow), [{ host: upstream.host }])])
    const chunked = { 'transfer-encoding': 'chunked' }
    const good = '{"a":"größe"}'
    const { ask } = http2Client(port)
    for (const answer of [
      await call(port, '/a', post(good)),
      await call(port, '/a', post(good, chunked)),
      await ask('/a', { method: 'POST', body: good }),
    ]) {
      expect(answer).toMatchObject({ status: 200, text: 'up' })
      expect(last()).toMatchObject({ text: good, headers: { 'content-length': '15' } })
      expect(last()?.headers['transfer-encoding']).toBeUndefined()
    }
    const before = upstream.seen.length
    for (const body of ['{"a":"secret"}', '[]', '']) {
      expect((await call(port, '/a', post(body))).status).toBe(403)
      expect((await call(port, '/a', post(body, chunked))).status).toBe(403)
      expect((await ask('/a', { method: 'POST', body })).status).toBe(403)
    }
    expect((await call(port, '/a')).status).toBe(403)
    expect(upstream.seen.length).toBe(before)
  })

  it('see the bytes behind a content coding, which are the ones that are forwarded', async () => {
    const { port } = await running([route(rules(denied), [{ host: upstream.host }])], limited)
    const gzip = { 'content-encoding': 'gzip' }
    expect((await call(port, '/', post(gzipSync('a secret'), gzip))).status).toBe(403)
    expect((await call(port, '/', post(gzipSync('content'), gzip))).status).toBe(200)
    expect(last()).toMatchObject({ text: 'content', headers: { 'content-length': '7' } })
    expect(last()?.headers['content-encoding']).toBeUndefined()
    const before = upstream.seen.length
    const statuses: number[] = []
    for (const [body, coding] of [
      [gzipSync(gzipSync('a secret')), 'gzip, gzip'],
      [gzipSync('a secret'), 'identity, gzip'],
      [gzipSync('a secret'), 'compress'],
      [Buffer.from('plain'), 'gzip'],
      [gzipSync(Buffer.alloc(200_001)), 'gzip'],
    ] as const) {
      statuses.push((await call(port, '/', post(body, { 'content-encoding': coding }))).status)
    }
    expect(statuses).toEqual([415, 415, 415, 400, 413])
    expect(upstream.seen.length).toBe(before)
  })

  it('bound bodies by maxBufferSize, which other routes of the gateway do not', async () => {
    const { port } = await running(
      [
        route(rules(denied), [{ host: upstream.host }], '/checked'),
        route(rules('request.method == "POST"'), [{ host: upstream.host }], '/streamed'),
      ],
      limited,
    )
    const at = (path: string, size: number, headers = {}) => call(port, path, post('x'.repeat(size), headers))
    expect((await at('/checked', 200_000)).status).toBe(200)
    expect(last()?.text.length).toBe(200_000)
    expect((await at('/checked', 200_001)).status).toBe(413)
    expect((await at('/checked', 200_001, { 'transfer-encoding': 'chunked' })).status).toBe(413)
    expect((await at('/streamed', 300_000)).status).toBe(200)
    expect(last()?.text.length).toBe(300_000)
  })

  it('wait for the body only after the rules on the head', async () => {
    const { port } = await running([
      route(rules(denied, { deny: 'request.method == "PUT"' }), [{ host: upstream.host }]),
    ])
    const head = 'PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n'
    expect(await rawExchange(port, head)).toContain('HTTP/1.1 403')
  })

  it('apply before redirects, and also at gateways and for paths without a route', async () => {
    const redirect = { ...rules(denied), requestRedirect: { authority: { full: 'other.test' } } }
    const { port } = await running([{ ...route(redirect, [], '/moved'), backends: [] }], {
      gateway: rules({ deny: 'string(request.body) == "no"' }),
    })
    const status = async (path: string, body: string) => (await call(port, path, post(body))).status
    expect(await status('/moved', 'content')).toBe(302)
    expect(await status('/moved', 'a secret')).toBe(403)
    expect(await status('/moved', 'no')).toBe(403)
    expect(await status('/nothing', 'no')).toBe(403)
    expect(await status('/nothing', 'yes')).toBe(404)
  })

  it('see upgrades as requests without a body', async () => {
    const { port } = await running([route(rules('size(request.body) == 0'), [{ host: upstream.host }])])
    const socket = new WebSocket(`ws://127.0.0.1:${port}/`)
    const status = await new Promise((resolve) => {
      socket.on('unexpected-response', (_, response) => resolve(response.statusCode))
      socket.on('error', resolve)
    })
    // The upstream of this test answers upgrades as any other request.
    expect(status).toBe(200)
    expect((await call(port, '/', post('x'))).status).toBe(403)
  })
})

describe('a body that was read for rules', () => {
  const large = 'x'.repeat(150_000)

  it('is retried at any size', async () => {
    const retry = { attempts: 2, codes: [503], methods: ['POST'] }
    const { port } = await running([route({ ...rules(denied), retry }, [{ host: upstream.host }])])
    upstream.next((_, response) => response.writeHead(503).end())
    expect((await call(port, '/', post(gzipSync(large), { 'content-encoding': 'gzip' }))).status).toBe(200)
    const [first, second] = upstream.seen.slice(-2)
    expect([first?.text === large, second?.text === large]).toEqual([true, true])
    expect(second?.headers).toMatchObject({ 'x-retry-attempt': '1', 'content-length': '150000' })
    expect(second?.headers['content-encoding']).toBeUndefined()
  })

  it('is the same at the mirror', async () => {
    const copies = await startMockServer((_, response) => response.end())
    const mirror = { requestMirror: { backend: { host: `127.0.0.1:${copies.port}` } } }
    const { port } = await running([route({ ...rules(denied), ...mirror }, [{ host: upstream.host }])])
    await call(port, '/', post(gzipSync('content'), { 'content-encoding': 'gzip' }))
    await until('the copy arrives', () => copies.seen.length === 1)
    expect(last(copies)).toMatchObject({ text: 'content', headers: { 'content-length': '7' } })
    expect(last(copies)?.headers['content-encoding']).toBeUndefined()
    expect((await call(port, '/', post('a secret'))).status).toBe(403)
    expect(copies.seen).toHaveLength(1)
  })
})

it('limits count by request.body, after rules over it', async () => {
  const policies = {
    ...rules(denied),
    localRateLimit: [
      { requests: 1, unit: 'Hours', key: 'request.body' },
      { requests: 3, unit: 'Hours', key: 'string(request.body).substring(0, 1)' },
    ],
  }
  const { port } = await running([route(policies, [{ host: upstream.host }])])
  const statuses: number[] = []
  for (const body of ['a1', 'a1', 'a secret', 'a2', 'a3', 'a4', 'b1'])
    statuses.push((await call(port, '/', post(body))).status)
  expect(statuses).toEqual([200, 429, 403, 200, 200, 429, 200])
})

it('rules of LLM routes see the bytes of the request, and none where there is no body', async () => {
  const gateway = await startGateway(
    llmConfig({}, { policies: rules({ deny: 'string(request.body).contains("\\"hello\\"")' }) }),
  )
  expect((await chat(gateway)).status).toBe(403)
  expect((await chat(gateway, { messages: [{ role: 'user', content: 'hi' }] })).status).toBe(200)
  const headers = { authorization: 'Bearer tg-canary-alice-4c81' }
  expect((await fetch(`${gateway.url}/v1/models`, { headers })).status).toBe(200)
})

describe('places without a body', () => {
  /** The messages of a configuration that is refused. */
  async function mistakesOf(config: object): Promise<string[]> {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-request-body-'))
    endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'c.yaml')
    writeFileSync(file, JSON.stringify(config, undefined, 1))
    const { code, stderr } = await runTollgate(['--validate-only', '-f', file])
    return code === 0 ? [] : stderr.split('\n').filter((line) => line.includes('c.yaml:'))
  }
  const gateways = (policies: object) => ({ default: { port: 8080, ...policies }, other: { port: 8081 } })
  const mcpBackend = { mcp: { targets: [{ name: 'a', mcp: { host: 'https://mcp.test/mcp' } }] } }

  it.each<[string, object, string]>([
    [
      'an MCP route',
      { gateways: gateways({}), routes: [route(rules(denied), [mcpBackend])] },
      'routes[0].policies.authorization.rules[0].deny: unknown member "request.body"',
    ],
    [
      'rules on tools',
      {
        gateways: gateways({}),
        routes: [route({ mcpAuthorization: { rules: [{ deny: 'request["body"] == b""' }] } }, [mcpBackend])],
      },
      'routes[0].policies.mcpAuthorization.rules[0].deny: unknown member "request.body"',
    ],
    [
      'a gateway in front of an MCP route',
      { gateways: gateways(rules(denied)), routes: [route({}, [mcpBackend])] },
      'gateways.default.authorization.rules[0].deny: request.body does not exist on MCP routes, and route route /',
    ],
    [
      'a gateway in front of the mcp section',
      {
        gateways: gateways({ localRateLimit: [{ requests: 1, unit: 'Hours', key: 'request.body' }] }),
        mcp: { gateways: 'default', targets: [{ name: 'a', mcp: { host: 'https://mcp.test/mcp' } }] },
      },
      'gateways.default.localRateLimit[0].key: request.body does not exist on MCP routes, and the mcp section',
    ],
    [
      'a header of a webhook',
      {
        llm: {
          models: [{ name: 'echo', provider: 'echo' }],
          guardrails: {
            request: [
              { webhook: { target: { host: '127.0.0.1:9' }, headers: { 'x-a': 'string(request.body)' } } },
            ],
          },
        },
      },
      'unknown member "request.body"',
    ],
  ])('are %s, which is a mistake', async (_, config, message) => {
    const mistakes = await mistakesOf(config)
    expect(mistakes).toHaveLength(1)
    expect(mistakes[0]).toContain(message)
  })

  it('are none of other gateways', async () => {
    const other = { ...route({}, [mcpBackend], '/mcp'), gateways: 'other' }
    const http = route(rules(denied), [{ host: '127.0.0.1:9' }])
    expect(await mistakesOf({ gateways: gateways(rules(denied)), routes: [other, http] })).toEqual([])
  })
})

describe('buffer', () => {
  it('forwards chunked requests with their length, retries them, and refuses larger ones', async () => {
    const policies = { buffer: { request: { maxBytes: 100_000 } }, retry: { methods: ['POST'] } }
    const { port } = await running([route(policies, [{ host: upstream.host }])])
    const chunked = { 'transfer-encoding': 'chunked' }
    upstream.next((_, response) => response.writeHead(503).end())
    const body = 'x'.repeat(90_000)
    const { ask } = http2Client(port)
    expect((await call(port, '/', post(body, chunked))).status).toBe(200)
    expect(last()).toMatchObject({
      text: body,
      headers: { 'content-length': '90000', 'x-retry-attempt': '1' },
    })
    expect((await ask('/', { method: 'POST', body })).status).toBe(200)
    const before = upstream.seen.length
    expect((await call(port, '/', post(body + body, chunked))).status).toBe(413)
    expect(upstream.seen).toHaveLength(before)
  })

  it('answers broken and larger responses with 502, and streams larger ones with failOpen', async () => {
    const limit = { maxBytes: 1_000 }
    const { port } = await running([
      route({ buffer: { response: limit } }, [{ host: upstream.host }], '/closed'),
      route(
        { buffer: { response: { ...limit, failureMode: 'failOpen' } } },
        [{ host: upstream.host }],
        '/open',
      ),
    ])
    const large = 'y'.repeat(5_000)
    upstream.next((_, response) => response.end(large))
    expect((await call(port, '/closed')).status).toBe(502)
    upstream.next((_, response) => {
      response.writeHead(200, { 'content-length': '900' })
      response.write('partial', () => response.destroy())
    })
    expect((await call(port, '/closed')).status).toBe(502)
    upstream.next((_, response) => {
      response.write('a')
      response.end('b')
    })
    const whole = await call(port, '/closed')
    expect(whole).toMatchObject({ status: 200, text: 'ab', headers: { 'content-length': '2' } })
    upstream.next((_, response) => response.end(large))
    expect((await call(port, '/open')).text).toBe(large)
  })
})
