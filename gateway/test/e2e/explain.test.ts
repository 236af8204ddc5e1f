import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { isJsonObject, type JsonObject } from '../../src/lib/json/json.ts'
import { endAfter } from '../support/cleanup.ts'
import { freePorts } from '../support/free-port.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { aliceKey, aliceRecord, chat, openAiModel } from '../support/llm-config.ts'
import { programTarget } from '../support/mcp-fixtures.ts'
import { initializeMessage, openSession, post } from '../support/mcp-raw.ts'
import { type MockOpenAi, mockOpenAi, openAiErrors, openAiKey } from '../support/mock-openai.ts'
import { until } from '../support/wait.ts'

// GET /api/requests/{id}: the cause of each refusal and failure.

const keys = {
  limited: 'tg-canary-limited-1a2b',
  spent: 'tg-canary-spent-3c4d',
  narrow: 'tg-canary-narrow-5e6f',
  expired: 'tg-canary-expired-7a8b',
}
const canary = 'canary-content-91f3'
const headerCanary = 'canary-header-52d1'
const queryCanary = 'canary-query-77c0'

let gateway: Gateway
let openai: MockOpenAi
let folder: string

function record(name: keyof typeof keys, more: object = {}): object {
  return { key: keys[name], metadata: { id: `key-${name}`, name, group: 'platform' }, ...more }
}

async function config(explain?: string) {
  const [closedPort = 0] = await freePorts(1)
  const closed = `http://127.0.0.1:${closedPort}`
  return {
    config: {
      logging: { database: { url: `sqlite://${join(folder, 'ledger.db')}` }, ...(explain && { explain }) },
    },
    llm: {
      models: [
        { name: 'echo', provider: 'echo' },
        openAiModel('gpt-*', openai.url),
        openAiModel('gone', closed),
        openAiModel('first', closed),
        openAiModel('second', openai.url),
      ],
      virtualModels: [
        {
          name: 'both',
          routing: {
            failover: {
              targets: [
                { model: 'first', priority: 0 },
                { model: 'second', priority: 1 },
              ],
            },
          },
        },
      ],
      guardrails: {
        request: [{ name: 'secrets', regex: { rules: [{ pattern: 'forbidden-[0-9]+' }], action: 'reject' } }],
      },
      policies: {
        apiKey: {
          mode: 'strict',
          keys: [
            aliceRecord,
            record('limited', { limits: [{ requests: 1, unit: 'Hours' }] }),
            record('spent', { limits: [{ tokens: 1, unit: 'Hours' }] }),
            record('narrow', { allowedModels: ['echo'] }),
            record('expired', { expiresAt: '2020-01-01T00:00:00Z' }),
          ],
        },
        authorization: { rules: [{ deny: 'default(request.headers["x-team"], "") == "blocked"' }] },
      },
    },
    mcp: {
      targets: [programTarget('files')],
      policies: {
        mcpAuthorization: { rules: [{ deny: 'has(mcp.tool) && mcp.tool.name == "pid"' }, 'true'] },
      },
    },
  }
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-explain-'))
  endAfter('file', () => rmSync(folder, { recursive: true, force: true }))
  openai = await mockOpenAi({ lifetime: 'file' })
  gateway = await startGateway(await config(), { lifetime: 'file' })
})

async function read(id: string, from = gateway): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`http://127.0.0.1:${from.adminPort}/api/requests/${id}`)
  return { status: response.status, body: await response.json() }
}

/** The request once the ledger has it. */
async function explained({ headers }: { headers: Headers }, from = gateway): Promise<JsonObject> {
  const id = headers.get('x-request-id') ?? ''
  return await until(`the entry of ${id}`, async () => {
    const { status, body } = await read(id, from)
    return status === 200 && isJsonObject(body) && body
  })
}

/** Reads a response, so that the request ends. */
async function complete(response: Response): Promise<Response> {
  await response.text()
  return response
}

const as = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })

type Case = {
  title: string
  send: () => Promise<Response>
  status: number
  cause: string | RegExp
  explanation?: object
}

const cases: Case[] = [
  {
    title: 'an unknown key',
    send: () => chat(gateway, {}, as('tg-canary-unknown-9c0d')),
    status: 401,
    cause: 'api-key: invalid credentials',
    explanation: { outcome: { stoppedBy: 'api key', errorCode: 'invalid_api_key' } },
  },
  {
    title: 'an expired key',
    send: () => chat(gateway, {}, as(keys.expired)),
    status: 401,
    cause: 'api-key: expired key key-expired',
  },
  {
    title: 'a deny rule',
    send: () => chat(gateway, {}, { headers: { 'x-team': 'blocked' } }),
    status: 403,
    cause: 'authorization: deny rule 1 of llm: default(request.headers["x-team"], "") == "blocked"',
    explanation: {
      key: { id: 'key-alice', name: 'Alice', group: 'platform' },
      identity: { user: 'alice', group: 'platform' },
    },
  },
  {
    title: 'a model that the key does not permit',
    send: () => chat(gateway, { model: 'gpt-test' }, as(keys.narrow)),
    status: 403,
    cause: 'the key does not permit the model "gpt-test"',
    explanation: { key: { id: 'key-narrow', models: ['echo'] } },
  },
  {
    title: 'an exhausted limit on requests',
    send: async () => {
      await (await chat(gateway, {}, as(keys.limited))).text()
      return await chat(gateway, {}, as(keys.limited))
    },
    status: 429,
    cause: /^the limit ".*requests per hour.*" of 1 requests is exhausted; it resets in \d+ s$/,
    explanation: {
      limits: expect.arrayContaining([expect.objectContaining({ refused: true, remaining: 0 })]),
    },
  },
  {
    title: 'an exhausted limit on tokens',
    send: async () => {
      // The limit is charged at the end of a request, as is its entry.
      await explained(await complete(await chat(gateway, {}, as(keys.spent))))
      return await chat(gateway, {}, as(keys.spent))
    },
    status: 429,
    cause: /^the limit ".*tokens per hour.*" of 1 tokens is exhausted/,
    explanation: {
      limits: expect.arrayContaining([expect.objectContaining({ unit: 'tokens', refused: true })]),
    },
  },
  {
    title: 'a guard',
    send: () => chat(gateway, { messages: [{ role: 'user', content: `forbidden-1 ${canary}` }] }),
    status: 403,
    cause: /^the guard "secrets" refused the request \(reject/,
    explanation: { guards: [{ guard: 'secrets', outcome: 'reject', durationMs: expect.any(Number) }] },
  },
  {
    title: 'a model that is not configured',
    send: () => chat(gateway, { model: 'missing' }),
    status: 404,
    cause: 'the model "missing" is not configured',
  },
  {
    title: 'a path that is no endpoint',
    send: () => chat(gateway, {}, { path: '/v1/unknown' }),
    status: 404,
    cause: 'no endpoint has the path /v1/unknown',
  },
  {
    title: 'an unreachable provider',
    send: () => chat(gateway, { model: 'gone' }),
    status: 503,
    cause: 'upstream_connect: gone failed (upstream_connect)',
    explanation: {
      outcome: { failure: { code: 'upstream_connect', system: 'ECONNREFUSED' } },
      attempts: [{ target: 'gone', provider: 'openai', outcome: 'failed', failure: 'upstream_connect' }],
    },
  },
  {
    title: 'a connection that the provider closes',
    send: () => {
      openai.next((_, response) => response.destroy())
      return chat(gateway, { model: 'gpt-test' })
    },
    status: 502,
    cause: 'upstream_reset: gpt-* failed (upstream_reset)',
  },
  {
    title: 'an error of the provider',
    send: () => {
      openai.next(openAiErrors.contextLength)
      return chat(gateway, { model: 'gpt-test' })
    },
    status: 400,
    cause: 'gpt-* responded with status 400',
    explanation: { attempts: [{ target: 'gpt-*', model: 'gpt-test', outcome: 'responded', status: 400 }] },
  },
  {
    title: 'a failover',
    send: () => chat(gateway, { model: 'both' }),
    status: 200,
    cause: 'served by second after first failed (upstream_connect)',
    explanation: {
      attempts: [
        { target: 'first', outcome: 'failed' },
        { target: 'second', outcome: 'responded', status: 200, firstByteMs: expect.any(Number) },
      ],
    },
  },
]

describe('the explanation names the cause of', () => {
  it.each(cases)('$title', async ({ send, status, cause, explanation = {} }) => {
    const response = await send()
    expect(response.status).toBe(status)
    const { request, explanation: given } = await explained(await complete(response))
    expect(request).toMatchObject({ httpStatus: status })
    expect(given).toMatchObject({
      cause: typeof cause === 'string' ? cause : expect.stringMatching(cause),
      ...explanation,
      times: { totalMs: expect.any(Number) },
      routing: { listener: 'llm', route: 'llm' },
    })
  })

  it('a denied MCP tool', async () => {
    const session = await openSession(gateway.mcpUrl)
    const params = { name: 'pid', arguments: { note: canary } }
    const answer = await session.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
    const { request, explanation } = await explained(answer)
    expect(request).toMatchObject({ httpStatus: 200, mcp: { method: 'tools/call', item: 'pid' } })
    expect(explanation).toMatchObject({
      cause: 'deny rule 1 of mcpAuthorization refuses tool "pid" of target files',
      items: [
        {
          item: { kind: 'tool', name: 'pid', target: 'files' },
          permitted: false,
          results: [
            { rule: 'deny rule 1', value: true, refuses: true },
            { rule: 'allow rule 2', value: true },
          ],
        },
      ],
    })
  })

  it('an unreachable MCP target', async () => {
    const [closed = 0] = await freePorts(1)
    const targets = [{ name: 'gone', mcp: { host: `http://127.0.0.1:${closed}/mcp` } }]
    const failing = await startGateway({ config: (await config()).config, mcp: { targets } })
    const { explanation } = await explained(await post(failing.mcpUrl, initializeMessage), failing)
    expect(explanation).toMatchObject({
      cause: expect.stringContaining('gone failed (upstream_connect)'),
      attempts: [{ target: 'gone', session: 'new', outcome: 'failed', durationMs: expect.any(Number) }],
    })
  })

  it('a disconnect of the client', async () => {
    const abort = new AbortController()
    openai.behaviour.pauseMs = 300
    const response = await chat(gateway, { model: 'gpt-test', stream: true }, { signal: abort.signal })
    abort.abort()
    const { explanation } = await explained(response)
    openai.behaviour.pauseMs = 0
    expect(explanation).toMatchObject({
      cause: 'the client closed the connection during the response',
      outcome: { incomplete: true },
    })
  })
})

describe('GET /api/requests/{id}', () => {
  it('has no explanation of a request that succeeded', async () => {
    expect(await explained(await complete(await chat(gateway)))).toMatchObject({
      request: { httpStatus: 200 },
      explanation: null,
    })
  })

  it('explains requests of another replica', async () => {
    const replica = await startGateway(await config())
    const refused = await complete(await chat(replica, { model: 'missing' }))
    expect(await explained(refused)).toMatchObject({
      explanation: { cause: 'the model "missing" is not configured' },
    })
  })

  it('names the conditions of other routes', async () => {
    const [port = 0] = await freePorts(1)
    const backends = [{ ai: { name: 'local', provider: { openAI: {} }, policies: {} } }]
    const routed = await startGateway({
      config: (await config()).config,
      gateways: { default: { port } },
      routes: [
        {
          name: 'search',
          matches: [
            { path: { pathPrefix: '/v1' }, headers: [{ name: 'x-team', value: { exact: 'search' } }] },
          ],
          backends,
        },
        { name: 'chat', matches: [{ path: { pathPrefix: '/v1' } }], backends },
        { name: 'images', matches: [{ path: { pathPrefix: '/images' } }], backends },
      ],
    })
    const refused = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, { method: 'POST', body: '{' })
    const { explanation } = await explained(await complete(refused), routed)
    expect(explanation).toMatchObject({
      routing: {
        listener: 'default',
        route: 'chat',
        candidates: [
          { route: 'search', path: 'prefix /v1', result: 'failed', condition: 'header', name: 'x-team' },
          { route: 'chat', result: 'selected' },
          { route: 'images', result: 'failed', condition: 'path' },
        ],
      },
    })
  })

  it('returns 404 with a hint for an unknown id', async () => {
    const { status, body } = await read('0190-unknown')
    expect(status).toBe(404)
    expect(body).toContain('config.logging.database.retention')
  })

  it('explains every request or none as configured', async () => {
    const all = await startGateway(await config('all'))
    const { explanation } = await explained(await complete(await chat(all)), all)
    expect(explanation).toMatchObject({ cause: 'served', policies: expect.any(Array) })
    await all.stop()
    const off = await startGateway(await config('off'))
    const refused = await explained(await complete(await chat(off, { model: 'missing' })), off)
    expect(refused).toMatchObject({ request: { httpStatus: 404 }, explanation: null })
  })
})

describe('explanations', () => {
  it('contain no credentials, contents, header values or query strings', async () => {
    const headers = { 'x-team': 'blocked', 'x-canary': headerCanary, cookie: `session=${headerCanary}` }
    const messages = [{ role: 'user', content: canary }]
    const path = `/v1/chat/completions?key=${queryCanary}`
    await explained(await complete(await chat(gateway, { messages }, { headers, path })))
    const unreachable = chat(gateway, { messages, model: 'gone' }, { headers: { 'x-canary': headerCanary } })
    await explained(await complete(await unreachable))
    for (const file of readdirSync(folder).filter((name) => name.startsWith('ledger.db'))) {
      if (statSync(join(folder, file)).isDirectory()) continue
      const bytes = readFileSync(join(folder, file)).toString('latin1')
      for (const secret of [canary, headerCanary, queryCanary, aliceKey, openAiKey, ...Object.values(keys)])
        expect(bytes.includes(secret), `${secret} in ${file}`).toBe(false)
    }
  })
})
