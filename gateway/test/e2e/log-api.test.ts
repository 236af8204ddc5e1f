import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { createLedgerStore } from '../../src/ledger/store/open.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { ledgerEntry } from '../fixtures/ledger.ts'
import { endAfter } from '../support/cleanup.ts'
import { freePort } from '../support/free-port.ts'
import { startGateway } from '../support/gateway.ts'
import { aliceKey, chat, llmConfig } from '../support/llm-config.ts'
import { sqliteUrl } from '../support/resource-api.ts'
import { eventsOf } from '../support/sse.ts'
import { until, within } from '../support/wait.ts'

type Json = Record<string, unknown>

function post(port: number, path: string, body: unknown, headers: Record<string, string> = {}) {
  return fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

/** A gateway with a ledger and three requests of Alice, one of them for an unknown model. */
async function startRecorded() {
  const url = sqliteUrl()
  const gateway = await startGateway({ ...llmConfig({}), config: { logging: { database: { url } } } })
  const ids: string[] = []
  for (const model of ['echo', 'echo', 'unknown']) {
    const response = await chat(gateway, { model })
    ids.push(response.headers.get('x-request-id') ?? '')
    await response.text()
  }
  const search = async (body: Json): Promise<{ logs: Json[]; nextCursor: string | null }> => {
    const response = await post(gateway.adminPort, '/api/logs/search', body)
    expect(response.status).toBe(200)
    return (await response.json()) as { logs: Json[]; nextCursor: string | null }
  }
  await until('three recorded requests', async () => (await search({})).logs.length === 3)
  return { gateway, url, ids, search }
}

/** Reads events until `count` of them have a name; the caller ends the stream. */
function reader(response: Response) {
  const stream = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  return {
    async until(event: string, count: number): Promise<Json[]> {
      for (;;) {
        const complete = text.slice(0, text.lastIndexOf('\n\n') + 2)
        const found = eventsOf(complete).filter((one) => one.event === event)
        if (found.length >= count) return found.map(({ data }) => JSON.parse(data) as Json)
        const part = await stream?.read()
        if (part === undefined || part.done) throw new Error(`the stream ended after ${text}`)
        text += part.value
      }
    },
    async end(): Promise<string> {
      for (;;) {
        const part = await stream?.read()
        if (part === undefined || part.done) return text
        text += part.value
      }
    },
  }
}

describe('the request log', () => {
  it('returns requests in pages, one request, sums and CSV files', async () => {
    const { gateway, ids, search } = await startRecorded()
    const first = await search({ limit: 2 })
    expect(first.logs).toHaveLength(2)
    const second = await search({ limit: 2, cursor: first.nextCursor })
    expect([...first.logs, ...second.logs].map(({ id }) => id).sort()).toEqual([...ids].sort())
    const found = await search({
      filters: {
        httpStatus: [404],
        keyName: 'Alice',
        text: 'UNKNOWN',
        attributes: { 'agentgateway.user': 'alice' },
      },
      includeAttributes: true,
    })
    expect(found.logs).toMatchObject([
      {
        id: ids[2],
        httpStatus: 404,
        error: 'model_not_found',
        attributes: { 'agentgateway.group': 'platform' },
      },
    ])

    const got = await (await post(gateway.adminPort, '/api/logs/get', { id: ids[0] })).json()
    expect(got).toMatchObject({ log: { id: ids[0], keyId: 'key-alice', genAi: { requestModel: 'echo' } } })
    expect(await (await post(gateway.adminPort, '/api/logs/get', { id: 'x' })).json()).toEqual({ log: null })

    const summary = await post(gateway.adminPort, '/api/logs/analytics/summary', {
      groupBy: [{ field: 'httpStatus' }, { field: 'attributes', key: 'agentgateway.user' }],
    })
    expect(await summary.json()).toMatchObject({
      complete: true,
      groups: [
        { group: { httpStatus: 200, 'agentgateway.user': 'alice' }, requests: 2, errors: 0 },
        { group: { httpStatus: 404, 'agentgateway.user': 'alice' }, requests: 1, errors: 1 },
      ],
    })

    const today = new Date().toISOString().slice(0, 10)
    const csv = (query: string) => fetch(`http://127.0.0.1:${gateway.adminPort}/api/usage.csv?${query}`)
    const sums = await csv(`from=2026-01-01&groupBy=user,status&granularity=month`)
    expect(sums.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    const lines = (await sums.text()).split('\r\n')
    expect(lines.slice(1, -1).map((line) => line.split(',').slice(0, 4))).toEqual([
      [today.slice(0, 7), 'alice', '200', '2'],
      [today.slice(0, 7), 'alice', '404', '1'],
    ])
    const requests = await (await csv(`from=${today}&rows=requests&user=alice`)).text()
    expect(
      requests
        .split('\r\n')
        .slice(1, -1)
        .map((line) => line.split(',')[0])
        .sort(),
    ).toEqual([...ids].sort())
  })

  it('refuses hostile requests with a reason', async () => {
    const { gateway, search } = await startRecorded()
    const many = Array.from({ length: 10_000 }, (_, index) => `v${index}`)
    const bodies: [path: string, body: unknown][] = [
      ['search', '[]'],
      ['search', '{'],
      ['search', { limit: 0 }],
      ['search', { limit: 501 }],
      ['search', { limit: '10' }],
      ['search', { unknown: 1 }],
      ['search', { cursor: 'x' }],
      ['search', { cursor: Buffer.from('[1e99,"a"]').toString('base64url') }],
      ['search', { cursor: Buffer.from(`[1,"${'a'.repeat(5_000)}"]`).toString('base64url') }],
      ['search', { cursor: 5 }],
      ['search', { timeRange: { from: 'yesterday' } }],
      ['search', { timeRange: { from: '2026-13-40T00:00:00Z' } }],
      ['search', { timeRange: { from: '-271821-04-20T00:00:00Z' } }],
      ['search', { timeRange: { from: '2026-01-02', to: '2026-01-01' } }],
      ['search', { filters: { '; drop table tollgate_requests': 1 } }],
      ['search', { filters: { constructor: 'a' } }],
      ['search', { filters: { provider: 5 } }],
      ['search', { filters: { provider: { regex: '(a+)+$' } } }],
      ['search', { filters: { provider: many } }],
      ['search', { filters: { provider: 'a\0b' } }],
      ['search', { filters: { provider: 'x'.repeat(5_000) } }],
      ['search', { filters: { text: 'x'.repeat(5_000) } }],
      ['search', { filters: { httpStatus: 1e12 } }],
      ['search', { filters: { httpStatus: -1 } }],
      ['search', { filters: { durationMs: { min: 'a' } } }],
      ['search', { filters: { streaming: 'yes' } }],
      ['get', { id: 5 }],
      ['get', { id: 'x'.repeat(5_000) }],
      ['get', {}],
      ['tail', { limit: -1 }],
      ['analytics/summary', { groupBy: [{ field: 'path' }] }],
      ['analytics/summary', { groupBy: [{ field: '__proto__' }] }],
      ['analytics/summary', { groupBy: [{ field: 'attributes', key: 'toString' }] }],
      ['analytics/summary', { groupBy: [{ field: 'user' }, { field: 'user' }] }],
      ['analytics/summary', { groupBy: [{ field: 'user' }, { field: 'group' }, { field: 'route' }] }],
      ['analytics/summary', { bucketSeconds: 1, timeRange: { from: '2020-01-01', to: '2026-01-01' } }],
      ['analytics/summary', { timeRange: { from: '1970-01-01', to: '2026-01-01' } }],
      ['analytics/summary', { bucketCount: 501 }],
    ]
    for (const [path, body] of bodies) {
      const response = await post(gateway.adminPort, `/api/logs/${path}`, body)
      const message = await response.json()
      expect([JSON.stringify(body).slice(0, 80), response.status]).toEqual([
        JSON.stringify(body).slice(0, 80),
        400,
      ])
      expect(String(message).length).toBeLessThan(1_500)
    }
    const queries = [
      '',
      'from=x',
      'from=2026-01-01T10:30:00Z&granularity=hour',
      'from=2026-01-01T10:00:00Z',
      'from=2026-01-02&to=2026-01-01',
      'from=2026-01-01&groupBy=path',
      'from=2026-01-01&groupBy=user,user',
      'from=2026-01-01&granularity=second',
      'from=2026-01-01&rows=requests&groupBy=user',
      'from=2026-01-01&from=2026-01-01',
      'from=2026-01-01&unknown=1',
      'from=2026-01-01&user=%00',
    ]
    for (const query of queries) {
      const response = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/usage.csv?${query}`)
      expect([query, response.status]).toEqual([query, 400])
      await response.text()
    }
    for (const path of ['search', 'get', 'tail', 'analytics/summary']) {
      const response = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/logs/${path}`)
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
      await response.text()
    }
    const far = await search({ timeRange: { from: '1970-01-01T00:00:00Z', to: '9999-12-31T23:59:59Z' } })
    expect(far.logs).toHaveLength(3)
    expect(gateway.stdout()).not.toContain('admin API request failed')
  })

  it('streams new requests, also of other replicas, until the client or the gateway ends', async () => {
    const { gateway, url, search } = await startRecorded()
    const ending = new AbortController()
    const open = (body: Json, signal?: AbortSignal) =>
      fetch(`http://127.0.0.1:${gateway.adminPort}/api/logs/tail`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        ...(signal && { signal }),
      })
    const errors = await open({ filters: { httpStatus: 404 } }, ending.signal)
    expect(errors.headers.get('content-type')).toBe('text/event-stream')
    const stream = reader(errors)
    await stream.until('heartbeat', 1)
    await (await chat(gateway)).text()
    const unknown = await chat(gateway, { model: 'unknown' })
    await unknown.text()
    const [own] = await within('the own request', stream.until('log', 1))
    expect(own).toMatchObject({ entry: { id: unknown.headers.get('x-request-id') } })

    const replica = await createLedgerStore({ url, field: 'url', maxConnections: 2 }, systemClock)
    endAfter('test', () => replica.close())
    await replica.open()
    const now = Date.now()
    const id = '01930000-0000-7000-8000-000000000abc'
    await replica.write({
      source: 'replica',
      first: 1,
      number: 1,
      // Stored later than it completed.
      entries: [ledgerEntry({ id, status: 404, startedAt: now - 900, completedAt: now - 500 })],
      sums: [],
    })
    const both = await within('the request of the replica', stream.until('log', 2))
    expect(both.map(({ entry }) => (entry as Json)['id'])).toEqual([unknown.headers.get('x-request-id'), id])
    ending.abort()

    // Continues behind an entry.
    const { logs, nextCursor } = await search({
      limit: 1,
      filters: { id: { contains: '' }, httpStatus: 200 },
    })
    expect(logs).toHaveLength(1)
    const rest = reader(await open({ cursor: (await search({ limit: 3 })).nextCursor, limit: 10 }))
    expect(nextCursor).not.toBeNull()
    expect((await within('the rest', rest.until('log', 2))).length).toBeGreaterThanOrEqual(2)

    const stopping = gateway.stop()
    await within('the end of the stream', rest.end(), 10_000)
    expect(await stopping).toEqual({ code: 0, signal: null })
  })

  it('limits event streams', async () => {
    const { gateway } = await startRecorded()
    const opened = await Promise.all(
      Array.from({ length: 25 }, () => post(gateway.adminPort, '/api/logs/tail', {})),
    )
    const statuses = opened.map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(20)
    expect(statuses.filter((status) => status === 503)).toHaveLength(5)
    await Promise.all(opened.map(({ body }) => body?.cancel()))
    await until('a free stream', async () => {
      const again = await post(gateway.adminPort, '/api/logs/tail', {})
      await again.body?.cancel()
      return again.status === 200
    })
  })

  it('is absent without a database', async () => {
    const gateway = await startGateway(llmConfig({}))
    const replies = [
      ...(await Promise.all(
        ['search', 'get', 'tail', 'analytics/summary'].map((path) =>
          post(gateway.adminPort, `/api/logs/${path}`, {}),
        ),
      )),
      await fetch(`http://127.0.0.1:${gateway.adminPort}/api/usage.csv?from=2026-01-01`),
    ]
    for (const reply of replies) {
      expect(reply.status).toBe(404)
      expect(await reply.json()).toContain('request log database is not configured')
    }
  })

  it.each([1, 2])('is served on a ui gateway with %d data planes to its keys only', async (workerThreads) => {
    const url = sqliteUrl()
    const port = await freePort()
    const gateway = await startGateway({
      ...llmConfig({}),
      config: { workerThreads, logging: { database: { url } } },
      gateways: { default: { port } },
      ui: { gateways: 'default', policies: { apiKey: { keys: [{ key: 'ui-of-ada' }] } } },
    })
    const ada = { authorization: 'Bearer ui-of-ada' }
    const csv = `http://127.0.0.1:${port}/api/usage.csv?from=2026-01-01&rows=requests`
    for (const headers of [{}, { authorization: `Bearer ${aliceKey}` }]) {
      for (const path of ['search', 'get', 'tail', 'analytics/summary'])
        expect((await post(port, `/api/logs/${path}`, {}, headers)).status).toBe(401)
      expect((await fetch(csv, { headers })).status).toBe(401)
    }
    const ending = new AbortController()
    const stream = reader(
      await fetch(`http://127.0.0.1:${port}/api/logs/tail`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...ada },
        body: '{}',
        signal: ending.signal,
      }),
    )
    await stream.until('heartbeat', 1)
    const answered = await chat(gateway)
    await answered.text()
    const [entry] = await within('the request', stream.until('log', 1))
    expect(entry).toMatchObject({ entry: { id: answered.headers.get('x-request-id') } })
    const lines = (await (await fetch(csv, { headers: ada })).text()).split('\r\n')
    expect(lines.some((line) => line.startsWith(`${answered.headers.get('x-request-id')},llm,`))).toBe(true)
    const ended = gateway.stop()
    await within('the end of the stream', stream.end(), 10_000)
    expect((await ended).code).toBe(0)
  })
})

it('the commands of the page about usage work', async () => {
  const { gateway } = await startRecorded()
  const page = readFileSync(fileURLToPath(new URL('../../../docs/usage.md', import.meta.url)), 'utf8')
  const blocks = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, lines = '']) => lines)
  expect(blocks.length).toBeGreaterThan(4)
  for (const block of blocks) {
    const script = block
      .replaceAll('localhost:15000', `127.0.0.1:${gateway.adminPort}`)
      .replaceAll('curl ', 'curl -sS --fail-with-body --max-time 5 ')
    const { stdout, stderr, status } = spawnSync('bash', ['-c', `set -e\n${script}`], {
      encoding: 'utf8',
      // The commands write files.
      cwd: dirname(gateway.file),
    })
    // An event stream ends with the time limit.
    expect([block, [0, 28].includes(status ?? -1), stdout]).toEqual([block, true, stdout])
    expect(stderr.replaceAll(/curl: \(28\).*/g, '').trim()).toBe('')
  }
})
