import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createCollapsed } from '../../src/ledger/collapse.ts'
import type { LedgerEntry } from '../../src/ledger/entry.ts'
import { type QueryDatabase, QueryLate } from '../../src/ledger/query/database/database.ts'
import { wrap } from '../../src/ledger/query/database/sql.ts'
import { createOperations, type LedgerOperations } from '../../src/ledger/query/operations.ts'
import type { FilterField } from '../../src/ledger/query/search/fields.ts'
import type { Condition, LedgerFilter, Position } from '../../src/ledger/query/search/filter.ts'
import { planScan, readPage } from '../../src/ledger/query/search/scan.ts'
import { readGroups } from '../../src/ledger/query/summary/groups.ts'
import { measuresOfSums } from '../../src/ledger/query/summary/measures.ts'
import type { SummaryQuery } from '../../src/ledger/query/summary/summary.ts'
import type { LedgerStore } from '../../src/ledger/store/store.ts'
import { ledgerEntry } from '../fixtures/ledger.ts'
import { endAfter } from './cleanup.ts'

/** An empty database of one kind with the tables of the ledger. */
export type QueryTestDatabase = {
  readonly store: LedgerStore
  open(timeoutMs?: number): QueryDatabase
  /** A query that takes longer than a second. */
  readonly slowQuery: string
}

const hourMs = 3_600_000
const start = Date.UTC(2026, 10, 2)
const noFilter: LedgerFilter = { from: undefined, to: undefined, conditions: [], text: undefined }

let batches = 0

function write(store: LedgerStore, entries: readonly LedgerEntry[]) {
  batches += 1
  return store.write({ source: `queries-${batches}`, first: 1, number: 1, entries, sums: [] })
}

function idOf(number: number): string {
  return `01930000-0000-7000-8000-${String(number).padStart(12, '0')}`
}

const injections = [
  "'; drop table tollgate_requests; --",
  '" or 1=1 --',
  "x') or ('1'='1",
  '%',
  '_',
  '\\',
  '?',
  '$1',
  'Ünïcödé 🙂 \u202e',
  "=cmd|' /C calc'!A0",
]

const textFields = ['keyId', 'user', 'group', 'provider', 'requestModel', 'servedModel', 'errorCode'] as const

const value = fc.option(fc.constantFrom('a', 'b', 'A', 'abc', ...injections), { nil: undefined })

const entries = fc
  .array(
    fc.record({
      completedAt: fc.nat(6 * hourMs).map((offset) => start + offset - (offset % 1_000)),
      kind: fc.constantFrom('llm' as const, 'mcp' as const),
      status: fc.constantFrom(200, 429, 500),
      durationMs: fc.constantFrom(0, 50, 50.5, 99, 40_000),
      firstByteMs: fc.option(fc.nat(100), { nil: undefined }),
      streaming: fc.boolean(),
      costPicodollars: fc.option(fc.maxSafeNat(), { nil: undefined }),
      costStatus: fc.constantFrom('exact', 'estimated', 'unpriced', 'missing', undefined),
      ...Object.fromEntries(textFields.map((field) => [field, value])),
    }),
    { maxLength: 60 },
  )
  .map((list) => list.map((members, index) => ledgerEntry({ ...members, id: idOf(index) })))

const condition: fc.Arbitrary<Condition> = fc.oneof(
  fc.record({
    kind: fc.constant('values' as const),
    field: fc.constantFrom<FilterField>(...textFields),
    values: fc.array(fc.option(fc.constantFrom('a', 'b', 'abc', ...injections), { nil: null }), {
      minLength: 1,
      maxLength: 4,
    }),
  }),
  fc.record({
    kind: fc.constant('values' as const),
    field: fc.constant<FilterField>('status'),
    values: fc.array(fc.constantFrom(200, 429, 500), { minLength: 1, maxLength: 3 }),
  }),
  fc.record({
    kind: fc.constant('range' as const),
    field: fc.constantFrom<FilterField>('durationMs', 'firstByteMs'),
    min: fc.option(fc.nat(60), { nil: undefined }),
    max: fc.option(fc.nat(100), { nil: undefined }),
  }),
  fc.record({
    kind: fc.constant('contains' as const),
    field: fc.constantFrom<FilterField>(...textFields),
    text: fc.constantFrom('B', 'ab', '%', '🙂', 'drop'),
  }),
)

const filters: fc.Arbitrary<LedgerFilter> = fc.record({
  from: fc.option(
    fc.nat(6).map((hours) => start + hours * hourMs),
    { nil: undefined },
  ),
  to: fc.option(
    fc.nat(6).map((hours) => start + hours * hourMs),
    { nil: undefined },
  ),
  conditions: fc.array(condition, { maxLength: 3 }),
  text: fc.option(fc.constantFrom('A', 'ÜN', 'calc', 'completions'), { nil: undefined }),
})

function lower(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

function contains(text: unknown, part: string): boolean {
  return typeof text === 'string' && lower(text).includes(lower(part))
}

function meets(entry: LedgerEntry, wanted: Condition): boolean {
  const actual: unknown = entry[wanted.field as keyof LedgerEntry]
  switch (wanted.kind) {
    case 'values':
      return wanted.values.some((one) => one === (actual ?? null))
    case 'range': {
      const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = wanted
      return typeof actual === 'number' && actual >= min && actual <= max
    }
    case 'contains':
      return contains(actual, wanted.text)
  }
}

/** The filter over a list, without a database. */
function select(all: readonly LedgerEntry[], { from, to, conditions, text }: LedgerFilter): LedgerEntry[] {
  return all.filter(
    (entry) =>
      (from === undefined || entry.completedAt >= from) &&
      (to === undefined || entry.completedAt < to) &&
      conditions.every((wanted) => meets(entry, wanted)) &&
      (text === undefined ||
        [
          entry.path,
          entry.requestModel,
          entry.servedModel,
          entry.keyName,
          entry.user,
          entry.errorCode,
          entry.refusedBy,
          entry.mcpTarget,
          entry.mcpItem,
        ].some((one) => contains(one, text))),
  )
}

function newestFirst(one: LedgerEntry, other: LedgerEntry): number {
  if (one.completedAt !== other.completedAt) return other.completedAt - one.completedAt
  return one.id < other.id ? 1 : -1
}

async function searchAll(operations: LedgerOperations, filter: LedgerFilter, limit: number) {
  const found: LedgerEntry[] = []
  let after: Position | undefined
  do {
    const page = await operations.search({ filter, after, limit })
    found.push(...page.requests.map(({ entry }) => entry))
    after = page.next
  } while (after !== undefined)
  return found
}

async function exportAll(
  operations: LedgerOperations,
  query: Parameters<LedgerOperations['exportPage']>[0]['query'],
) {
  let csv = ''
  let position: Parameters<LedgerOperations['exportPage']>[0]['position']
  do {
    const page = await operations.exportPage({ query, position })
    csv += page.csv
    position = page.next
  } while (position !== undefined)
  return csv
}

/** Queries return the same on every database. */
export function describeQueries(name: string, createDatabase: () => Promise<QueryTestDatabase>): void {
  async function begin() {
    const database = await createDatabase()
    const open = (timeoutMs?: number) => {
      const opened = database.open(timeoutMs)
      endAfter('test', () => opened.close())
      return opened
    }
    const queries = open()
    return { ...database, open, queries, operations: createOperations(queries) }
  }

  describe(`${name}: search`, () => {
    it('finds the requests of a filter over a list, in pages of any size', async () => {
      const { store, operations } = await begin()
      let prefix = 0
      await fc.assert(
        fc.asyncProperty(entries, filters, fc.integer({ min: 1, max: 7 }), async (list, filter, limit) => {
          // Rows of earlier runs have another route.
          prefix += 1
          const route = `run-${prefix}`
          const own = list.map((entry) => ({
            ...entry,
            route,
            id: `${entry.id.slice(0, 24)}${prefix}-${entry.id}`,
          }))
          await write(store, own)
          const isOwn: Condition = { kind: 'values', field: 'route', values: [route] }
          const found = await searchAll(
            operations,
            { ...filter, conditions: [...filter.conditions, isOwn] },
            limit,
          )
          expect(found.map(({ id }) => id)).toEqual(
            select(own, filter)
              .sort(newestFirst)
              .map(({ id }) => id),
          )
        }),
        { numRuns: 60 },
      )
    })

    it('returns each request once while others are written', async () => {
      const { store, operations } = await begin()
      const first = Array.from({ length: 100 }, (_, index) =>
        ledgerEntry({ id: idOf(index), completedAt: start + (index % 7) }),
      )
      await write(store, first)
      const seen: string[] = []
      let after: Position | undefined
      let next = first.length
      do {
        const page = await operations.search({ filter: noFilter, after, limit: 9 })
        seen.push(...page.requests.map(({ entry }) => entry.id))
        after = page.next
        const added = Array.from({ length: 5 }, () => {
          next += 1
          return ledgerEntry({ id: idOf(next), completedAt: start + (next % 11) })
        })
        await write(store, added)
      } while (after !== undefined && seen.length < 2_000)
      expect(new Set(seen).size).toBe(seen.length)
      const known = new Set(seen)
      expect(first.filter(({ id }) => !known.has(id))).toEqual([])
    })

    it('continues a scan behind its limit', async () => {
      const { store, queries } = await begin()
      const list = Array.from({ length: 50 }, (_, index) =>
        ledgerEntry({ id: idOf(index), completedAt: start + index, path: index % 20 === 0 ? '/rare' : '/x' }),
      )
      await write(store, list)
      const found: string[] = []
      let pages = 0
      let after: Position | undefined
      do {
        const filter: LedgerFilter = { ...noFilter, text: 'rare' }
        const page = await queries.use(async (run) => {
          const options = { filter, after, order: 'newest', columns: [], dialect: queries.dialect } as const
          return await readPage(run, await planScan(run, options), 10, 8)
        })
        found.push(...page.positions.map(({ id }) => id))
        after = page.next
        pages += 1
      } while (after !== undefined)
      expect(found).toEqual([idOf(40), idOf(20), idOf(0)])
      expect(pages).toBe(7)
    })

    it('does not execute texts of filters', async () => {
      const { store, operations } = await begin()
      await write(store, [ledgerEntry({ id: idOf(1) })])
      for (const text of injections) {
        for (const field of [
          'id',
          'route',
          'path',
          'guards',
          'traceId',
          'mcpItem',
          'upstreamRequestId',
        ] as const) {
          const conditions: Condition[] = [{ kind: 'values', field, values: [text, null] }]
          await operations.search({ filter: { ...noFilter, conditions, text }, after: undefined, limit: 5 })
        }
        const after = { completedAt: Number.MAX_SAFE_INTEGER, id: text }
        expect((await operations.search({ filter: noFilter, after, limit: 5 })).requests).toHaveLength(1)
        expect(await operations.readRequest(text)).toBeUndefined()
      }
      expect(await operations.readRequest(idOf(1))).toMatchObject({ entry: { id: idOf(1) } })
    })

    it('accepts 1,000 values and the longest ranges', async () => {
      const { store, operations } = await begin()
      await write(store, [ledgerEntry({ id: idOf(1), keyId: 'v7', client: 'v8' })])
      const values = Array.from({ length: 500 }, (_, index) => `v${index}`)
      const filter: LedgerFilter = {
        from: 0,
        to: Number.MAX_SAFE_INTEGER,
        conditions: [
          { kind: 'values', field: 'keyId', values },
          { kind: 'values', field: 'client', values },
        ],
        text: undefined,
      }
      expect((await operations.search({ filter, after: undefined, limit: 500 })).requests).toHaveLength(1)
    })

    it('returns explanation and payload of a request', async () => {
      const { store, operations } = await begin()
      const details = { explanation: '{"a":1}', request: 'prompt', response: undefined }
      await write(store, [ledgerEntry({ id: idOf(1), details }), ledgerEntry({ id: idOf(2) })])
      expect(await operations.readRequest(idOf(1))).toMatchObject({
        explanation: '{"a":1}',
        payload: { request: 'prompt', response: undefined },
        hasPayload: true,
      })
      expect(await operations.readRequest(idOf(2))).toMatchObject({ payload: undefined })
    })

    it('returns the last use of keys', async () => {
      const { store, operations } = await begin()
      await write(store, [
        ledgerEntry({ id: idOf(1), keyId: 'a', completedAt: start }),
        ledgerEntry({ id: idOf(2), keyId: 'a', completedAt: start + 5 }),
      ])
      expect(await operations.readKeysUsed(['a', 'b', "'"])).toEqual(new Map([['a', start + 5]]))
    })
  })

  describe(`${name}: summaries`, () => {
    const groupings: FilterField[][] = [[], ['servedModel'], ['keyId', 'status']]

    it.each([
      { source: 'requests', bucketMs: 600_000 },
      { source: 'hours', bucketMs: hourMs },
      { source: 'days', bucketMs: 24 * hourMs },
    ])('from $source have the sums of a filter over a list', async ({ source, bucketMs }) => {
      const { store, operations } = await begin()
      const [list = []] = fc.sample(entries, { numRuns: 1, seed: 7 })
      const more = [...list, ...list.map((entry) => ({ ...entry, id: `${entry.id}-2`, user: 'other' }))]
      await write(store, more)
      const conditions: Condition[] = [{ kind: 'values', field: 'status', values: [200, 500] }]
      const filter = { from: start, to: start + 24 * hourMs, conditions, text: undefined }
      for (const groupBy of groupings) {
        const query: SummaryQuery = { filter, groupBy, orderBy: 'requests', bucketCount: 96, bucketMs }
        const summary = await operations.summarize(query)
        expect(summary).toMatchObject({ source, bucketMs, coveredFrom: undefined })
        const rows = select(more, filter)
        const keyOf = (entry: LedgerEntry) => groupBy.map((field) => entry[field as keyof LedgerEntry] ?? '')
        const groups = Map.groupBy(rows, (entry) => JSON.stringify(keyOf(entry)))
        const buckets = Map.groupBy(rows, (entry) =>
          JSON.stringify([Math.floor(entry.completedAt / bucketMs) * bucketMs, keyOf(entry)]),
        )
        const expected = (grouped: Map<string, LedgerEntry[]>) =>
          new Map([...grouped].map(([key, same]) => [key, sumsOf(same)]))
        expect(
          new Map(summary.groups.map((group) => [JSON.stringify(group.values), group.measures])),
        ).toEqual(expected(groups))
        expect(
          new Map(
            summary.buckets.map(({ start: at, values, measures }) => [
              JSON.stringify([at, values]),
              measures,
            ]),
          ),
        ).toEqual(expected(buckets))
      }
    })

    it('reads sums if the server selects the buckets of a long range', async () => {
      const { store, operations } = await begin()
      await write(store, [ledgerEntry({ id: idOf(1), completedAt: start + hourMs / 2 })])
      const summarize = (days: number, groupBy: FilterField[]) =>
        operations.summarize({
          filter: { from: start, to: start + days * 24 * hourMs, conditions: [], text: undefined },
          groupBy,
          orderBy: 'requests',
          bucketCount: 96,
          bucketMs: undefined,
        })
      expect(await summarize(1, ['keyId'])).toMatchObject({
        source: 'requests',
        bucketMs: 900_000,
        keyNames: new Map([['key-1', 'alice']]),
      })
      expect(await summarize(7, [])).toMatchObject({ source: 'hours', bucketMs: 2 * hourMs })
      expect(await summarize(30, [])).toMatchObject({ source: 'days', bucketMs: 24 * hourMs })
      expect(await summarize(300, [])).toMatchObject({ source: 'days', bucketMs: 7 * 24 * hourMs })
      expect(await summarize(300, ['requestModel'])).toMatchObject({ source: 'requests' })
    })

    it('sums up the groups beyond the limit', async () => {
      const { store, operations, queries } = await begin()
      const list = Array.from({ length: 150 }, (_, index) =>
        ledgerEntry({
          id: idOf(index),
          completedAt: start + (index % 2) * hourMs,
          keyId: `key-${Math.min(index, 120)}`,
          costPicodollars: index * 2_000_000 + 1,
        }),
      )
      await write(store, list)
      const { groups, buckets } = await operations.summarize({
        filter: { from: start, to: start + 2 * hourMs, conditions: [], text: undefined },
        groupBy: ['keyId'],
        orderBy: 'cost',
        bucketCount: 96,
        bucketMs: hourMs,
      })
      const expensive = [120, ...Array.from({ length: 99 }, (_, index) => 119 - index)].map((key) => [
        `key-${key}`,
      ])
      expect(groups.slice(0, -1).map(({ values }) => values)).toEqual(expensive)
      expect(groups[0]).toMatchObject({ values: ['key-120'], measures: { requests: 30 } })
      expect(groups.at(-1)).toMatchObject({ values: undefined, measures: { requests: 21 } })
      const total = list.reduce((sum, { costPicodollars = 0 }) => sum + BigInt(costPicodollars), 0n)
      for (const parts of [groups, buckets])
        expect(parts.reduce((sum, { measures }) => sum + measures.costPicodollars, 0n)).toBe(total)
      const statement = {
        rows: (
          selected: string,
          conditions: readonly { text: string; values: readonly (string | number | null)[] }[],
        ) =>
          wrap(`select ${selected} from tollgate_usage_hours where 1 = 1`, {
            text: conditions.map(({ text }) => ` and ${text}`).join(''),
            values: conditions.flatMap(({ values }) => values),
          }),
        groups: ['key_id'],
        bucket: 'start',
        measures: measuresOfSums,
        orderBy: 'cost' as const,
      }
      const few = await queries.use((run) => readGroups(run, statement, 10))
      expect(few.groups.slice(0, -1).map(({ values }) => values)).toEqual(expensive)
      expect(few.groups).toHaveLength(101)
      expect(few.groups.reduce((sum, { measures }) => sum + measures.requests, 0)).toBe(150)
      expect(few.buckets.reduce((sum, { measures }) => sum + measures.costPicodollars, 0n)).toBe(total)
    })

    it('offers recent values for filters', async () => {
      const { store, operations } = await begin()
      await write(store, [
        ledgerEntry({ id: idOf(1), completedAt: start, status: 429, errorCode: 'rate_limited', user: 'b' }),
        ledgerEntry({ id: idOf(2), completedAt: start + 1, user: 'a', servedModel: undefined }),
      ])
      expect(await operations.readOptions({ from: start, to: start + hourMs })).toMatchObject({
        user: ['a', 'b'],
        status: ['200', '429'],
        errorCode: ['rate_limited'],
        servedModel: ['gpt-1'],
        requestModel: ['gpt'],
      })
    })
  })

  describe(`${name}: exports`, () => {
    it('have a line for each period and group, with exact costs', async () => {
      const { store, operations } = await begin()
      const day = 24 * hourMs
      await write(store, [
        ledgerEntry({ id: idOf(1), completedAt: start, keyId: 'a', keyName: '=1+1', costPicodollars: 1 }),
        ledgerEntry({
          id: idOf(2),
          completedAt: start + 1,
          keyId: 'a',
          keyName: '=1+1',
          costPicodollars: 2e12,
        }),
        ledgerEntry({ id: idOf(3), completedAt: start + day, keyId: 'b"', keyName: undefined, status: 500 }),
        ledgerEntry({
          id: idOf(4),
          completedAt: start + 40 * day,
          keyId: undefined,
          costPicodollars: undefined,
        }),
      ])
      const filter = { from: start, to: start + 60 * day, conditions: [], text: undefined }
      const csv = await exportAll(operations, {
        kind: 'usage',
        filter,
        groupBy: ['keyId'],
        granularity: 'day',
      })
      expect(csv.split('\r\n')).toEqual([
        'period,keyId,keyName,requests,errors,inputTokens,cachedInputTokens,cacheCreationInputTokens,outputTokens,reasoningTokens,totalTokens,estimatedRequests,unpricedRequests,costUsd',
        `2026-11-02,a,'=1+1,2,0,20,8,0,40,10,60,0,0,2.000000000001`,
        `2026-11-03,"b""",,1,1,10,4,0,20,5,30,0,0,0.000123456789`,
        '2026-12-12,,,1,0,10,4,0,20,5,30,0,0,0',
        '',
      ])
      const months = await exportAll(operations, { kind: 'usage', filter, groupBy: [], granularity: 'month' })
      expect(months.split('\r\n').map((line) => line.slice(0, 10))).toEqual([
        'period,req',
        '2026-11,3,',
        '2026-12,1,',
        '',
      ])
    })

    it('have a line for each request, by time', async () => {
      const { store, operations } = await begin()
      const list = Array.from({ length: 1_200 }, (_, index) =>
        ledgerEntry({
          id: idOf(index),
          completedAt: start + ((index * 7919) % 600),
          user: '@sum(1)',
          path: 'a,"b"\n',
        }),
      )
      await write(store, list)
      const filter = { from: start, to: start + hourMs, conditions: [], text: undefined }
      const csv = await exportAll(operations, { kind: 'requests', filter })
      const ids = [...csv.matchAll(/^(01930000-[0-9a-f-]+),/gm)].map(([, id]) => id)
      expect(ids).toEqual(
        [...list]
          .sort(newestFirst)
          .reverse()
          .map(({ id }) => id),
      )
      expect(csv).toContain(`,"a,""b""\n",`)
      expect(csv).toContain(",'@sum(1),")
    })

    it('continue inside of a period with many groups', async () => {
      const { store, operations } = await begin()
      const list = Array.from({ length: 2_500 }, (_, index) =>
        ledgerEntry({ id: idOf(index), completedAt: start, keyId: `key-${index}`, costPicodollars: 1 }),
      )
      await write(store, list)
      const filter = { from: start, to: start + 24 * hourMs, conditions: [], text: undefined }
      for (const granularity of ['hour', 'day', 'month'] as const) {
        const csv = await exportAll(operations, {
          kind: 'usage',
          filter,
          groupBy: ['keyId', 'status'],
          granularity,
        })
        const lines = csv.split('\r\n').slice(1, -1)
        expect(new Set(lines.map((line) => line.split(',')[1])).size).toBe(2_500)
        expect(lines).toHaveLength(2_500)
      }
    })
  })

  it(`${name}: ends queries after their time limit`, async () => {
    const { open, slowQuery } = await begin()
    const queries = open(200)
    await expect(queries.use((run) => run({ text: slowQuery, values: [] }))).rejects.toThrow(QueryLate)
    expect(await queries.use((run) => run({ text: 'select 1', values: [] }))).toEqual([[1]])
  })

  it(`${name}: cannot write`, async () => {
    const { open } = await begin()
    const queries = open()
    const text = "delete from tollgate_requests where id = 'x'"
    await expect(queries.use((run) => run({ text, values: [] }))).rejects.toThrow(/read-?only|readonly/)
  })
}

/** Measures of entries, by the sums of the writer. */
function sumsOf(list: readonly LedgerEntry[]) {
  const collapsed = createCollapsed(1, 1)
  for (const entry of list)
    collapsed.add({
      ...entry,
      completedAt: 0,
      kind: 'llm',
      keyId: '',
      user: '',
      group: '',
      route: '',
      provider: '',
      servedModel: '',
      mcpTarget: '',
      status: 0,
    })
  const [sum] = collapsed.sums()
  if (sum === undefined) throw new Error('no entries')
  return { ...sum.counts, errors: list.filter(({ status }) => status >= 400).length }
}
