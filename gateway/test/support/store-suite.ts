import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { DatabaseUnavailable } from '../../src/database/database-unavailable.ts'
import type { Clock } from '../../src/lib/clock.ts'
import type { JsonObject } from '../../src/lib/json/json.ts'
import type { ResourceStore, StoreChange, StoreDelta } from '../../src/resources/stores/store.ts'
import { isFingerprintOf, type SecretPaths } from '../../src/resources/stores/value-codec.ts'
import { endAfter } from './cleanup.ts'
import { until, within } from './wait.ts'

export type OpenStoreOptions = {
  encryptionKey?: string | undefined
  previousEncryptionKeys?: readonly string[]
  onRotated?: (records: number) => void
  historyRows?: number
  clock?: Clock
  pollMs?: number
}

/** An empty database of one kind, and ways to look at it. */
export type StoreDatabase = {
  /** A store on it; several of them are as several replicas. */
  open(options?: OpenStoreOptions): ResourceStore
  /** Runs SQL past the stores. */
  sql(text: string): Promise<readonly (readonly unknown[])[]>
  /** Arguments for `store-writer.ts`. */
  address: readonly [kind: 'sqlite' | 'postgres', address: string]
}

/** The secret field that the stores of this suite know. */
export const secretPaths: SecretPaths = (kind) => (value) =>
  kind === 'secret'
    ? [['key'], ['list', 1, 'key'], ['nested']].filter(([first]) => String(first) in value)
    : []

const key = '0123456789abcdef'.repeat(4)
const otherKey = Buffer.alloc(32, 7).toString('base64')

/** A manual clock. */
export function createTestClock(): Clock & { advance(ms: number): void } {
  let now = Date.UTC(2026, 0, 1)
  return {
    now: () => now,
    monotonic: () => performance.now(),
    advance(ms) {
      now += ms
    },
  }
}

/** Commits changes unconditionally. */
export function commit(store: ResourceStore, ...changes: StoreChange[]): Promise<StoreDelta> {
  return store.write(0, () => Promise.resolve(changes))
}

export function put(kind: string, id: string, value: JsonObject): StoreChange {
  return { op: 'put', kind, id, value }
}

export function remove(kind: string, id: string): StoreChange {
  return { op: 'remove', kind, id }
}

/** A delta in a fixed order, because stores promise none. */
export function sorted(delta: StoreDelta): StoreDelta {
  const byKey = (a: { kind: string; id: string }, b: { kind: string; id: string }) =>
    Buffer.compare(Buffer.from(`${a.kind}\0${a.id}`), Buffer.from(`${b.kind}\0${b.id}`))
  return {
    ...delta,
    changed: delta.changed.toSorted(byKey),
    unreadable: delta.unreadable.toSorted(byKey),
    removed: delta.removed.toSorted(byKey),
  }
}

/** The guarantees of every store, for any database. */
export function describeStore(name: string, createDatabase: () => Promise<StoreDatabase>): void {
  const start = async (options: OpenStoreOptions = {}) => {
    const database = await createDatabase()
    const open = (more: OpenStoreOptions = {}) => {
      const store = database.open({ ...options, ...more })
      endAfter('test', () => store.close())
      return store
    }
    return { ...database, open, store: open() }
  }

  describe(`${name}: records`, () => {
    it('is empty at first', async () => {
      const { store } = await start()
      expect(await store.read(undefined)).toEqual({
        changed: [],
        unreadable: [],
        removed: [],
        generation: 0,
        complete: true,
      })
    })

    it('counts revisions and keeps the time of creation through updates', async () => {
      const clock = createTestClock()
      const { store } = await start({ clock })
      const created = await commit(store, put('llm.apiKey', 'a', { name: 'one' }))
      expect(created).toEqual({
        changed: [
          {
            kind: 'llm.apiKey',
            id: 'a',
            value: { name: 'one' },
            revision: 1,
            createdAt: '2026-01-01T00:00:00.000Z',
            updatedAt: '2026-01-01T00:00:00.000Z',
          },
        ],
        unreadable: [],
        removed: [],
        generation: 1,
        complete: false,
      })
      clock.advance(61_234)
      const updated = await commit(store, put('llm.apiKey', 'a', { name: 'two' }))
      expect(updated.changed).toEqual([
        {
          kind: 'llm.apiKey',
          id: 'a',
          value: { name: 'two' },
          revision: 2,
          createdAt: '2026-01-01T00:00:00.000Z',
          updatedAt: '2026-01-01T00:01:01.234Z',
        },
      ])
      expect(await store.read(0)).toEqual(updated)
    })

    it('keeps records of different kinds with one id apart', async () => {
      const { store } = await start()
      await commit(store, put('a', 'x', { n: 1 }), put('b', 'x', { n: 2 }))
      await commit(store, remove('a', 'x'))
      const { changed } = await store.read(undefined)
      expect(changed.map(({ kind, value }) => [kind, value])).toEqual([['b', { n: 2 }]])
    })

    it('stores nothing of a removed record but its last revision', async () => {
      const { store, sql } = await start()
      await commit(store, put('a', 'x', { key: 'sk-gone' }))
      await commit(store, put('a', 'x', { key: 'sk-gone-too' }))
      const removal = await commit(store, remove('a', 'x'))
      expect(removal.removed).toEqual([{ kind: 'a', id: 'x' }])
      expect(await sql('select count(*) from tollgate_resources')).toEqual([[expect.toSatisfy(isZero)]])
      expect(JSON.stringify(await sql('select kind, id from tollgate_removals'))).not.toContain('sk-gone')
      const again = await commit(store, put('a', 'x', { key: 'sk-new' }))
      expect(again.changed[0]).toMatchObject({ revision: 3, value: { key: 'sk-new' } })
      expect(again.removed).toEqual([])
    })

    it('never reuses a revision, across stores and when removals are forgotten', async () => {
      const { store, open } = await start()
      const revisionOf = ({ changed }: StoreDelta, id: string) =>
        changed.find((record) => record.id === id)?.revision
      for (const n of [1, 2, 3]) await commit(store, put('a', 'x', { n }))
      await commit(store, remove('a', 'x'))
      await store.close()
      const second = open()
      expect(revisionOf(await commit(second, put('a', 'x', {}), put('b', 'x', {})), 'x')).toBe(4)
      expect(revisionOf(await commit(second, put('a', 'y', {})), 'y')).toBe(1)
      await commit(second, remove('a', 'x'), remove('b', 'x'))
      const ids = Array.from({ length: 10_001 }, (_, index) => `id-${index}`)
      await commit(second, ...ids.map((id) => put('a', id, {})))
      await commit(second, ...ids.map((id) => remove('a', id)))
      await commit(second, put('a', 'last', {}))
      await commit(second, remove('a', 'last'))
      expect(revisionOf(await commit(second, put('a', 'x', {})), 'x')).toBe(5)
      expect(revisionOf(await commit(second, put('a', 'y', {})), 'y')).toBe(2)
      await second.close()
    })

    it('continues above every revision of a database of version 1', async () => {
      const { store, open, sql } = await start()
      for (const n of [1, 2, 3]) await commit(store, put('a', 'x', { n }))
      await commit(store, remove('a', 'x'))
      await commit(store, put('a', 'y', {}))
      await sql('drop table tollgate_history')
      await sql('alter table tollgate_removals drop column revision')
      await sql('alter table tollgate_state drop column revision_floor')
      await sql('delete from tollgate_migrations where version > 1')
      const migrated = open()
      const { changed } = await commit(migrated, put('a', 'x', {}), put('a', 'y', {}), put('a', 'new', {}))
      const revisions = changed.map(({ id, revision }) => [id, revision])
      expect(Object.fromEntries(revisions)).toEqual({ x: 5, y: 2, new: 1 })
    })

    it('does nothing for a removal of what is not there', async () => {
      const { store } = await start()
      await commit(store, put('a', 'x', {}))
      const delta = await commit(store, remove('a', 'y'), remove('b', 'x'))
      expect(delta.generation).toBe(1)
      expect(delta.removed).toEqual([])
    })

    it('lets the last change of a record count', async () => {
      const { store } = await start()
      const delta = await commit(
        store,
        put('a', 'x', { n: 1 }),
        remove('a', 'x'),
        put('a', 'x', { n: 2 }),
        put('a', 'y', { n: 3 }),
        remove('a', 'y'),
      )
      expect(delta.changed.map(({ id, value, revision }) => [id, value, revision])).toEqual([
        ['x', { n: 2 }, 1],
      ])
      expect(sorted(await store.read(undefined)).changed).toEqual(delta.changed)
    })

    it('keeps and returns records of kinds that nobody knows yet', async () => {
      const { store, sql } = await start()
      await store.read(undefined)
      await sql(`insert into tollgate_resources (kind, id, value, revision, created_at, updated_at, generation)
        values ('future.kind', 'x', '{"a":[1]}', 7, '2030-01-01T00:00:00.000Z', '2030-01-02T00:00:00.000Z', 1)`)
      await sql('update tollgate_state set generation = 1')
      expect((await store.read(0)).changed).toEqual([
        {
          kind: 'future.kind',
          id: 'x',
          value: { a: [1] },
          revision: 7,
          createdAt: '2030-01-01T00:00:00.000Z',
          updatedAt: '2030-01-02T00:00:00.000Z',
        },
      ])
    })

    it('reports a damaged value as unreadable', async () => {
      const { store, sql } = await start()
      await commit(store, put('a', 'x', {}), put('a', 'y', {}), put('a', 'z', {}))
      await sql(`update tollgate_resources set value = '{"cut' where id = 'x'`)
      await sql(`update tollgate_resources set value = '[1]' where id = 'y'`)
      const delta = sorted(await store.read(undefined))
      expect(delta.changed.map(({ id }) => id)).toEqual(['z'])
      expect(delta.unreadable.map(({ id, reason }) => [id, reason])).toEqual([
        ['x', 'its value is not a JSON object'],
        ['y', 'its value is not a JSON object'],
      ])
    })
  })

  describe(`${name}: hostile content`, () => {
    const identifiers = [
      `'; drop table tollgate_resources; --`,
      `" or "1"="1`,
      '%00%27',
      '../../etc/passwd',
      '__proto__',
      'constructor',
      'ünïcödé \u{1F511} 数',
      'e\u0301',
      'é',
      '\u0001\u001f\u007f',
      'a\\b\n\r\t',
      ' ',
      '$1 ? :a {}',
    ]

    it('keeps identifiers as they are', async () => {
      const { store } = await start()
      await commit(store, ...identifiers.map((id) => put(id, id, { id })))
      const { changed } = await store.read(undefined)
      expect(changed.map(({ kind }) => kind).sort()).toEqual(identifiers.toSorted())
      expect(changed.every(({ kind, id, value }) => kind === id && value['id'] === id)).toBe(true)
      const delta = await commit(store, ...identifiers.map((id) => remove(id, id)))
      expect(delta.changed).toEqual([])
      expect(delta.removed).toHaveLength(identifiers.length)
    })

    it.each([
      ['NUL', 'a\0b'],
      ['a lone surrogate', 'a\ud800'],
      ['nothing', ''],
      ['a megabyte', 'a'.repeat(1024 * 1024)],
    ])('refuses identifiers of %s and commits nothing', async (_, id) => {
      const { store } = await start()
      await expect(commit(store, put('a', 'fine', {}), put('a', id, {}))).rejects.toThrow(RangeError)
      await expect(commit(store, put(id, 'fine', {}))).rejects.toThrow(RangeError)
      await expect(commit(store, remove('a', id))).rejects.toThrow(RangeError)
      expect((await store.read(undefined)).generation).toBe(0)
    })

    it('keeps values as they are', async () => {
      const { store } = await start()
      const value: JsonObject = JSON.parse(
        String.raw`{"__proto__":{"polluted":true},"constructor":1,"nul":"a\u0000b","lone":"\ud800","sql":"'; drop table x; --",
          "big":12345678901234567890,"small":1e-300,"empty":"","nested":[[],{},null,false],"z":1,"a":2,"":3,"$1":"?"}`,
      )
      await commit(store, put('a', 'x', value))
      const [stored] = (await store.read(undefined)).changed
      expect(JSON.stringify(stored?.value)).toBe(JSON.stringify(value))
      expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
    })

    it('keeps huge values, and values nested deeply', async () => {
      const { store } = await start()
      const long = 'x"\u{1F511}'.repeat(1024 * 1024)
      const deep: JsonObject = JSON.parse(`{"a":${'['.repeat(2000)}"enc:v1:x"${']'.repeat(2000)}}`)
      await commit(store, put('a', 'long', { long }), put('a', 'deep', deep))
      const { changed } = sorted(await store.read(undefined))
      expect(changed.map(({ value }) => JSON.stringify(value))).toEqual([
        JSON.stringify(deep),
        JSON.stringify({ long }),
      ])
    })
  })

  describe(`${name}: generations`, () => {
    it('tells what changed since a generation', async () => {
      const { store } = await start()
      await commit(store, put('a', 'x', {}), put('a', 'y', {}))
      await commit(store, put('a', 'z', {}))
      await commit(store, remove('a', 'x'), put('a', 'y', { new: true }))
      const delta = sorted(await store.read(1))
      expect(delta).toMatchObject({ generation: 3, complete: false, removed: [{ kind: 'a', id: 'x' }] })
      expect(delta.changed.map(({ id, revision }) => [id, revision])).toEqual([
        ['y', 2],
        ['z', 1],
      ])
      expect(await store.read(3)).toEqual({
        changed: [],
        unreadable: [],
        removed: [],
        generation: 3,
        complete: false,
      })
    })

    it('reads everything for a generation that is yet to come, as after a backup is restored', async () => {
      const { store } = await start()
      await commit(store, put('a', 'x', {}))
      expect(await store.read(7)).toMatchObject({ complete: true, generation: 1, changed: [{ id: 'x' }] })
    })

    it('reads everything for a generation whose removals are forgotten', async () => {
      const { store } = await start()
      const ids = Array.from({ length: 12_000 }, (_, index) => `id-${index}`)
      await commit(store, ...ids.map((id) => put('a', id, {})))
      await commit(store, ...ids.slice(0, 6_000).map((id) => remove('a', id)))
      expect(await store.read(1)).toMatchObject({ complete: false })
      await commit(store, ...ids.slice(6_000, 11_000).map((id) => remove('a', id)))
      const behind = await store.read(1)
      expect(behind).toMatchObject({ complete: true, removed: [], generation: 3 })
      expect(behind.changed).toHaveLength(1_000)
      const next = await store.read(2)
      expect(next).toMatchObject({ complete: false, changed: [] })
      expect(next.removed).toHaveLength(5_000)
    })

    it('tells a writer what others have committed, and its own changes with it', async () => {
      const { store, open } = await start()
      const other = open()
      await store.read(undefined)
      await commit(other, put('a', 'theirs', {}), put('a', 'both', { by: 'them' }), put('a', 'gone', {}))
      let seen: StoreDelta | undefined
      const delta = await store.write(0, async (sinceKnown) => {
        seen = sinceKnown
        return [put('a', 'mine', {}), put('a', 'both', { by: 'me' }), remove('a', 'gone')]
      })
      expect(seen && sorted(seen).changed.map(({ id }) => id)).toEqual(['both', 'gone', 'theirs'])
      expect(sorted(delta).changed.map(({ id, revision }) => [id, revision])).toEqual([
        ['both', 2],
        ['mine', 1],
        ['theirs', 1],
      ])
      expect(sorted(delta)).toEqual(sorted(await other.read(0)))
    })
  })

  describe(`${name}: writers`, () => {
    it('commits nothing when the plan throws, and passes its error on', async () => {
      const { store } = await start()
      const error = new Error('the set would not load')
      await expect(store.write(0, () => Promise.reject(error))).rejects.toBe(error)
      expect((await store.write(0, () => Promise.resolve(undefined))).generation).toBe(0)
      expect((await store.write(0, () => Promise.resolve([]))).generation).toBe(0)
      expect((await commit(store, put('a', 'x', {}))).generation).toBe(1)
    })

    it('loses no update of 50 writers in two replicas', async () => {
      const { store, open } = await start()
      const stores = [store, open()]
      await commit(store, put('a', 'counter', { n: 0 }))
      const increments = Array.from({ length: 50 }, (_, index) =>
        (stores[index % 2] ?? store).write(0, async ({ changed }) => {
          const counter = changed.find(({ id }) => id === 'counter')
          await delay(1)
          return [
            put('a', 'counter', { n: Number(counter?.value['n']) + 1 }),
            put('a', `writer-${index}`, {}),
          ]
        }),
      )
      const generations = (await Promise.all(increments)).map(({ generation }) => generation)
      expect(new Set(generations).size).toBe(50)
      const { changed, generation } = await store.read(undefined)
      expect(generation).toBe(51)
      expect(changed).toHaveLength(51)
      expect(changed.find(({ id }) => id === 'counter')).toMatchObject({ value: { n: 50 }, revision: 51 })
    })

    it('reads while a plan is made, without what is not committed', async () => {
      const { store } = await start()
      await commit(store, put('a', 'x', {}))
      const planning = Promise.withResolvers<StoreChange[]>()
      const writing = store.write(0, () => planning.promise)
      expect((await store.read(undefined)).changed).toHaveLength(1)
      planning.resolve([put('a', 'y', {})])
      await writing
      expect((await store.read(undefined)).changed).toHaveLength(2)
    })

    it('refuses a writer that has waited 10 s for another replica', { timeout: 60_000 }, async () => {
      const { store, open } = await start()
      const other = open()
      await other.read(undefined)
      const planning = Promise.withResolvers<StoreChange[]>()
      const holding = Promise.withResolvers<void>()
      const first = store.write(0, () => {
        holding.resolve()
        return planning.promise
      })
      await holding.promise
      await expect(commit(other, put('a', 'late', {}))).rejects.toThrow(DatabaseUnavailable)
      planning.resolve([put('a', 'first', {})])
      await first
      const after = await commit(other, put('a', 'after', {}))
      expect(after.changed.map(({ id }) => id).sort()).toEqual(['after', 'first'])
    })

    it('refuses a database whose state was emptied by hand', async () => {
      const { store, sql } = await start()
      await commit(store, put('a', 'x', {}))
      await sql('delete from tollgate_state')
      await expect(store.read(1)).rejects.toThrow(/tollgate_state is empty/)
      await expect(commit(store, put('a', 'x', {}))).rejects.toThrow(DatabaseUnavailable)
      await sql('insert into tollgate_state (one, generation, deltas_since) values (1, 5, 0)')
      expect((await commit(store, put('a', 'x', {}))).generation).toBe(6)
    })

    it('lets replicas start at once on an empty database', async () => {
      const { open } = await start()
      const deltas = await Promise.all(Array.from({ length: 6 }, () => open().read(undefined)))
      expect(deltas.map(({ generation }) => generation)).toEqual([0, 0, 0, 0, 0, 0])
    })

    it('refuses a database of a newer version', async () => {
      const { store, open, sql } = await start()
      await store.read(undefined)
      await sql(
        `insert into tollgate_migrations (version, applied_at) values (99, '2030-01-01T00:00:00.000Z')`,
      )
      await expect(open().read(undefined)).rejects.toThrow(/version 99.*use a newer Tollgate/)
      await expect(commit(open(), put('a', 'x', {}))).rejects.toThrow(DatabaseUnavailable)
    })

    it('holds every acknowledged write, and none by halves, after a writer was killed', {
      timeout: 60_000,
    }, async () => {
      const { store, address } = await start()
      for (let round = 0; round < 8; round += 1) {
        const acknowledged = await writeUntilKilled(address, 5 + Math.random() * 60)
        const { changed } = await within('read after a kill', store.read(undefined), 15_000)
        const numbers = changed.map(({ value }) => Number(value['n']))
        expect(new Set(numbers).size).toBeLessThanOrEqual(1)
        expect(changed.length === 0 || changed.length === 3).toBe(true)
        expect(numbers[0] ?? 0).toBeGreaterThanOrEqual(acknowledged)
      }
    })

    it('refuses calls once it is closed, and closes twice', async () => {
      const { store } = await start()
      await commit(store, put('a', 'x', {}))
      await store.close()
      await store.close()
      await expect(store.read(0)).rejects.toThrow(DatabaseUnavailable)
      await expect(commit(store)).rejects.toThrow(DatabaseUnavailable)
    })

    it('lets a write finish that was begun before it was closed', async () => {
      const { store, open } = await start()
      const writing = store.write(0, async () => {
        await delay(50)
        return [put('a', 'x', {})]
      })
      await delay(20)
      await store.close()
      expect((await writing).generation).toBe(1)
      expect((await open().read(undefined)).changed).toHaveLength(1)
    })
  })

  describe(`${name}: watching`, () => {
    it('tells one replica of the commits of another, and not of its own', async () => {
      const { store, open } = await start({ pollMs: 250 })
      const other = open()
      let changes = 0
      await store.read(undefined)
      store.watch({ onChange: () => (changes += 1), onLost: () => undefined })
      await delay(400)
      changes = 0
      await commit(store, put('a', 'own', {}))
      await delay(600)
      expect(changes).toBe(0)
      await commit(other, put('a', 'theirs', {}))
      await until('the commit is announced', () => changes > 0)
    })

    it('announces a storm of commits a few times, the last one included', { timeout: 60_000 }, async () => {
      const { store, open } = await start()
      const other = open()
      let known = (await store.read(undefined)).generation
      let reads = 0
      let reading = Promise.resolve()
      store.watch({
        onChange() {
          reads += 1
          reading = reading.then(async () => {
            known = (await store.read(known)).generation
          })
        },
        onLost: () => undefined,
      })
      const startedAt = performance.now()
      for (let index = 0; index < 200; index += 1) await commit(other, put('a', `x-${index}`, {}))
      await until('the last commit is known', () => known === 200)
      expect(reads).toBeLessThanOrEqual((performance.now() - startedAt) / 25 + 2)
    })
  })

  describe(`${name}: history`, () => {
    const origin = { origin: 'write', address: '10.0.0.1', requestId: 'r-1' } as const
    const noted = (
      change: StoreChange,
      op: 'create' | 'update' | 'delete',
      before?: JsonObject,
    ): StoreChange => ({
      ...change,
      history: { ...origin, principal: `ada\0\ud800${'x'.repeat(1000)}`, op, before },
    })
    const all = { limit: 100 }

    it('is written in the transaction of the change, with its revision and number', async () => {
      const clock = createTestClock()
      const { store } = await start({ clock })
      await commit(store, noted(put('a', 'x', { n: 1 }), 'create'), put('a', 'quiet', {}))
      clock.advance(1000)
      await commit(
        store,
        noted(put('a', 'x', { n: 2 }), 'update', { n: 1 }),
        noted(remove('a', 'absent'), 'delete'),
        noted(remove('a', 'quiet'), 'delete', {}),
      )
      const { records, isLast } = await store.history(all)
      expect(isLast).toBe(true)
      expect(records).toMatchObject([
        { id: 3, op: 'delete', resourceId: 'quiet', revision: 1, before: { value: {} }, after: undefined },
        {
          id: 2,
          op: 'update',
          resourceId: 'x',
          revision: 2,
          before: { value: { n: 1 } },
          after: { value: { n: 2 } },
        },
        {
          ...origin,
          id: 1,
          at: '2026-01-01T00:00:00.000Z',
          op: 'create',
          kind: 'a',
          revision: 1,
          before: undefined,
        },
      ])
      expect(records[0]?.principal).toMatch(/^ada\ufffd\ufffdx{295}$/)
    })

    it('contains nothing of a change that was not committed', async () => {
      const { store } = await start()
      await commit(store, put('a', 'x', {}))
      const failing = store.write(0, () => Promise.reject(new Error('refused')))
      await expect(failing).rejects.toThrow('refused')
      await store.write(0, () => Promise.resolve(undefined))
      expect(await store.history(all)).toEqual({ records: [], isLast: true })
    })

    it('is selected by kind, id, author and time, and paged by size and number', async () => {
      const clock = createTestClock()
      const { store } = await start({ clock })
      for (let n = 1; n <= 5; n += 1) {
        await commit(store, noted(put(n % 2 ? 'a' : 'b', `id-${n}`, { text: 'x'.repeat(600_000) }), 'create'))
        clock.advance(1000)
      }
      const ids = async (query: object) => {
        const { records, isLast } = await store.history({ limit: 10, ...query })
        return [records.map(({ id }) => id), isLast]
      }
      expect(await ids({ kind: 'b' })).toEqual([[4, 2], true])
      expect(await ids({ kind: 'a', resourceId: 'id-3' })).toEqual([[3], true])
      expect(await ids({ resourceId: "'; drop table tollgate_history; --" })).toEqual([[], true])
      expect(await ids({ who: '10.0.0.2' })).toEqual([[], true])
      expect(await ids({ id: 2 })).toEqual([[2], true])
      const times = { from: '2026-01-01T00:00:01.000Z', to: '2026-01-01T00:00:03.000Z' }
      expect(await ids(times)).toEqual([[3, 2], true])
      expect(await ids({ who: '10.0.0.1' })).toEqual([[5, 4], false])
      expect(await ids({ below: 4 })).toEqual([[3, 2], false])
      expect(await ids({ below: 2 })).toEqual([[1], true])
      expect(await ids({ below: 4, limit: 1 })).toEqual([[3], false])
    })

    it('retains a number of records', async () => {
      const { store } = await start({ historyRows: 3 })
      for (let n = 1; n <= 7; n += 1) await commit(store, noted(put('a', `id-${n}`, { n }), 'create'))
      expect((await store.history(all)).records.map(({ id }) => id)).toEqual([7, 6, 5])
    })

    it('encrypts secrets, and restores them with the key only', async () => {
      const { store, open, sql } = await start({ encryptionKey: key })
      await commit(store, noted(put('secret', 'x', { key: 'sk-2' }), 'update', { key: 'sk-1' }))
      const stored = JSON.stringify(await sql('select before, after from tollgate_history'))
      expect(stored).not.toContain('sk-')
      const [record] = (await store.history(all)).records
      expect(record).toMatchObject({
        before: { kind: 'value', value: { key: 'sk-1' }, removed: [] },
        after: { kind: 'value', value: { key: 'sk-2' }, removed: [] },
      })
      const [other] = (await open({ encryptionKey: otherKey }).history(all)).records
      expect(other).toMatchObject({ before: { kind: 'unreadable' }, after: { kind: 'unreadable' } })
    })

    it('contains fingerprints of secrets without a key', async () => {
      const { store, sql } = await start()
      const before = { key: 'sk-1', nested: { a: 'sk-2' } }
      const after = { key: 'sk-1', nested: { a: 'sk-3' }, other: 'enc:v2:plain' }
      await commit(store, noted(put('secret', 'x', after), 'update', before))
      const stored = JSON.stringify(await sql('select before, after from tollgate_history'))
      expect(stored).not.toContain('sk-')
      const [record] = (await store.history(all)).records
      const [one, other] = [record?.before, record?.after].map((version) =>
        version?.kind === 'value' ? version : undefined,
      )
      const places = (version: typeof one) => version?.removed.map(({ path }) => path)
      expect([places(one), places(other)]).toEqual([
        [['key'], ['nested']],
        [['key'], ['nested']],
      ])
      expect(other?.value['other']).toBe('enc:v2:plain')
      expect(one?.value['key']).toBe(other?.value['key'])
      expect(one?.value['nested']).not.toBe(other?.value['nested'])
      const [fingerprint = ''] = one?.removed.map((secret) => secret.fingerprint) ?? []
      expect([isFingerprintOf(fingerprint, 'sk-1'), isFingerprintOf(fingerprint, 'sk-2')]).toEqual([
        true,
        false,
      ])
    })
  })

  describe(`${name}: secrets at rest`, () => {
    const value: JsonObject = {
      name: 'visible',
      key: 'sk-top-secret',
      list: [{ key: 'visible too' }, { key: 'sk-listed' }],
      nested: { deep: ['sk-deep'], n: 42, enc: 'enc:v1:not really' },
      text: 'enc:v1:AAAA',
      other: 'enc:v0:zero',
    }

    it('are encrypted with the key, each time anew, and nothing else is', async () => {
      const { store, sql, open } = await start({ encryptionKey: key })
      await commit(store, put('secret', 'x', value), put('secret', 'y', value), put('open', 'x', value))
      const rows = await sql('select value from tollgate_resources order by kind, id')
      const [clear, x, y] = rows.map(([text]) => String(text))
      expect(clear).toContain('sk-top-secret')
      for (const text of [x, y]) {
        expect(text).not.toContain('sk-')
        expect(text).toContain('"name":"visible"')
        expect(text).toContain('"key":"enc:v1:')
      }
      expect(x).not.toBe(y)
      for (const reader of [store, open()]) {
        const { changed, unreadable } = await reader.read(undefined)
        expect(unreadable).toEqual([])
        expect(changed.map((record) => record.value)).toEqual([value, value, value])
      }
    })

    it('make a record unreadable without the key, or with another', async () => {
      const { store, open } = await start({ encryptionKey: key })
      await commit(store, put('secret', 'x', value), put('open', 'y', value))
      const other = await open({ encryptionKey: otherKey }).read(undefined)
      expect(other.changed.map(({ id }) => id)).toEqual(['y'])
      expect(other.unreadable).toEqual([
        expect.objectContaining({
          kind: 'secret',
          id: 'x',
          revision: 1,
          reason: expect.stringMatching(/encryptionKey/),
        }),
      ])
    })

    it('of a previous key are encrypted with the current one in the background, without a new revision', async () => {
      const { store, open, sql } = await start({ encryptionKey: key })
      const before = await commit(store, put('secret', 'x', value), put('secret', 'y', value))
      const rotated = Promise.withResolvers<number>()
      const previousEncryptionKeys = ['f'.repeat(64), key]
      const next = open({ encryptionKey: otherKey, previousEncryptionKeys, onRotated: rotated.resolve })
      const read = await next.read(undefined)
      expect(read.unreadable).toEqual([])
      expect(sorted(read).changed).toEqual(sorted(before).changed)
      expect(await rotated.promise).toBe(2)
      const after = await open({ encryptionKey: otherKey }).read(undefined)
      expect(sorted(after)).toEqual(sorted(read))
      expect(JSON.stringify(await sql('select value from tollgate_resources'))).not.toContain('sk-')
      expect((await store.read(undefined)).unreadable).toHaveLength(2)
    })

    it('of a previous key are in the clear when there is no current one', async () => {
      const { store, open } = await start({ encryptionKey: key })
      await commit(store, put('secret', 'x', value))
      const rotated = Promise.withResolvers<number>()
      const next = open({
        encryptionKey: undefined,
        previousEncryptionKeys: [key],
        onRotated: rotated.resolve,
      })
      expect((await next.read(undefined)).changed).toMatchObject([{ value }])
      expect(await rotated.promise).toBe(1)
      expect((await open({ encryptionKey: otherKey }).read(undefined)).changed).toMatchObject([{ value }])
    })

    it('that cannot be decrypted leave the rest of the value readable', async () => {
      const { store, open } = await start({ encryptionKey: key })
      await commit(store, put('secret', 'x', value))
      const [unreadable] = (await open({ encryptionKey: otherKey }).read(undefined)).unreadable
      const hidden = expect.stringMatching(/^http:\/\/[0-9a-f]{48}\.invalid\/$/)
      expect(unreadable?.partial).toEqual({
        ...value,
        key: hidden,
        list: [{ key: 'visible too' }, { key: hidden }],
        nested: hidden,
      })
    })

    it('stay readable from before there was a key, and are encrypted with the next update', async () => {
      const { store, open, sql } = await start()
      await commit(store, put('secret', 'x', value))
      const withKey = open({ encryptionKey: otherKey })
      expect((await withKey.read(undefined)).changed[0]?.value).toEqual(value)
      await commit(withKey, put('secret', 'x', value))
      expect(String(await sql('select value from tollgate_resources'))).not.toContain('sk-')
      const without = await store.read(undefined)
      expect(without.changed).toEqual([])
      expect(without.unreadable[0]?.reason).toBe(
        'it is encrypted and config.database.encryptionKey is not set',
      )
    })

    it('cannot be moved to another record, nor altered', async () => {
      const { store, sql } = await start({ encryptionKey: key })
      await commit(store, put('secret', 'x', value), put('secret', 'y', value))
      await sql(
        `update tollgate_resources set value = (select value from tollgate_resources where id = 'x') where id = 'y'`,
      )
      const moved = sorted(await store.read(undefined))
      expect(moved.changed.map(({ id }) => id)).toEqual(['x'])
      expect(moved.unreadable.map(({ id }) => id)).toEqual(['y'])
      // A removal of the record heals it.
      await commit(store, remove('secret', 'y'))
      expect((await store.read(undefined)).unreadable).toEqual([])
    })
  })
}

function isZero(value: unknown): boolean {
  return Number(value) === 0
}

/**
 * Runs a writer in a process of its own and kills it; the number of the last write that it knew to be
 * committed.
 */
async function writeUntilKilled(address: readonly string[], afterMs: number): Promise<number> {
  const child = fork(fileURLToPath(new URL('store-writer.ts', import.meta.url)), [...address], {
    execArgv: [],
  })
  endAfter('test', () => {
    child.kill('SIGKILL')
  })
  let acknowledged = 0
  const first = Promise.withResolvers<void>()
  child.on('message', (message) => {
    acknowledged = Number(message)
    first.resolve()
  })
  await within('the first write of the process', first.promise, 45_000)
  await delay(afterMs)
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
  return acknowledged
}
