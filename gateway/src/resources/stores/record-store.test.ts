import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { DatabaseUnavailable } from '../../database/database-unavailable.ts'
import { createRecordStore } from './record-store.ts'
import type { CommittedRows, DriverEvents, RowChanges, RowDelta, RowKey, StoredRow } from './row-driver.ts'
import { createValueCodec } from './value-codec.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 0, 1) })
})

afterEach(() => {
  vi.useRealTimers()
})

const times = ['2025-01-01T00:00:00.000Z', '2025-01-02T00:00:00.000Z'] as const

type Found = { complete?: boolean; removed?: RowKey[]; rows?: StoredRow[] }

/** A driver with preset results that records its calls. */
function start(found: Found = {}, committed?: Partial<CommittedRows>) {
  const sinces: (number | undefined)[] = []
  const written: (RowChanges | undefined)[] = []
  const delta = (): RowDelta => ({
    generation: 7,
    complete: found.complete ?? false,
    removed: found.removed ?? [],
    pages: toPages([found.rows ?? []]),
  })
  let events: DriverEvents | undefined
  const store = createRecordStore(
    (given) => {
      events = given
      return {
        read(since, use) {
          sinces.push(since)
          return use(delta())
        },
        async write(since, _, use) {
          sinces.push(since)
          const changes = await use(delta())
          written.push(changes)
          return changes && { generation: 8, puts: [], removed: [], ...committed }
        },
        rewrite: () => Promise.resolve(),
        history: () => Promise.resolve({ rows: [], isLast: true }),
        watch: () => undefined,
        close: () => Promise.resolve(),
      }
    },
    {
      codec: createValueCodec({ current: undefined, previous: [] }, () => () => []),
      clock: { now: () => Date.now(), monotonic: () => performance.now() },
    },
  )
  return { store, sinces, written, events }
}

async function* toPages(pages: StoredRow[][]): AsyncGenerator<StoredRow[]> {
  yield* pages
}

it('requests all rows after the database was replaced, until they were read', async () => {
  const { store, sinces, events } = start()
  await store.read(3)
  events?.replaced()
  events?.replaced()
  await store.read(3)
  await store.read(3)
  events?.replaced()
  await store.write(3, () => Promise.resolve(undefined))
  await store.write(3, () => Promise.resolve(undefined))
  expect(sinces).toEqual([3, undefined, 3, undefined, 3])
})

it('abandons a plan that never ends and releases the lock', async () => {
  const { store, written } = start()
  const hanging = expect(store.write(0, () => new Promise(() => undefined))).rejects.toThrow(
    DatabaseUnavailable,
  )
  await vi.advanceTimersByTimeAsync(60_000)
  await hanging
  expect(written).toEqual([])
  expect((await store.write(0, () => Promise.resolve(undefined))).generation).toBe(7)
})

it('returns the changes of others and its own after a write', async () => {
  const { store, written } = start(
    {
      removed: [
        ['a', 'gone'],
        ['a', 'back'],
      ],
      rows: [
        ['a', 'theirs', '{"n":1}', 1, ...times],
        ['a', 'mine', '{"n":1}', 4, ...times],
        ['b', 'mine', '{"n":2}', 1, ...times],
        ['a', 'damaged', '{', 1, ...times],
        ['a', 'healed', '{', 1, ...times],
      ],
    },
    {
      puts: [
        { revision: 5, createdAt: times[0] },
        { revision: 1, createdAt: '2026-01-01T00:00:00.000Z' },
        { revision: 2, createdAt: times[0] },
      ],
      removed: [['a', 'removed']],
    },
  )
  const delta = await store.write(0, () =>
    Promise.resolve([
      { op: 'put', kind: 'a', id: 'mine', value: { n: 2 } },
      { op: 'put', kind: 'a', id: 'back', value: {} },
      { op: 'put', kind: 'a', id: 'healed', value: {} },
      { op: 'remove', kind: 'a', id: 'removed' },
      { op: 'remove', kind: 'a', id: 'gone' },
    ]),
  )
  expect(written).toEqual([
    {
      puts: [
        ['a', 'mine', '{"n":2}'],
        ['a', 'back', '{}'],
        ['a', 'healed', '{}'],
      ],
      removes: [
        ['a', 'removed'],
        ['a', 'gone'],
      ],
      at: '2026-01-01T00:00:00.000Z',
    },
  ])
  expect(delta.generation).toBe(8)
  expect(delta.changed.map(({ kind, id, revision }) => [kind, id, revision])).toEqual([
    ['a', 'theirs', 1],
    ['b', 'mine', 1],
    ['a', 'mine', 5],
    ['a', 'back', 1],
    ['a', 'healed', 2],
  ])
  expect(delta.unreadable.map(({ id }) => id)).toEqual(['damaged'])
  expect(delta.removed.map(({ id }) => id)).toEqual(['gone', 'removed'])
})

it('returns no removals with a complete delta', async () => {
  const row: StoredRow = ['a', 'x', '{}', 1, ...times]
  const { store } = start({ complete: true, rows: [row] }, { removed: [['a', 'x']] })
  const delta = await store.write(0, () => Promise.resolve([{ op: 'remove', kind: 'a', id: 'x' }]))
  expect(delta).toMatchObject({ complete: true, changed: [], removed: [] })
})

it('refuses writes immediately during a reported outage, but not reads', async () => {
  const { store, written, events } = start()
  const outage = new DatabaseUnavailable('the database is away', undefined)
  const plan = () => Promise.resolve(undefined)
  events?.unavailable(outage)
  await store.write(0, plan)
  store.watch({ onChange: () => undefined, onLost: () => undefined })
  events?.generation(7)
  const planning = Promise.withResolvers<undefined>()
  const running = store.write(0, () => planning.promise)
  await vi.advanceTimersByTimeAsync(0)
  const waiting = expect(store.write(0, plan)).rejects.toBe(outage)
  events?.unavailable(outage)
  await waiting
  await expect(store.write(0, plan)).rejects.toBe(outage)
  planning.resolve(undefined)
  await running
  expect((await store.read(undefined)).generation).toBe(7)
  events?.generation(7)
  await store.write(0, plan)
  expect(written).toHaveLength(3)
})
