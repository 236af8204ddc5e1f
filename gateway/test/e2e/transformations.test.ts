import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { endAfter } from '../support/cleanup.ts'
import { runTollgate, startGateway } from '../support/gateway.ts'
import { call, http2Client } from '../support/http-call.ts'
import { chat, llmConfig, openAiModel } from '../support/llm-config.ts'
import { mockOpenAi } from '../support/mock-openai.ts'
import type { MockServer } from '../support/mock-server.ts'
import { namedUpstream, routing, routingConfig, sharedRouting } from '../support/traffic.ts'

const route = (policies: object, backends: readonly object[], path = '/') => ({
  name: `route ${path}`,
  matches: [{ path: { pathPrefix: path } }],
  policies,
  backends,
})

let upstream: MockServer & { host: string }
let running: ReturnType<typeof sharedRouting>

beforeAll(async () => {
  upstream = await namedUpstream('up', 'file')
  running = sharedRouting()
})

const last = (server: MockServer = upstream) => server.seen.at(-1)

describe('transformations of HTTP routes', () => {
  it('change headers, path and body of requests over HTTP/1 and HTTP/2', async () => {
    const request = {
      set: {
        'x-team': 'request.headers["x-user"] + "@team"',
        ':path': '"/new" + request.path + request.query',
      },
      add: { 'x-list': '"b"' },
      remove: ['x-user'],
      body: '"<" + string(request.body) + ">"',
    }
    const { port } = await running([route({ transformations: { request } }, [{ host: upstream.host }])])
    const headers = { 'x-user': 'ann', 'x-list': 'a', 'content-type': 'text/x' }
    const { ask } = http2Client(port)
    const sent = { method: 'POST', body: 'größe', headers }
    for (const answer of [
      await call(port, '/p?q=1', sent),
      await call(port, '/p?q=1', { ...sent, headers: { ...headers, 'transfer-encoding': 'chunked' } }),
      await ask('/p?q=1', sent),
    ]) {
      expect(answer.status).toBe(200)
      expect(last()).toMatchObject({
        path: '/new/p?q=1',
        text: '<größe>',
        headers: {
          'x-team': 'ann@team',
          'x-list': 'a,b',
          'content-type': 'text/x',
          'content-length': String(Buffer.byteLength('<größe>')),
        },
      })
      expect(last()?.headers['x-user']).toBeUndefined()
    }
    const gzip = { ...headers, 'content-encoding': 'gzip' }
    await call(port, '/p', { method: 'POST', body: gzipSync('packed'), headers: gzip })
    expect(last()?.text).toBe('<packed>')
    expect(last()?.headers['content-encoding']).toBeUndefined()
  })

  it('refuse bodies beyond maxBufferSize that an expression reads', async () => {
    const request = { body: 'string(request.body)' }
    const { port } = await running([route({ transformations: { request } }, [{ host: upstream.host }])], {
      frontendPolicies: { http: { maxBufferSize: 1_000 } },
    })
    const before = upstream.seen.length
    const answer = await call(port, '/', { method: 'POST', body: 'a'.repeat(2_000) })
    expect(answer.status).toBe(413)
    expect(upstream.seen.length).toBe(before)
  })

  it('change status, headers and body of responses, of the gateway too', async () => {
    const response = {
      set: { ':status': 'response.code == 200 ? 203 : response.code', 'x-code': 'string(response.code)' },
      body: '{"was": string(response.body)}',
    }
    const { port } = await running([
      route({ transformations: { response }, directResponse: { status: 200, body: 'own' } }, [], '/own'),
      route({ transformations: { response } }, [{ host: upstream.host }]),
    ])
    expect(await call(port, '/')).toMatchObject({
      status: 203,
      text: '{"was":"up"}',
      headers: { 'x-code': '200', 'content-length': '12' },
    })
    expect((await call(port, '/own')).text).toBe('{"was":"own"}')
    const { ask } = http2Client(port)
    expect(await ask('/')).toMatchObject({ status: 203, text: '{"was":"up"}' })
    const head = await call(port, '/', { method: 'HEAD' })
    expect(head).toMatchObject({ status: 203, text: '' })
  })

  it('select a variant by conditions and pass metadata to the response', async () => {
    const conditional = [
      {
        condition: 'request.headers["x-internal"] == "true"',
        request: { metadata: { source: '"internal"' }, set: { 'x-source': 'metadata.source' } },
        response: { set: { 'x-source': 'metadata.source' } },
      },
      { request: { set: { 'x-source': '"public"' } } },
    ]
    const { port } = await running([route({ transformations: { conditional } }, [{ host: upstream.host }])])
    const internal = await call(port, '/', { headers: { 'x-internal': 'true' } })
    expect(last()?.headers['x-source']).toBe('internal')
    expect(internal.headers['x-source']).toBe('internal')
    const other = await call(port, '/')
    expect(last()?.headers['x-source']).toBe('public')
    expect(other.headers['x-source']).toBeUndefined()
  })

  it('share their conditions with direct responses and delays', async () => {
    const directResponse = {
      conditional: [
        {
          condition: 'request.headers["x-version"] == "0"',
          status: 410,
          headers: { 'x-path': 'request.path' },
          bodyExpression: '{"gone": request.path}',
        },
      ],
    }
    const delay = { duration: 'duration(request.headers["x-delay"])' }
    const { port } = await running([route({ directResponse, delay }, [{ host: upstream.host }])])
    const { ask } = http2Client(port)
    for (const send of [ask, (path: string, init: object) => call(port, path, init)]) {
      const gone = await send('/a', { headers: { 'x-version': '0', 'x-delay': '0s' } })
      expect([gone.status, gone.text, gone.headers['x-path']]).toEqual([410, '{"gone":"/a"}', '/a'])
      const startedAt = performance.now()
      const served = await send('/a', { headers: { 'x-version': '1', 'x-delay': '200ms' } })
      expect(served.status).toBe(200)
      expect(performance.now() - startedAt).toBeGreaterThan(190)
    }
  })

  it('apply to upgrades without their body', async () => {
    const request = { set: { 'x-up': '"1"' }, body: '"ignored"' }
    const { port } = await running([route({ transformations: { request } }, [{ host: upstream.host }])])
    const socket = new WebSocket(`ws://127.0.0.1:${port}/`)
    endAfter('test', () => socket.terminate())
    await new Promise((resolve) => socket.once('error', resolve).once('unexpected-response', resolve))
    expect(last()).toMatchObject({ text: '', headers: { 'x-up': '1' } })
  })

  it('remove headers of hostile requests whose expressions fail', async () => {
    const nested = 'request.headers.all(a, request.headers.all(b, request.headers.all(c, a + b + c != "x")))'
    const request = { set: { 'x-safe': `${nested} ? "yes" : "no"`, 'x-json': 'string(request.query)' } }
    const { port, gateway } = await running([
      route({ transformations: { request } }, [{ host: upstream.host }]),
    ])
    const many = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`x-${index}`, 'v'.repeat(50)]))
    const answer = await call(port, '/', { headers: { ...many, 'x-safe': 'forged' } })
    expect(answer.status).toBe(200)
    expect(last()?.headers['x-safe']).not.toBe('forged')
    const metrics = await gateway.metrics()
    expect(metrics).toContain('tollgate_transformation_failures_total')
  })

  it('report invalid headers and variables with their place', async () => {
    const config = {
      gateways: { default: { port: 0 } },
      routes: [
        {
          policies: {
            transformations: { request: { set: { 'content-length': '"1"', 'x-a': 'response.code' } } },
          },
          backends: [{ host: 'localhost:1' }],
        },
      ],
    }
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-transformations-'))
    endAfter('test', () => rmSync(folder, { recursive: true }))
    const file = join(folder, 'config.yaml')
    writeFileSync(file, JSON.stringify(config))
    const { stderr, code } = await runTollgate(['--validate-only', '-f', file])
    expect(code).toBe(1)
    expect(stderr).toContain('content-length is generated for each message')
    expect(stderr).toContain('unknown variable "response"')
  })
})

describe('transformations of LLM traffic', () => {
  it('create the body that rules, limits and the provider see', async () => {
    const openai = await mockOpenAi()
    const body = `{
      "model": "gpt-5-mini",
      "user": "gateway",
      "messages": [{"role": "user", "content": string(request.body)}]
    }`
    const gateway = await startGateway(
      llmConfig(
        { openai },
        {
          policies: {
            authorization: { rules: [{ require: 'llmRequest.user == "gateway"' }] },
            transformations: {
              request: { body, set: { 'x-team': 'apiKey.group' } },
              response: { set: { 'x-model': 'llm.requestModel', 'x-code': 'response.code' } },
            },
          },
        },
      ),
    )
    const answer = await chat(gateway, { model: 'forbidden' })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-model')).toBe('gpt-5-mini')
    expect(answer.headers.get('x-code')).toBe('200')
    const sent = openai.seen.at(-1)
    expect(sent?.headers['x-team']).toBe('platform')
    expect(JSON.parse(sent?.text ?? '{}')).toMatchObject({ user: 'gateway', model: 'gpt-5-mini' })
  })

  it('compute fields of the body for a model, and leave other bytes', async () => {
    const openai = await mockOpenAi()
    const transformation = {
      model: 'llmRequest.model.substring(7)',
      temperature: 'llmRequest.temperature > 1.0 ? 1.0 : llmRequest.temperature',
      user: 'apiKey.none',
    }
    const model = openAiModel('openai/*', openai.url, { transformation })
    const gateway = await startGateway(llmConfig({}, { models: [model] }))
    const body = { model: 'openai/gpt-5-mini', temperature: 1.5, user: 'ann', 'x-unknown': 1 }
    expect((await chat(gateway, body)).status).toBe(200)
    const sent: unknown = JSON.parse(openai.seen.at(-1)?.text ?? '{}')
    expect(sent).toMatchObject({ model: 'gpt-5-mini', temperature: 1, 'x-unknown': 1 })
    expect(sent).not.toHaveProperty('user')
  })

  it('set headers by the parsed request', async () => {
    const openai = await mockOpenAi()
    const gateway = await startGateway(
      llmConfig(
        { openai },
        { policies: { transformations: { request: { set: { 'x-model': 'llmRequest.model' } } } } },
      ),
    )
    expect((await chat(gateway, { model: 'gpt-5-mini' })).status).toBe(200)
    expect(openai.seen.at(-1)?.headers['x-model']).toBe('gpt-5-mini')
  })
})

describe('transformations during reloads', () => {
  it('apply one version to each request', async () => {
    const routes = (version: number) => {
      const set = { 'x-version': `"${version}"` }
      return [route({ transformations: { request: { set }, response: { set } } }, [{ host: upstream.host }])]
    }
    const { gateway, port } = await routing(routes(0))
    let isDone = false
    const mixed: unknown[] = []
    const load = async () => {
      while (!isDone) {
        const answer = await call(port, '/')
        if (answer.status !== 200 || answer.headers['x-version'] === undefined) mixed.push(answer)
      }
    }
    const clients = [load(), load(), load()]
    for (let version = 1; version <= 5; version++) await gateway.reload(routingConfig(port, routes(version)))
    isDone = true
    await Promise.all(clients)
    expect(mixed).toEqual([])
    expect((await call(port, '/')).headers['x-version']).toBe('5')
    expect(last()?.headers['x-version']).toBe('5')
  })
})
