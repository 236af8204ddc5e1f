import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { createPostgresRows } from '../../src/backends/llm/cache/database/postgres-rows.ts'
import type { RowLimits, RowStore } from '../../src/backends/llm/cache/database/row-store.ts'
import { createSqliteRows } from '../../src/backends/llm/cache/database/sqlite-rows.ts'
import { sqlitePathOf } from '../../src/database/url.ts'
import { endAfter } from '../support/cleanup.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { ledgerRows } from '../support/ledger-rows.ts'
import { aliceKey, aliceRecord, chat, openAiModel } from '../support/llm-config.ts'
import { seriesOf } from '../support/metrics.ts'
import { type MockOpenAi, mockOpenAi } from '../support/mock-openai.ts'
import { postgresMissing, startPostgres, type TestPostgres } from '../support/postgres.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { sqliteUrl } from '../support/resource-api.ts'
import { until } from '../support/wait.ts'

// The response cache with `store: database`: several gateways and threads share responses.

let postgres: TestPostgres
let openai: MockOpenAi

beforeAll(async () => {
  openai = await mockOpenAi({ lifetime: 'file' })
  if (postgresMissing === undefined) postgres = await startPostgres()
})

const databases = [
  { database: 'Postgres', missing: postgresMissing, url: () => postgres.createDatabase() },
  { database: 'SQLite', missing: undefined, url: async () => sqliteUrl() },
] as const

const bobKey = 'tg-canary-bob-77d0'
const bobRecord = { key: bobKey, metadata: { id: 'key-bob', name: 'Bob' } }

type Start = { url: string; ttl?: string; workerThreads?: number; ledger?: string }

function start({ url, ttl = '1h', workerThreads = 1, ledger }: Start): Promise<Gateway> {
  return startGateway({
    config: {
      workerThreads,
      responseCache: { url },
      ...(ledger === undefined ? {} : { logging: { database: { url: ledger } } }),
    },
    llm: {
      models: [openAiModel('gpt-test', openai.url, { cache: { ttl, store: 'database' } })],
      policies: { apiKey: { mode: 'strict', keys: [aliceRecord, bobRecord] } },
    },
  })
}

const question = (content: string, more: object = {}) => ({
  model: 'gpt-test',
  messages: [{ role: 'user', content }],
  ...more,
})

async function ask(gateway: Gateway, body: object, key = aliceKey) {
  const reply = await chat(gateway, body, { headers: { authorization: `Bearer ${key}` } })
  const cache = reply.headers.get('x-cache')
  return { status: reply.status, cache, headers: reply.headers, text: await reply.text() }
}

const sampleOf = async (gateway: Gateway, name: string, labels: object = {}) =>
  seriesOf(await gateway.metrics(), name).find(
    (series) => JSON.stringify(series.labels) === JSON.stringify(labels),
  )?.value

/** Waits until the database has stored a number of responses of a gateway. */
const stored = (gateway: Gateway, count: number) =>
  until('the responses are stored', async () => {
    const name = 'tollgate_llm_cache_database_writes_total'
    return (await sampleOf(gateway, name, { result: 'stored' })) === count
  })

function openRows(url: string, limits: RowLimits): RowStore {
  const store = url.startsWith('postgres')
    ? createPostgresRows(url, limits)
    : createSqliteRows(sqlitePathOf(url), limits, Date.now)
  endAfter('test', () => store.close())
  return store
}

describe.each(databases)('gateways on one $database', ({ missing, url }) => {
  it.skipIf(missing !== undefined)('share responses of a client over threads and restarts', async () => {
    const address = await url()
    const ledger = sqliteUrl()
    const first = await start({ url: address })
    const secret = 'a canary question'
    const bodies = [question(secret), question(secret, { stream: true })]
    const calls = openai.seen.length
    const misses = [await ask(first, bodies[0] ?? {}), await ask(first, bodies[1] ?? {})]
    expect(misses.map(({ cache }) => cache)).toEqual(['miss', 'miss'])
    await stored(first, 2)
    await first.stop()
    const second = await start({ url: address, workerThreads: 2, ledger })
    for (const [index, body] of bodies.entries()) {
      for (let times = 0; times < 2; times += 1) {
        const hit = await ask(second, body)
        expect(hit).toMatchObject({ status: 200, cache: 'hit', text: misses[index]?.text })
        expect(hit.headers.get('content-type')).toBe(misses[index]?.headers.get('content-type'))
        expect(hit.headers.get('age')).toMatch(/^\d+$/)
      }
    }
    expect(openai.seen.length - calls).toBe(2)
    const other = await ask(second, bodies[0] ?? {}, bobKey)
    expect(other.cache).toBe('miss')
    expect(openai.seen.length - calls).toBe(3)
    const rows = await until('the ledger has the calls', async () => {
      const found = await ledgerRows(ledger, 1)
      return found.length === 5 ? found : undefined
    })
    expect(rows.map(({ cache }) => cache).toSorted()).toEqual(['hit', 'hit', 'hit', 'hit', 'miss'])
    expect(rows.find(({ cache }) => cache === 'hit')).toMatchObject({ attempts: 0, input_tokens: null })
    await until('the log has a hit', () => second.requests().some(({ cache }) => cache === 'hit'))
    await until(
      'the totals are counted',
      async () => Number(await sampleOf(second, 'tollgate_llm_cache_database_entries')) >= 2,
    )
    expect(await sampleOf(second, 'tollgate_llm_cache_database_connected')).toBe(1)
    if (!address.startsWith('postgres')) {
      await second.stop()
      const bytes = readFileSync(sqlitePathOf(address), 'latin1')
      for (const text of [secret, 'chat.completion', aliceKey, 'Hello']) expect(bytes).not.toContain(text)
    }
  })

  it.skipIf(missing !== undefined)('return no response after its time to live', async () => {
    const address = await url()
    const [one, other] = await Promise.all([
      start({ url: address, ttl: '2s' }),
      start({ url: address, ttl: '2s' }),
    ])
    const body = question('how late is it')
    await ask(one, body)
    await stored(one, 1)
    await until('the response has expired', async () => (await ask(other, body)).cache === 'miss')
  })

  it.skipIf(missing !== undefined)('delete expired rows, and the oldest beyond the limits', async () => {
    const address = await url()
    const [one, other] = [
      openRows(address, { maxBytes: 1_000, maxEntries: 3 }),
      openRows(address, { maxBytes: 1_000, maxEntries: 3 }),
    ]
    const now = Date.now()
    const row = (key: string, age: number, bytes = 10, ttlMs = 60_000) => ({
      key,
      content: new Uint8Array(bytes),
      storedAt: now - age,
      ttlMs,
    })
    const keys = ['a', 'b', 'c', 'd', 'e']
    const found = async () => (await one.read(keys)).map((value) => value !== undefined)
    await Promise.all([
      one.write([row('a', 9_000), row('b', 8_000), row('e', 50, 10, 40)]),
      other.write([row('c', 7_000), row('d', 6_000), row('e', 60, 10, 40)]),
    ])
    expect(await found()).toEqual([true, true, true, true, false])
    expect(await one.prune(true)).toEqual({ entries: 3, bytes: 30 })
    expect(await found()).toEqual([false, true, true, true, false])
    // An older response does not replace a younger one.
    await other.write([row('d', 60_000, 500)])
    await one.write([row('a', 1_000, 985)])
    // The other process has taken the turn: nothing is deleted, and the totals are those of the last turn.
    expect(await other.prune(false)).toEqual({ entries: 3, bytes: 30 })
    expect(await other.prune(true)).toEqual({ entries: 2, bytes: 995 })
    expect(await found()).toEqual([true, false, false, true, false])
    const [first] = await other.read(['d'])
    expect(first?.content).toHaveLength(10)
    expect(first?.ageMs).toBeGreaterThanOrEqual(6_000)
  })
})

describe.skipIf(postgresMissing !== undefined)('an outage of the database', () => {
  it('causes misses without errors, and ends without a restart', async () => {
    const proxy = await startPostgresProxy(postgres.port)
    const gateway = await start({ url: proxy.through(await postgres.createDatabase()) })
    await ask(gateway, question('before'))
    await stored(gateway, 1)
    proxy.hangs = true
    proxy.cut()
    for (const content of ['during 1', 'during 2', 'during 3'])
      expect(await ask(gateway, question(content))).toMatchObject({ status: 200, cache: 'miss' })
    // Memory continues to serve.
    expect(await ask(gateway, question('during 1'))).toMatchObject({ status: 200, cache: 'hit' })
    const message = 'database of the response cache not available'
    const lines = () => gateway.stdout().split(message).length - 1
    await until('the outage is logged', () => lines() > 0)
    expect(await sampleOf(gateway, 'tollgate_llm_cache_database_connected')).toBe(0)
    proxy.hangs = false
    proxy.cut()
    let asked = 0
    await until('the database is used again', async () => {
      asked += 1
      await ask(gateway, question(`after ${asked}`))
      return (await sampleOf(gateway, 'tollgate_llm_cache_database_connected')) === 1
    })
    expect(lines()).toBe(1)
  })
})

it('requires a database', async () => {
  const models = [openAiModel('gpt-test', openai.url, { cache: { ttl: '1h', store: 'database' } })]
  await expect(startGateway({ llm: { models } }, { mayCrash: true })).rejects.toThrow(
    'llm.models[0].cache.store: database requires a database: set config.database.url or config.responseCache.url',
  )
})
