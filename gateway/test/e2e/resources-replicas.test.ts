import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Lifetime } from '../support/cleanup.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { postgresMissing, startPostgres, type TestPostgres } from '../support/postgres.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import {
  envelopesIn,
  keyedEcho,
  type ResourceApi,
  resourceApi,
  sqliteUrl,
  statusWith,
  stored,
} from '../support/resource-api.ts'
import { until } from '../support/wait.ts'

/** Several gateways on one database: propagation of changes, and faults in between. */

type Replica = { gateway: Gateway; api: ResourceApi }

async function start(url: string, lifetime: Lifetime = 'test'): Promise<Replica> {
  const gateway = await startGateway(stored(keyedEcho, url), { lifetime })
  return { gateway, api: resourceApi(gateway) }
}

/**
 * Waits until all replicas return this result for a key. The duration is measured in
 * `gateway/bench/changes/resources.ts`.
 */
async function untilAll(replicas: readonly Replica[], key: string, status: number): Promise<void> {
  await Promise.all(
    replicas.map(({ gateway }) =>
      until(`every replica answers ${status}`, async () => (await statusWith(gateway, key)) === status),
    ),
  )
}

let postgres: TestPostgres

beforeAll(async () => {
  if (postgresMissing === undefined) postgres = await startPostgres()
})

const databases = [
  { database: 'Postgres', count: 3, missing: postgresMissing, url: () => postgres.createDatabase() },
  { database: 'SQLite', count: 2, missing: undefined, url: async () => sqliteUrl() },
] as const

describe.each(databases)('gateways on one $database', ({ count, missing, url }) => {
  describe.skipIf(missing !== undefined)('together', () => {
    let address: string
    let replicas: Replica[]

    beforeAll(async () => {
      address = await url()
      // All at once on an empty database.
      replicas = await Promise.all(Array.from({ length: count }, () => start(address, 'file')))
    })

    it('follow each other at once', async () => {
      for (const [index, { api }] of replicas.entries()) {
        const key = `tg-made-on-${index}`
        const { id } = await api.create('llm.apiKey', { key })
        await untilAll(replicas, key, 200)
        // Deleted by another one than it was made by.
        await replicas[(index + 1) % count]?.api.remove('llm.apiKey', id)
        await untilAll(replicas, key, 401)
      }
    })

    it('have one winner for one key, and for one revision', async () => {
      const value = { key: 'tg-contested' }
      const made = await Promise.all(
        replicas.map(({ api }) => api.ask('PUT', '/llm.apiKey', { resources: [{ value }] })),
      )
      expect(made.map(({ status }) => status).sort()).toEqual([200, ...Array(count - 1).fill(409)])
      const winner = made.find(({ status }) => status === 200)
      const [{ id } = { id: '' }] = winner ? envelopesIn(winner) : []
      const updates = await Promise.all(
        replicas.map(({ api }, index) =>
          api.ask('PUT', `/llm.apiKey/${id}`, { value: { key: `tg-of-${index}` } }, { 'if-match': '"1"' }),
        ),
      )
      expect(updates.map(({ status }) => status).sort()).toEqual([200, ...Array(count - 1).fill(412)])
      const lists = await Promise.all(
        replicas.map(({ api }) =>
          until('the update is there', async () => {
            const [envelope] = await api.list('llm.apiKey')
            return envelope?.revision === 2 && envelope.value
          }),
        ),
      )
      for (const list of lists) expect(list).toEqual(lists[0])
    })

    it('never store combinations that do not load', async () => {
      const [one, other] = replicas
      if (!one || !other) throw new Error('two were started')
      for (let round = 0; round < 5; round++) {
        const provider = `shared-${round}`
        await one.api.create('llm.provider', { name: provider, provider: 'echo' })
        // The model needs the provider: whichever write is first, the other one is refused.
        const [removal, creation] = await Promise.all([
          one.api.ask('DELETE', `/llm.provider/${provider}`),
          other.api.ask('PUT', '/llm.model', {
            resources: [{ value: { name: `model-${round}`, provider: { reference: provider } } }],
          }),
        ])
        expect([removal.status, creation.status].sort()).toEqual([200, 422])
      }
      for (const { gateway } of replicas) {
        await until('it runs what is stored', async () => (await gateway.status()).synchronized)
      }
    })

    it('leave a record of an unknown kind in place and report it', async () => {
      const [first] = replicas
      await first?.api.create('llm.apiKey', { key: 'tg-known' })
      await run(
        address,
        `insert into tollgate_resources (kind, id, value, revision, created_at, updated_at, generation)
         select 'llm.hologram', 'x', '{"a":1}', 1, '2030-01-01T00:00:00.000Z', '2030-01-01T00:00:00.000Z', generation + 1
         from tollgate_state`,
        'update tollgate_state set generation = generation + 1',
      )
      const { gateway, api } = await start(address)
      expect(await statusWith(gateway, 'tg-known')).toBe(200)
      expect((await api.list()).map(({ kind }) => kind)).not.toContain('llm.hologram')
      expect(JSON.stringify(await api.document('status'))).toContain('llm.hologram')
      expect(await api.list()).toEqual(await first?.api.list())
      await api.create('llm.apiKey', { key: 'tg-later' })
      expect(await read(address, "select value from tollgate_resources where kind = 'llm.hologram'")).toEqual(
        ['{"a":1}'],
      )
    })
  })
})

describe.skipIf(postgresMissing !== undefined)('when Postgres stops', () => {
  it('traffic goes on, writes are refused, and everything is made up for later', async () => {
    const url = await postgres.createDatabase()
    const replicas = await Promise.all([start(url), start(url)])
    const [one, other] = replicas
    if (!one || !other) throw new Error('two were started')
    await one.api.create('llm.apiKey', { key: 'tg-before' })
    await untilAll(replicas, 'tg-before', 200)

    const traffic = constantTraffic(replicas, 'tg-before')
    await postgres.stop()
    const refused = await one.api.ask('PUT', '/llm.apiKey', { resources: [{ value: { key: 'tg-lost' } }] })
    expect(refused.status).toBe(503)
    expect(await statusWith(one.gateway, 'tg-before')).toBe(200)
    expect(await one.api.list('llm.apiKey')).toHaveLength(1)
    expect(await one.api.document('status')).toMatchObject({ storage: { database: { state: 'lost' } } })
    // A gateway that starts now has not loaded the rules yet, so it denies all requests.
    const late = await startGateway(stored(keyedEcho, url), { awaits: 'admin' })
    expect(await statusWith(late, 'tg-before')).toBe(503)
    const ready = await fetch(`http://127.0.0.1:${late.readinessPort}/healthz/ready`)
    expect(ready.status).toBe(500)
    expect(await ready.text()).toContain('database')

    await postgres.start()
    const { id } = await until(
      'writes are stored again',
      async () => {
        const answer = await one.api.ask('PUT', '/llm.apiKey', {
          resources: [{ value: { key: 'tg-after' } }],
        })
        return answer.status === 200 && envelopesIn(answer)[0]
      },
      15_000,
    )
    const all = [...replicas, { gateway: late, api: resourceApi(late) }]
    await untilAll(all, 'tg-after', 200)
    await untilAll(all, 'tg-before', 200)
    await one.api.remove('llm.apiKey', id)
    await untilAll(all, 'tg-after', 401)
    const { asked, failed } = await traffic.stop()
    expect(asked).toBeGreaterThan(50)
    expect(failed).toEqual([])
  })
})

describe.skipIf(postgresMissing !== undefined)('between gateways and Postgres', () => {
  it('may drop notifications, break connections and hang', async () => {
    const proxy = await startPostgresProxy(postgres.port)
    const url = await postgres.createDatabase()
    const [one, other] = await Promise.all([start(url), start(proxy.through(url))])
    await one.api.create('llm.apiKey', { key: 'tg-always' })
    await untilAll([other], 'tg-always', 200)
    const traffic = constantTraffic([other], 'tg-always')

    proxy.dropNotifications = true
    const { id } = await one.api.create('llm.apiKey', { key: 'tg-unheard' })
    await untilAll([other], 'tg-unheard', 200)
    await one.api.remove('llm.apiKey', id)
    // Asked for once a second where nothing is heard.
    await untilAll([other], 'tg-unheard', 401)

    proxy.cut()
    await one.api.create('llm.apiKey', { key: 'tg-after-the-cut' })
    await untilAll([other], 'tg-after-the-cut', 200)

    proxy.hangs = true
    const startedAt = performance.now()
    const hung = await other.api.ask('PUT', '/llm.apiKey', { resources: [{ value: { key: 'tg-hung' } }] })
    expect(hung.status).toBe(503)
    expect(performance.now() - startedAt).toBeLessThan(60_000)
    expect(await statusWith(other.gateway, 'tg-after-the-cut')).toBe(200)
    proxy.hangs = false
    proxy.cut()
    await one.api.create('llm.apiKey', { key: 'tg-again' })
    await untilAll([other], 'tg-again', 200)
    expect((await traffic.stop()).failed).toEqual([])
  }, 120_000)
})

describe.each(databases)('the file over $database', ({ missing, url }) => {
  it.skipIf(missing !== undefined)(
    'wins where both define the same, and the record returns with its removal',
    async () => {
      const address = await url()
      const config = (models: object[]) => stored({ llm: { ...keyedEcho.llm, models } }, address)
      const fromFile = { name: 'from-file', provider: 'echo' }
      const gateway = await startGateway(config([fromFile]))
      const api = resourceApi(gateway)
      await api.create('llm.apiKey', { key: 'tg-key' })
      await api.create('llm.model', { name: 'both', provider: 'echo' })
      await gateway.reload(config([fromFile, { name: 'both', provider: 'echo', params: { model: 'x' } }]))
      expect(await statusWith(gateway, 'tg-key', 'both')).toBe(200)
      expect(await api.list('llm.model')).toMatchObject([{ value: { name: 'both' }, shadowed: true }])
      await gateway.reload(config([fromFile]))
      expect(await statusWith(gateway, 'tg-key', 'both')).toBe(200)
      expect((await api.list('llm.model'))[0]).not.toHaveProperty('shadowed')
    },
  )
})

/** Calls all replicas with a key until stopped; returns the failed responses. */
function constantTraffic(replicas: readonly Replica[], key: string) {
  let isStopped = false
  let asked = 0
  const failed: number[] = []
  const done = Promise.all(
    replicas.map(async ({ gateway }) => {
      while (!isStopped) {
        const status = await statusWith(gateway, key)
        asked += 1
        if (status !== 200) failed.push(status)
        await delay(10)
      }
    }),
  )
  return {
    async stop() {
      isStopped = true
      await done
      return { asked, failed }
    },
  }
}

/** Runs statements past the gateways. */
async function run(url: string, ...statements: string[]): Promise<void> {
  if (url.startsWith('sqlite:')) {
    const database = new DatabaseSync(url.slice('sqlite://'.length))
    for (const statement of statements) database.exec(statement)
    database.close()
    return
  }
  const client = new Client(url)
  await client.connect()
  for (const statement of statements) await client.query(statement)
  await client.end()
}

/** The first column of a query's result. */
async function read(url: string, query: string): Promise<unknown[]> {
  if (url.startsWith('sqlite:')) {
    const database = new DatabaseSync(url.slice('sqlite://'.length), { readOnly: true })
    const rows = database.prepare(query).all()
    database.close()
    return rows.map((row) => Object.values(row)[0])
  }
  const client = new Client(url)
  await client.connect()
  const { rows } = await client.query<unknown[]>({ text: query, rowMode: 'array' })
  await client.end()
  return rows.map(([first]) => first)
}
