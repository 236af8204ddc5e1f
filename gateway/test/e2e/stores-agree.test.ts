import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/lib/json/json.ts'
import { createPostgresStore } from '../../src/resources/stores/postgres/postgres.ts'
import { createSqliteStore } from '../../src/resources/stores/sqlite/sqlite.ts'
import type {
  ResourceStore,
  StoreChange,
  StoreDelta,
  StoredResource,
} from '../../src/resources/stores/store.ts'
import { endAfter } from '../support/cleanup.ts'
import { postgresMissing, startPostgres } from '../support/postgres.ts'
import { createTestClock, secretPaths, sorted } from '../support/store-suite.ts'

type Step =
  | { do: 'commit'; changes: StoreChange[]; known: number; by: number }
  | { do: 'fail'; known: number; by: number }
  | { do: 'read'; since: number | undefined; by: number }

const text = fc.oneof(
  fc.constantFrom(
    "'; drop table tollgate_resources; --",
    'enc:v1:AAAA',
    'enc:v0:x',
    '__proto__',
    '$1',
    '\u0000',
    '\ud800',
  ),
  fc.string({ unit: 'binary', maxLength: 8 }),
)
const name = fc.constantFrom("'", '__proto__', '\u{1F511}')
const kind = fc.constantFrom('secret', 'open')
const value: fc.Arbitrary<JsonObject> = fc
  .record(
    {
      key: fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true })),
      nested: fc.dictionary(text, text, { maxKeys: 3 }),
      list: fc.array(fc.record({ key: text }), { maxLength: 3 }),
      other: text,
    },
    { requiredKeys: [] },
  )
  // As a client would have sent it.
  .map((any): JsonObject => JSON.parse(JSON.stringify(any)))

const change: fc.Arbitrary<StoreChange> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ op: fc.constant('put' as const), kind, id: name, value }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('remove' as const), kind, id: name }) },
)
const generation = fc.integer({ min: 0, max: 14 })
const by = fc.integer({ min: 0, max: 1 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('commit' as const),
      changes: fc.array(change, { maxLength: 4 }),
      known: generation,
      by,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fail' as const), known: generation, by }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('read' as const),
      since: fc.oneof(generation, fc.constant(undefined)),
      by,
    }),
  },
)

const emptyDatabase = `delete from tollgate_resources; delete from tollgate_removals;
  update tollgate_state set generation = 0, deltas_since = 0, revision_floor = 0`

/** Model of a store without a database: the records, the time of each change, and the removals. */
function createModel(now: () => string) {
  type Entry = {
    kind: string
    id: string
    record: StoredResource | undefined
    revision: number
    generation: number
  }
  const entries = new Map<string, Entry>()
  let current = 0

  const read = (since: number | undefined): StoreDelta => {
    const complete = since === undefined || since > current
    const found = [...entries.values()].filter((entry) => complete || entry.generation > since)
    return {
      changed: found.flatMap(({ record }) => record ?? []),
      unreadable: [],
      removed: complete
        ? []
        : found.filter((entry) => entry.record === undefined).map(({ kind, id }) => ({ kind, id })),
      generation: current,
      complete,
    }
  }

  const commit = (known: number, changes: readonly StoreChange[]): StoreDelta => {
    const { complete } = read(known)
    const last = new Map(changes.map((change) => [`${change.kind}/${change.id}`, change]))
    const effective = [...last].filter(
      ([key, { op }]) => op === 'put' || entries.get(key)?.record !== undefined,
    )
    if (effective.length > 0) current += 1
    for (const [key, change] of effective) {
      const { kind, id } = change
      const before = entries.get(key)?.record
      const last = entries.get(key)?.revision ?? 0
      const record =
        change.op === 'remove'
          ? undefined
          : {
              kind,
              id,
              value: change.value,
              revision: last + 1,
              createdAt: before?.createdAt ?? now(),
              updatedAt: now(),
            }
      entries.set(key, { kind, id, record, revision: record?.revision ?? last, generation: current })
    }
    return { ...read(complete ? undefined : known), complete }
  }
  return { read, commit }
}

describe.skipIf(postgresMissing !== undefined)(`on Postgres (${postgresMissing ?? 'here'})`, () => {
  it.each([undefined, 'ab'.repeat(32)])(
    'SQLite and Postgres answer any sequence of operations as the model does, with encryption key %s',
    { timeout: 120_000 },
    async (encryptionKey) => {
      const folder = mkdtempSync(join(tmpdir(), 'tollgate-store-'))
      endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
      const postgres = await startPostgres()
      const url = await postgres.createDatabase()
      const path = join(folder, 'tollgate.db')
      const clock = createTestClock()
      const options = { secretPaths, clock, encryptionKey }
      const databases = [
        [createSqliteStore({ ...options, path }), createSqliteStore({ ...options, path })],
        [createPostgresStore({ ...options, url }), createPostgresStore({ ...options, url })],
      ]
      for (const store of databases.flat()) {
        endAfter('test', () => store.close())
        await store.read(undefined)
      }
      const sqlite = new DatabaseSync(path)
      endAfter('test', () => sqlite.close())
      const client = new Client(url)
      await client.connect()
      endAfter('test', () => client.end())

      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 20 }), async (steps) => {
          sqlite.exec(emptyDatabase)
          await client.query(emptyDatabase)
          const model = createModel(() => new Date(clock.now()).toISOString())
          for (const one of steps) {
            clock.advance(1)
            const expected = await outcome(() => applyToModel(model, one))
            for (const replicas of databases) {
              const store = replicas[one.by]
              expect(store && (await outcome(() => applyToStore(store, one)))).toEqual(expected)
            }
          }
        }),
        { numRuns: 100 },
      )
    },
  )
})

async function outcome(run: () => StoreDelta | Promise<StoreDelta>): Promise<StoreDelta | string> {
  try {
    return sorted(await run())
  } catch (error) {
    return String(error)
  }
}

const refusal = 'the plan refuses'

function applyToModel(model: ReturnType<typeof createModel>, step: Step): StoreDelta {
  switch (step.do) {
    case 'commit':
      return model.commit(step.known, step.changes)
    case 'read':
      return model.read(step.since)
    case 'fail':
      throw new Error(refusal)
  }
}

function applyToStore(store: ResourceStore, step: Step): Promise<StoreDelta> {
  switch (step.do) {
    case 'commit':
      return store.write(step.known, () => Promise.resolve(step.changes))
    case 'read':
      return store.read(step.since)
    case 'fail':
      return store.write(step.known, () => Promise.reject(new Error(refusal)))
  }
}
