import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { DatabaseUnavailable } from '../../src/database/database-unavailable.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createPostgresStore } from '../../src/resources/stores/postgres/postgres.ts'
import type { ResourceStore } from '../../src/resources/stores/store.ts'
import { createAuthority } from '../support/certificates.ts'
import { endAfter } from '../support/cleanup.ts'
import { postgresMissing, startPostgres, type TestPostgres } from '../support/postgres.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { commit, describeStore, put, type StoreDatabase, secretPaths } from '../support/store-suite.ts'
import { until, within } from '../support/wait.ts'

let postgres: TestPostgres

async function query(url: string, text: string): Promise<readonly (readonly unknown[])[]> {
  const client = new Client(url)
  await client.connect()
  try {
    const { rows } = await client.query<unknown[]>({ text, rowMode: 'array' })
    return rows
  } finally {
    await client.end()
  }
}

async function createDatabase(): Promise<StoreDatabase> {
  const url = await postgres.createDatabase()
  return {
    open: (options = {}) => createPostgresStore({ url, secretPaths, clock: systemClock, ...options }),
    sql: (text) => query(url, text),
    address: ['postgres', url],
  }
}

type OpenOptions = { pollMs?: number; maxConnections?: number; warn?: (message: string) => void }

function openStore(url: string, options: OpenOptions = {}): ResourceStore {
  const store = createPostgresStore({ url, secretPaths, clock: systemClock, ...options })
  endAfter('test', () => store.close())
  return store
}

/** Counts the events of a watcher. */
function watch(store: ResourceStore): { changes: number; lost: string[] } {
  const told = { changes: 0, lost: [] as string[] }
  store.watch({
    onChange: () => {
      told.changes += 1
    },
    onLost: (error) => told.lost.push(error.message),
  })
  return told
}

/** Never polls within a test, so that only notifications can announce changes. */
const never = 600_000

describe.skipIf(postgresMissing !== undefined)(`on Postgres (${postgresMissing ?? 'here'})`, () => {
  beforeAll(async () => {
    postgres = await startPostgres()
  })

  describeStore('Postgres', createDatabase)

  describe('notifications', () => {
    it('arrive at once', async () => {
      const url = await postgres.createDatabase()
      const [store, other] = [openStore(url, { pollMs: never }), openStore(url)]
      await store.read(undefined)
      const told = watch(store)
      await until('it listens', () => isListening(url))
      await delay(100)
      told.changes = 0
      await commit(other, put('a', 'x', {}))
      await until('the commit is announced', () => told.changes > 0)
    })

    it('arrive again after the connection was lost, and missed changes are announced', async () => {
      const url = await postgres.createDatabase()
      const [store, other] = [openStore(url, { pollMs: never }), openStore(url)]
      await store.read(undefined)
      const told = watch(store)
      await until('it listens', () => isListening(url))
      await query(url, `select pg_terminate_backend(pid) from pg_stat_activity where ${listening}`)
      await commit(other, put('a', 'missed', {}))
      told.changes = 0
      await until('what was missed is announced', () => told.changes > 0)
      const delta = await store.read(0)
      expect(delta).toMatchObject({ generation: 1, complete: true, changed: [{ id: 'missed' }] })
      await until('it listens again', () => isListening(url))
      await delay(100)
      told.changes = 0
      await commit(other, put('a', 'heard', {}))
      await until('the next is announced', () => told.changes > 0)
    })

    it('that are lost are found by polling', async () => {
      const url = await postgres.createDatabase()
      const store = openStore(url, { pollMs: 200 })
      await store.read(undefined)
      const told = watch(store)
      await delay(500)
      told.changes = 0
      await query(url, 'update tollgate_state set generation = 1')
      await until('the change is found', () => told.changes > 0)
    })

    it('that a pooler swallows are replaced by polling, with one warning', async () => {
      const url = await postgres.createDatabase()
      const proxy = await startPostgresProxy(postgres.port)
      proxy.dropNotifications = true
      const warnings: string[] = []
      const store = openStore(proxy.through(url), { warn: (message) => warnings.push(message) })
      await store.read(undefined)
      const told = watch(store)
      await until('the silence is noticed', () => warnings.length > 0)
      expect(warnings).toEqual([expect.stringContaining('a connection pooler')])
      told.changes = 0
      await commit(openStore(url), put('a', 'x', {}))
      await until('the change is found', () => told.changes > 0)
      expect(told.lost).toEqual([])
    })

    it('are done without where there is one connection only', async () => {
      const url = await postgres.createDatabase()
      const store = openStore(url, { maxConnections: 1, pollMs: 100 })
      await store.read(undefined)
      const told = watch(store)
      await Promise.all(Array.from({ length: 10 }, (_, index) => commit(store, put('a', `${index}`, {}))))
      await delay(300)
      told.changes = 0
      await commit(openStore(url), put('a', 'x', {}))
      await until('the change is found', () => told.changes > 0)
      expect(told.lost).toEqual([])
    })
  })

  it('takes three round trips for a write, and two for a read', async () => {
    const url = await postgres.createDatabase()
    const proxy = await startPostgresProxy(postgres.port)
    const store = openStore(proxy.through(url))
    const tripsOf = async (run: () => Promise<unknown>) => {
      const before = proxy.roundTrips
      await run()
      return proxy.roundTrips - before
    }
    let { generation } = await commit(store, put('a', 'x', {}), put('a', 'y', {}))
    const changes = [
      put('a', 'x', { new: true }),
      put('a', 'z', {}),
      { op: 'remove', kind: 'a', id: 'y' },
    ] as const
    expect(
      await tripsOf(async () => {
        const delta = await store.write(generation, () => Promise.resolve(changes))
        expect(delta.removed).toEqual([{ kind: 'a', id: 'y' }])
        generation = delta.generation
      }),
    ).toBe(3)
    expect(await tripsOf(() => store.read(generation))).toBe(2)
    expect(await tripsOf(() => store.read(undefined))).toBe(2)
    // The state and one further list: the index belongs to another database.
    expect(await tripsOf(() => store.read(generation + 1))).toBe(3)
  })

  describe('a database that fails', () => {
    it('is reported, and used again once it is back', { timeout: 60_000 }, async () => {
      const url = await postgres.createDatabase()
      const store = openStore(url, { pollMs: 200 })
      await commit(store, put('a', 'x', {}))
      const told = watch(store)
      await delay(300)
      await postgres.stop()
      await until('the loss is told', () => told.lost.length > 0)
      const refusals = await within(
        'calls are refused in time',
        Promise.allSettled([store.read(1), commit(store, put('a', 'y', {}))]),
        20_000,
      )
      for (const refusal of refusals) {
        expect(refusal).toMatchObject({ status: 'rejected', reason: expect.any(DatabaseUnavailable) })
      }
      await delay(500)
      expect(told.lost).toHaveLength(1)
      told.changes = 0
      await postgres.start()
      await until('its return is told', () => told.changes > 0, 15_000)
      // Another server may have taken over, without the latest commits.
      expect(await store.read(1)).toMatchObject({ complete: true, changed: [{ id: 'x' }] })
      expect(await store.read(1)).toMatchObject({ complete: false, changed: [] })
      expect((await commit(store, put('a', 'y', {}))).generation).toBe(2)
      told.changes = 0
      await commit(openStore(url), put('a', 'z', {}))
      await until('changes are announced again', () => told.changes > 0)
    })

    it('in the middle of a write commits nothing', async () => {
      const url = await postgres.createDatabase()
      const proxy = await startPostgresProxy(postgres.port)
      const store = openStore(proxy.through(url))
      await commit(store, put('a', 'x', {}))
      const writing = store.write(0, async () => {
        proxy.cut()
        await delay(50)
        return [put('a', 'y', {})]
      })
      await expect(writing).rejects.toThrow(DatabaseUnavailable)
      expect(await store.read(undefined)).toMatchObject({ generation: 1, changed: [{ id: 'x' }] })
    })

    it('by not answering is given up in time, and its lock is not kept', { timeout: 90_000 }, async () => {
      const url = await postgres.createDatabase()
      const proxy = await startPostgresProxy(postgres.port)
      const store = openStore(proxy.through(url))
      await commit(store, put('a', 'x', {}))
      const startedAt = performance.now()
      const writing = store.write(0, () => {
        proxy.hangs = true
        return Promise.resolve([put('a', 'y', {})])
      })
      await expect(writing).rejects.toThrow(DatabaseUnavailable)
      await expect(store.read(1)).rejects.toThrow(DatabaseUnavailable)
      expect(performance.now() - startedAt).toBeLessThan(45_000)
      proxy.hangs = false
      expect((await commit(store, put('a', 'z', {}))).generation).toBe(2)
    })

    it('is prepared anew when its tables are gone', async () => {
      const url = await postgres.createDatabase()
      const store = openStore(url)
      await commit(store, put('a', 'x', {}))
      await query(url, 'drop table tollgate_resources')
      await query(url, 'drop table tollgate_removals')
      await query(url, 'drop table tollgate_history')
      await query(url, 'drop table tollgate_state')
      await query(url, 'drop table tollgate_migrations')
      await expect(store.read(1)).rejects.toThrow(DatabaseUnavailable)
      expect(await store.read(1)).toMatchObject({ generation: 0, complete: true, changed: [] })
    })
  })

  describe('an address', () => {
    it.each([
      'postgres://user:hunter2@host:99999999/db',
      'postgres://user:hunter2@[nowhere/db',
      '://user:hunter2@',
    ])('that cannot be understood is refused without repeating it: %s', (url) => {
      expect(() => openStore(url)).toThrow(/^config\.database\.url is not a Postgres address/)
      expect(() => openStore(url)).not.toThrow(/hunter2/)
    })

    it('with a wrong password is refused by the server, and the password is not disclosed', async () => {
      const url = (await postgres.createDatabase()).replace(/:[^:@]*@/, ':hunter2@')
      const refusal = await openStore(url)
        .read(undefined)
        .catch((error: unknown) => error)
      expect(refusal).toBeInstanceOf(DatabaseUnavailable)
      expect(String(refusal)).toContain('password authentication failed')
      expect(JSON.stringify(refusal, Object.getOwnPropertyNames(refusal))).not.toContain('hunter2')
    })

    it('that demands TLS is not served without', async () => {
      const url = `${await postgres.createDatabase()}?sslmode=require`
      await expect(openStore(url).read(undefined)).rejects.toThrow(/does not support SSL/)
    })

    it('has its certificate checked according to its sslmode', async () => {
      const authority = createAuthority()
      const server = await startPostgres(authority.issue('127.0.0.1'))
      const url = await server.createDatabase()
      const folder = mkdtempSync(join(tmpdir(), 'tollgate-store-'))
      endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
      const trusted = join(folder, 'trusted.pem')
      const stranger = join(folder, 'stranger.pem')
      writeFileSync(trusted, authority.cert)
      writeFileSync(stranger, createAuthority('another').cert)
      const outcomes = await Promise.all(
        [
          'sslmode=require',
          `sslmode=verify-full&sslrootcert=${trusted}`,
          'sslmode=verify-full',
          `sslmode=verify-full&sslrootcert=${stranger}`,
          `sslmode=verify-ca&sslrootcert=${stranger}`,
        ].map((query) =>
          openStore(`${url}?${query}`)
            .read(undefined)
            .then(({ generation }) => generation, String),
        ),
      )
      expect(outcomes).toEqual([
        0,
        0,
        ...Array.from({ length: 3 }, () => expect.stringMatching(/certificate/)),
      ])
      const encrypted = await query(
        url,
        'select distinct ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = $$tollgate$$',
      )
      expect(encrypted).toEqual([[true]])
      expect(() => openStore(`${url}?sslmode=verify-full&sslrootcert=/missing.pem`)).toThrow(
        /ENOENT.*missing\.pem/,
      )
    })

    it('reaches its database by application name', async () => {
      const url = await postgres.createDatabase()
      await openStore(url).read(undefined)
      const names = await query(
        url,
        'select application_name from pg_stat_activity where datname = current_database()',
      )
      expect(names.flat()).toContain('tollgate')
    })
  })

  it('needs no right to change the schema once it is there', async () => {
    const url = await postgres.createDatabase()
    await commit(openStore(url), put('a', 'x', {}))
    const name = `runtime_${Date.now()}`
    await query(url, `create role ${name} login password 'runtime'`)
    await query(url, 'revoke create on schema public from public')
    for (const table of ['resources', 'removals', 'history', 'state', 'migrations']) {
      await query(url, `grant select, insert, update, delete on tollgate_${table} to ${name}`)
    }
    const store = openStore(url.replace(/\/\/.*@/, `//${name}:runtime@`))
    expect((await commit(store, put('a', 'y', {}))).generation).toBe(2)
  })
})

const listening = `datname = current_database() and application_name = 'tollgate (notifications)'`

async function isListening(url: string): Promise<boolean> {
  return (await query(url, `select 1 from pg_stat_activity where ${listening}`)).length > 0
}
