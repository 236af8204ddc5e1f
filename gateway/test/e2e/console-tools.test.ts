import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { sqliteUrl, stored } from '../support/resource-api.ts'
import { until } from '../support/wait.ts'
import { mockWebhook } from '../support/webhook.ts'

/** Endpoints of the console that inspect the configuration, and edit it as a text, in the real process. */

async function ask(gateway: Gateway, method: string, path: string, body?: object, headers = {}) {
  const { adminPort } = gateway
  const answered = await call(adminPort, path, {
    method,
    host: `127.0.0.1:${adminPort}`,
    headers: { ...(body && { 'content-type': 'application/json' }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: answered.status, headers: answered.headers, body: JSON.parse(answered.text) }
}

const routes = [
  { name: 'exact', matches: [{ path: { exact: '/a' } }], policies: { directResponse: { status: 200 } } },
  {
    name: 'posts',
    matches: [{ path: { pathPrefix: '/a' }, method: 'POST' }],
    policies: { timeout: { requestTimeout: '5s' } },
    backends: [{ host: 'localhost:9', weight: 3 }],
  },
  { name: 'shop', hostnames: ['shop.example.com'], backends: [{ host: 'localhost:9' }] },
]

describe.each([1, 2])('with %i data planes', (workerThreads) => {
  it('the route of a request is explained as it is served', async () => {
    const gateway = await startGateway({
      config: { workerThreads },
      gateways: { default: { port: await freePort() } },
      routes,
    })
    const explain = (body: object) => ask(gateway, 'POST', '/api/routes/explain', body)
    expect(await explain({ host: 'x.example.com', path: '/a' })).toMatchObject({
      status: 200,
      body: {
        listener: { name: 'default' },
        route: { name: 'exact', match: 'exact /a' },
        others: expect.arrayContaining([
          expect.objectContaining({ route: 'posts', reason: 'the method must be POST' }),
          expect.objectContaining({ route: 'shop', reason: 'the host does not match shop.example.com' }),
        ]),
      },
    })
    expect(await explain({ host: 'x', method: 'POST', path: '/a/b' })).toMatchObject({
      body: {
        route: { name: 'posts' },
        backend: { targets: ['localhost:9 (weight 3)'], settings: ['timeout'] },
      },
    })
    expect((await explain({ host: 'x', path: '/none' })).body).not.toHaveProperty('route')
    expect(await explain({ gateway: 'nope', host: 'x' })).toMatchObject({
      status: 422,
      body: expect.stringContaining('default (port'),
    })
  })

  it('guards are tested with their webhooks, and no metric counts it', async () => {
    const webhook = await mockWebhook()
    const host = `127.0.0.1:${webhook.port}`
    const guards = [
      { name: 'mail', regex: { rules: [{ builtin: 'email' }] } },
      { name: 'hook', webhook: { target: { host } } },
    ]
    const gateway = await startGateway({
      config: { workerThreads },
      llm: { models: [{ name: 'a', provider: 'echo' }], policies: { guardrails: { request: guards } } },
    })
    const test = (body: object, query = '') => ask(gateway, 'POST', `/api/guards/test${query}`, body)
    expect(await test({ text: 'mask this of ada@example.com' })).toMatchObject({
      status: 200,
      body: {
        outcome: 'masked',
        text: '**** this of <EMAIL_ADDRESS>',
        guards: [
          {
            name: 'mail',
            outcome: 'mask',
            matches: [expect.objectContaining({ before: 'ada@example.com', after: '<EMAIL_ADDRESS>' })],
          },
          { name: 'hook', outcome: 'mask', reason: 'Sensitive content detected' },
        ],
      },
    })
    expect((await test({ text: 'block this' })).body).toMatchObject({
      outcome: 'rejected',
      rejection: { status: 403, body: 'request blocked' },
    })
    const reject = { regex: { action: 'reject', rules: [{ pattern: 'Bluebird' }] } }
    expect((await test({ guards: reject, text: 'Bluebird' })).body).toMatchObject({ outcome: 'rejected' })
    expect((await test({ guards: reject, text: 'sparrow' })).body).toMatchObject({ outcome: 'passed' })
    expect(await gateway.metrics()).not.toMatch(/guardrail_checks_total\{guard="(?:mail|hook)[^}]*\} [1-9]/)
    const other = { webhook: { target: { host: '127.0.0.1:9' } } }
    expect(await test({ guards: other, text: 'x' })).toMatchObject({ status: 403 })
    expect((await test({ guards: other, text: 'x' }, '?newTargets=true')).body).toMatchObject({
      outcome: 'failed',
    })
    const otherPath = { webhook: { target: { host }, headers: { ':path': '"/admin"' } } }
    expect(await test({ guards: otherPath, text: 'x' })).toMatchObject({ status: 403 })
    expect(await test({ guards: guards[1] as object, text: 'x' })).toMatchObject({ status: 200 })
    const metadata = { webhook: { target: { host: '169.254.169.254:80' } } }
    expect(await test({ guards: metadata, text: 'x' }, '?newTargets=true')).toMatchObject({ status: 403 })
  })
})

it('a test of guards reaches neither backends nor the environment without the right to change', async () => {
  const backend = await mockWebhook()
  const gateway = await startGateway(
    {
      config: { storage: { allowedEnv: ['GUARD_SECRET'] } },
      backends: [{ name: 'internal', host: `127.0.0.1:${backend.port}` }],
      llm: { models: [{ name: 'a', provider: 'echo' }] },
    },
    { env: { GUARD_SECRET: 'swordfish' } },
  )
  const test = (guards: object, query = '') =>
    ask(gateway, 'POST', `/api/guards/test${query}`, { guards, text: 'block this' })
  const webhook = { webhook: { target: { backend: '/internal' }, headers: { ':path': '"/request"' } } }
  expect(await test(webhook)).toMatchObject({ status: 403 })
  const openAIModeration = { endpoint: backend.url, policies: { backendAuth: { key: 'k' } } }
  expect(await test({ openAIModeration })).toMatchObject({ status: 403 })
  expect(await test({ presidio: { analyzer: { backend: '/internal' } } })).toMatchObject({ status: 403 })
  expect(backend.seen).toHaveLength(0)
  const rejection = { body: '$GUARD_SECRET' }
  const echo = { regex: { action: 'reject', rules: [{ pattern: 'block' }] }, rejection }
  const refused = await test(echo)
  expect(refused.status).toBe(403)
  expect(JSON.stringify(refused.body)).not.toContain('swordfish')
  expect((await test(echo, '?newTargets=true')).body).toMatchObject({ rejection: { body: 'swordfish' } })
})

it('expressions are evaluated over the facts of a recorded request', async () => {
  const config = { llm: { models: [{ name: 'a', provider: 'echo' }] } }
  const gateway = await startGateway({ ...config, config: { database: { url: sqliteUrl() } } })
  const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'a', messages: [{ role: 'user', content: 'Hello' }] }),
  })
  const requestId = reply.headers.get('x-request-id')
  await reply.text()
  const evaluate = (expression: string) =>
    ask(gateway, 'POST', '/api/cel/evaluate', { expression, scope: 'llm', requestId })
  await until('the request is recorded', async () => (await evaluate('true')).status === 200)
  expect((await evaluate('llm.requestModel')).body).toEqual({ value: 'a', type: 'string' })
  expect((await evaluate('request.path')).body).toMatchObject({ value: '/v1/chat/completions' })
})

describe('the configuration file as a text', () => {
  const config = { llm: { models: [{ name: 'a', provider: 'echo' }] } }
  const read = async (gateway: Gateway) => (await ask(gateway, 'GET', '/api/config/file')).body

  it('is written atomically and active with the response', async () => {
    const gateway = await startGateway(stored(config))
    const { text, revision, readOnly } = await read(gateway)
    expect({ text, readOnly }).toEqual({ text: readFileSync(gateway.file, 'utf8'), readOnly: false })
    const next = `# by the console\n${text.replace('"name": "a"', '"name": "b"')}`
    const put = (body: string, version: string) =>
      ask(gateway, 'PUT', '/api/config/file', { text: body }, { 'if-match': `"${version}"` })
    expect((await put('llm: [\n', revision)).status).toBe(422)
    const written = await put(next, revision)
    expect(written).toMatchObject({ status: 200, body: { changes: [{ path: 'llm.models[0]' }, {}] } })
    expect(readFileSync(gateway.file, 'utf8')).toBe(next)
    const models = await (await fetch(`${gateway.url}/v1/models`)).json()
    expect(models).toMatchObject({ data: [{ id: 'b' }] })
    expect((await put(text, revision)).status).toBe(412)
    // A further change by hand keeps working.
    expect((await read(gateway)).revision).toBe(written.body.revision)
    expect((await ask(gateway, 'GET', '/api/config/resources/llm.model?origin=all')).body).toMatchObject({
      total: 1,
      resources: [{ value: { name: 'b' }, origin: { kind: 'file', line: expect.any(Number) } }],
    })
    const { status } = await put(
      next
        .replace('"models"', '"mcp": 1, "models"')
        .replace('"readinessAddr"', '"database": {"url": "/x"}, "readinessAddr"'),
      written.body.revision,
    )
    expect(status).toBe(422)
    const moved = next.replace('"readinessAddr"', '"database": {"url": "/tmp/elsewhere.db"}, "readinessAddr"')
    expect((await put(moved, written.body.revision)).status).toBe(403)
  })

  it('is read-only in hybrid and read-only mode', async () => {
    for (const [options, status] of [
      [stored(config, sqliteUrl()), 409],
      [{ ...config, config: { storage: { mode: 'readOnly' } } }, 403],
    ] as const) {
      const gateway = await startGateway(options)
      const { text, revision, readOnly, reason } = await read(gateway)
      expect(readOnly).toBe(true)
      const refused = await ask(
        gateway,
        'PUT',
        '/api/config/file',
        { text: `${text}\n` },
        { 'if-match': `"${revision}"` },
      )
      expect(refused).toMatchObject({ status, body: reason })
      const checked = await ask(gateway, 'PUT', '/api/config/file?dryRun=true', { text: 'x: 1' })
      expect(checked.body).toMatchObject({ mistakes: [{ line: 1, column: 1 }] })
    }
  })
})
