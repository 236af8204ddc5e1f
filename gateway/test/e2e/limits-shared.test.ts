import { beforeAll, describe, expect, it } from 'vitest'
import { sqlitePathOf } from '../../src/database/url.ts'
import type { LeaseReport } from '../../src/lib/planes/lease-exchange.ts'
import type { LeaseStore } from '../../src/policies/rate-limit/leases/lease-store.ts'
import { createPostgresLeases } from '../../src/policies/rate-limit/leases/postgres-leases.ts'
import { createSqliteLeases } from '../../src/policies/rate-limit/leases/sqlite-leases.ts'
import { endAfter } from '../support/cleanup.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { postgresMissing, startPostgres, type TestPostgres } from '../support/postgres.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { keyedEcho, sqliteUrl, statusWith } from '../support/resource-api.ts'
import { until } from '../support/wait.ts'

// Limits with `scope: shared`: several gateways on one database have one count.

let postgres: TestPostgres

beforeAll(async () => {
  if (postgresMissing === undefined) postgres = await startPostgres()
})

const databases = [
  { database: 'Postgres', count: 3, missing: postgresMissing, url: () => postgres.createDatabase() },
  { database: 'SQLite', count: 2, missing: undefined, url: async () => sqliteUrl() },
] as const

const keys = [{ key: 'k-1', metadata: { id: 'one' } }]

function start(url: string, limits: readonly object[], workerThreads = 1): Promise<Gateway> {
  const llm = { ...keyedEcho.llm, policies: { apiKey: { mode: 'strict', keys }, localRateLimit: limits } }
  return startGateway({ config: { workerThreads, logging: { database: { url } } }, llm })
}

type Reading = {
  shared: { processes: number; synchronized: boolean }
  state: { remaining?: number; values?: number; exhausted?: number }
}

async function readLimit({ adminPort }: Gateway): Promise<Reading> {
  const { text } = await call(adminPort, '/api/limits', { host: `127.0.0.1:${adminPort}` })
  return JSON.parse(text).local[0]
}

/** Sends requests one after another to the gateways in turn; returns the number of admitted ones. */
async function sendInTurn(gateways: readonly Gateway[], count: number): Promise<number> {
  let admitted = 0
  for (let index = 0; index < count; index++) {
    const gateway = gateways[index % gateways.length]
    if (gateway !== undefined) admitted += Number((await statusWith(gateway, 'k-1')) === 200)
  }
  return admitted
}

describe.each(databases)('gateways on one $database', ({ count, missing, url }) => {
  it.skipIf(missing !== undefined)('admit one allowance together, with and without a key', async () => {
    const address = await url()
    const limits = [
      { requests: 60, unit: 'Hours', scope: 'shared' },
      { requests: 1_000, unit: 'Hours', scope: 'shared', key: 'apiKey.id' },
    ]
    const gateways = await Promise.all(
      Array.from({ length: count }, (_, index) => start(address, limits, index === 0 ? 2 : 1)),
    )
    await until('the gateways know each other', async () => {
      const readings = await Promise.all(gateways.map(readLimit))
      return readings.every(({ shared }) => shared.processes === count && shared.synchronized)
    })
    let admitted = await sendInTurn(gateways, 150)
    await until('all gateways report the exhausted limit', async () => {
      // A share that arrives after the requests above remains until others use it.
      admitted += await sendInTurn(gateways, count)
      const readings = await Promise.all(gateways.map(readLimit))
      return readings.every(({ state }) => state.remaining === 0)
    })
    // The stated bound is one share for each process; requests in turn stay far below it.
    expect(admitted).toBeGreaterThanOrEqual(55)
    expect(admitted).toBeLessThanOrEqual(60 + count * Math.ceil(60 / count))
    expect(await sendInTurn(gateways, 2 * count)).toBe(0)
    const [first] = gateways
    expect(await first?.metrics()).toContain('tollgate_limit_database_connected 1')
  })

  it.skipIf(missing !== undefined)('settle reports of several processes in one count', async () => {
    const address = await url()
    const open = (): LeaseStore => {
      const store = address.startsWith('postgres')
        ? createPostgresLeases(address)
        : createSqliteLeases(sqlitePathOf(address), Date.now)
      endAfter('test', () => store.close())
      return store
    }
    const report = (key: string, spent: number, more: Partial<LeaseReport> = {}): LeaseReport => ({
      limit: 'limit',
      key,
      counts: 'requests',
      capacity: 100,
      refill: 100,
      intervalMs: 3_600_000,
      spent,
      kept: 0,
      wasAway: false,
      ...more,
    })
    const [one, other] = [open(), open()]
    await Promise.all([one.announce('p1'), other.announce('p2')])
    const first = await one.exchange('p1', [report('a', 10), report("b'; --", 0)])
    expect(first).toMatchObject({
      processes: 2,
      replies: [
        { used: 10, lease: 90 },
        { used: 0, lease: 100 },
      ],
    })
    const second = await other.exchange('p2', [report('a', 20)])
    expect(second.replies).toMatchObject([{ used: 30, lease: 0 }])
    expect((await one.exchange('p1', [report('a', 0, { kept: 45 })])).replies).toMatchObject([
      { used: 30, lease: 45 },
    ])
    expect((await other.exchange('p2', [report('a', 0)])).replies).toMatchObject([{ used: 30, lease: 13 }])
    const parallel = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (index % 2 === 0 ? one : other).exchange(index % 2 === 0 ? 'p1' : 'p2', [
          report('c', 2),
          report('a', 1),
        ]),
      ),
    )
    expect(Math.max(...parallel.map(({ replies }) => replies[0]?.used ?? 0))).toBe(40)
    expect(Math.max(...parallel.map(({ replies }) => replies[1]?.used ?? 0))).toBe(50)
    await one.exchange('p1', [report('gone', 1, { intervalMs: 1 })])
    await until('full buckets are deleted', async () => {
      await one.prune()
      return true
    })
    await other.leave('p2')
    expect(await one.exchange('p1', [])).toEqual({ processes: 1, replies: [] })
  })
})

describe.skipIf(postgresMissing !== undefined)('an outage', () => {
  it('leaves each gateway with its own count, and ends without a restart', async () => {
    const proxy = await startPostgresProxy(postgres.port)
    const address = proxy.through(await postgres.createDatabase())
    const gateway = await start(address, [{ requests: 40, unit: 'Hours', scope: 'shared' }])
    expect(await sendInTurn([gateway], 1)).toBe(1)
    await until('the limit is synchronized', async () => (await readLimit(gateway)).shared.processes === 1)
    proxy.hangs = true
    await until('the outage is detected', async () => {
      await sendInTurn([gateway], 1)
      return !(await readLimit(gateway)).shared.synchronized
    })
    await sendInTurn([gateway], 60)
    expect((await readLimit(gateway)).state.remaining).toBe(0)
    expect(await gateway.metrics()).toContain('tollgate_limit_database_connected 0')
    expect(gateway.stdout()).toContain('database of shared limits not available, limits counted by process')
    proxy.hangs = false
    proxy.cut()
    await until('the limit is synchronized again', async () => {
      await sendInTurn([gateway], 1)
      return (await readLimit(gateway)).shared.synchronized
    })
    await until('the end of the outage is logged', () =>
      gateway.stdout().includes('shared limits counted together again'),
    )
  })
})

it('is refused without a database', async () => {
  const llm = { models: [], policies: { localRateLimit: [{ requests: 1, unit: 'Hours', scope: 'shared' }] } }
  const refused = startGateway({ llm }, { mayCrash: true })
  await expect(refused).rejects.toThrow('shared requires a database: set config.database.url')
})
