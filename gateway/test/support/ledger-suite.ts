import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DatabaseUnavailable } from '../../src/database/database-unavailable.ts'
import type { BudgetCharge, LedgerEntry } from '../../src/ledger/entry.ts'
import { decodeRequest, requestColumnList } from '../../src/ledger/store/columns.ts'
import type { LedgerBatch, LedgerStore } from '../../src/ledger/store/store.ts'
import { costOf } from '../../src/ledger/store/usage-columns.ts'
import type { UsageSum } from '../../src/ledger/usage-sum.ts'
import { dayMs, hourMs } from '../../src/lib/duration.ts'
import { ledgerEntry } from '../fixtures/ledger.ts'
import { endAfter } from './cleanup.ts'

type Rows = readonly (readonly unknown[])[]

/** An empty database of one kind. */
export type LedgerTestDatabase = {
  /** A store on it; several of them are as several replicas. */
  open(): Promise<LedgerStore>
  /** Runs SQL past the stores. */
  sql(text: string): Promise<Rows>
}

const at = Date.UTC(2026, 4, 6, 10, 30)
let batches = 0

export function entryAt(id: string, completedAt: number, members: Partial<LedgerEntry> = {}): LedgerEntry {
  return ledgerEntry({ id, completedAt, ...members })
}

/** A charge to the first hour after the Unix epoch. */
export function budgetCharge(members: Partial<BudgetCharge> = {}): BudgetCharge {
  return { budget: 'llm/team', value: '', windowStart: 0, windowEnd: hourMs, amount: 1, ...members }
}

function batchOf(members: Partial<LedgerBatch>): LedgerBatch {
  batches += 1
  return { source: `source-${batches}`, first: 1, number: 1, entries: [], sums: [], ...members }
}

/** The guarantees of every store of the ledger. */
export function describeLedger(name: string, createDatabase: () => Promise<LedgerTestDatabase>): void {
  const start = async () => {
    const database = await createDatabase()
    const open = async () => {
      const store = await database.open()
      endAfter('test', () => store.close())
      await store.open()
      return store
    }
    return { ...database, open, store: await open() }
  }

  describe(`${name}: batches`, () => {
    it('stores every column of an entry', async () => {
      const { store, sql } = await start()
      const full = entryAt('b', at, {
        kind: 'mcp',
        errorCode: 'tool_not_found',
        refusedBy: 'authorization',
        streaming: true,
        tokensEstimated: true,
        incomplete: true,
        durationMs: 12.5,
        costPicodollars: Number.MAX_SAFE_INTEGER,
        mcpMethod: 'tools/call',
        mcpTarget: 'files',
        mcpItem: 'read "it" \\ {now}\n',
        guards: '[{"guard":"a"}]',
        limits: '[]',
        upstreamRequestId: 'r',
        charges: [budgetCharge()],
      })
      const empty = entryAt('a', at, {
        tokens: undefined,
        costPicodollars: undefined,
        firstByteMs: undefined,
        keyId: undefined,
        keyName: '',
        traceId: undefined,
      })
      const details = { explanation: '{"rules":[]}', request: 'hello', response: 'good "day"' }
      await store.write(batchOf({ entries: [{ ...full, details }, empty] }))
      const rows = await sql(`select ${requestColumnList} from tollgate_requests order by id`)
      expect(rows.map(decodeRequest)).toEqual([
        { entry: empty, hasPayload: false, hasExplanation: false },
        { entry: full, hasPayload: true, hasExplanation: true },
      ])
      expect(await sql('select id, explanation, request, response from tollgate_request_details')).toEqual([
        ['b', details.explanation, details.request, details.response],
      ])
    })

    it('counts a batch once, also written again by another store at the same time', async () => {
      const { store, open, sql } = await start()
      const other = await open()
      const batch = batchOf({ entries: [entryAt('a', at, { charges: [budgetCharge({ amount: 5 })] })] })
      const results = await Promise.all([store.write(batch), other.write(batch), store.write(batch)])
      expect(results.map(({ kind }) => kind).sort()).toEqual(['duplicate', 'duplicate', 'written'])
      expect(await store.write({ ...batch, first: 0, number: 0 })).toEqual({ kind: 'duplicate' })
      expect(await numbersOf(sql, 'select requests from tollgate_usage_hours')).toEqual([1])
      expect((await store.budgetTotals(undefined, 0)).totals).toEqual([
        { budget: 'llm/team', value: '', windowStart: 0, windowEnd: hourMs, used: 5n },
      ])
    })

    it('settles a request once over all stores', async () => {
      const { store, open, sql } = await start()
      const other = await open()
      const tokens = {
        input: -5,
        output: -20,
        total: -25,
        cachedInput: 0,
        cacheCreationInput: 0,
        reasoning: 0,
      }
      const settling = (id: string) =>
        batchOf({
          entries: [
            entryAt(id, at, {
              ...{ settles: 'r', tokens, costPicodollars: -2_000_001 },
              charges: [budgetCharge({ amount: -25 })],
            }),
          ],
        })
      await store.write(batchOf({ entries: [entryAt('r', at, { charges: [budgetCharge({ amount: 30 })] })] }))
      await Promise.all([store.write(settling('a')), other.write(settling('b'))])
      await store.write(batchOf({ entries: ['c', 'd'].flatMap((id) => settling(id).entries) }))
      expect(await numbersOf(sql, 'select sum(requests) from tollgate_usage_hours')).toEqual([5])
      expect(await numbersOf(sql, 'select sum(total_tokens) from tollgate_usage_hours')).toEqual([5])
      const rows = await sql(`select ${requestColumnList} from tollgate_requests`)
      const settled = rows.map(decodeRequest).filter(({ entry }) => entry.settles !== undefined)
      expect(settled.map(({ entry }) => [entry.settles, entry.tokens, entry.costPicodollars])).toEqual([
        ['r', tokens, -2_000_001],
      ])
      expect((await store.budgetTotals(undefined, 0)).totals).toMatchObject([{ used: 5n }])
    })

    it('stores nothing of a batch that fails', async () => {
      const { store, sql } = await start()
      await sql('alter table tollgate_budgets rename to hidden')
      const batch = batchOf({ entries: [entryAt('a', at, { charges: [budgetCharge()] })] })
      await expect(store.write(batch)).rejects.toThrow(DatabaseUnavailable)
      await sql('alter table hidden rename to tollgate_budgets')
      expect(await sql('select * from tollgate_requests')).toEqual([])
      expect(await store.write(batch)).toMatchObject({ kind: 'written' })
      expect(await numbersOf(sql, 'select requests from tollgate_usage_days')).toEqual([1])
    })

    it('accepts an id that exists, and counts its amounts', async () => {
      const { store, sql } = await start()
      await store.write(batchOf({ entries: [entryAt('a', at), entryAt('a', at)] }))
      await store.write(batchOf({ entries: [entryAt('a', at)] }))
      expect(await sql('select id from tollgate_requests')).toEqual([['a']])
      expect(await numbersOf(sql, 'select requests from tollgate_usage_hours')).toEqual([3])
    })

    it('continues numbers of a source after a restart', async () => {
      const { store, open, sql } = await start()
      const batch = batchOf({ first: 5, number: 7, entries: [entryAt('a', at)] })
      await store.write(batch)
      await store.close()
      const next = await open()
      expect(await next.write(batch)).toEqual({ kind: 'duplicate' })
      expect(await next.write({ ...batch, number: 9 })).toEqual({ kind: 'partial', last: 7 })
      expect(await next.write({ ...batch, first: 8, number: 9 })).toMatchObject({ kind: 'written' })
      expect(await numbersOf(sql, 'select requests from tollgate_usage_hours')).toEqual([2])
    })

    it.each<[string, Partial<LedgerEntry>]>([
      ['NUL', { user: 'a\0b', keyId: '\0', guards: '["\0"]' }],
      ['lone surrogates', { servedModel: 'x\ud800', route: '\udfff', client: '\ud800' }],
      [
        'long texts',
        { keyName: '\u{1F600}'.repeat(5000), path: `/${'x'.repeat(100_000)}`, group: 'g'.repeat(9e5) },
      ],
      ['numbers that are not integers', { status: 200.5, attempts: Number.NaN, startedAt: 1e300 }],
      [
        'tokens beyond 53 bits',
        {
          tokens: { ...noTokens, input: 1e300, output: 1.5, total: Number.NaN },
          durationMs: Number.POSITIVE_INFINITY,
        },
      ],
      ['quotes and backslashes', { user: '"\\', group: "');--", provider: '{NULL}', requestModel: 'null' }],
    ])('stores an entry with %s', async (_, members) => {
      const { store, sql } = await start()
      const charges = [budgetCharge({ value: String(members.user ?? ''), amount: 3 })]
      const details = { request: 'a\0\ud800b' }
      const entries = [entryAt('a', at, { ...members, charges, details }), entryAt('b', at)]
      expect(await store.write(batchOf({ entries }))).toMatchObject({
        kind: 'written',
        totals: [{ used: 3n }],
      })
      expect(await numbersOf(sql, 'select sum(requests) from tollgate_usage_hours')).toEqual([2])
      expect(await sql('select request from tollgate_request_details')).toEqual([['a\ufffd\ufffdb']])
    })

    it('stores an entry of an earlier version without optional members', async () => {
      const { store, sql } = await start()
      const old = {
        id: 'a',
        kind: 'llm',
        startedAt: at,
        completedAt: at,
        durationMs: 1,
        status: 200,
        charges: [],
      }
      await store.write(batchOf({ entries: [{ ...old, details: {} } as unknown as LedgerEntry] }))
      expect(await sql('select route, key_id, method from tollgate_requests')).toEqual([['', null, '']])
    })

    it('reports the time of the last use of a key', async () => {
      const { store, sql } = await start()
      await store.write(batchOf({ entries: [entryAt('a', at), entryAt('b', at - 5)] }))
      await store.write(batchOf({ entries: [entryAt('c', at - 9), entryAt('d', at, { keyId: 'z' })] }))
      const rows = await sql('select key_id, last_used_at from tollgate_keys_used order by key_id')
      expect(rows.map(([id, used]) => [id, Number(used)])).toEqual([
        ['key-1', at],
        ['z', at],
      ])
    })

    it('sums amounts beyond 63 bits', async () => {
      const { store, sql } = await start()
      const largest = Number.MAX_SAFE_INTEGER
      const charges = [budgetCharge({ amount: largest })]
      const entries = Array.from({ length: 1100 }, (_, index) =>
        entryAt(`${index}`, at, { costPicodollars: largest, charges }),
      )
      await store.write(batchOf({ entries }))
      await store.write(batchOf({ entries: entries.map((entry) => ({ ...entry, id: `b${entry.id}` })) }))
      const expected = 2200n * BigInt(largest)
      expect((await store.budgetTotals(undefined, 0)).totals[0]?.used).toBe(expected)
      expect(await costIn(sql, 'tollgate_usage_days')).toBe(expected)
    })
  })

  describe(`${name}: totals of budgets`, () => {
    it('returns current windows, then those that changed', async () => {
      const { store } = await start()
      const charge = (members: Partial<BudgetCharge>) =>
        batchOf({ entries: [entryAt('', at, { charges: [budgetCharge(members)] })] })
      await store.write(charge({ value: 'a', amount: 1 }))
      await store.write(charge({ value: 'b', amount: 2, windowEnd: 2 * hourMs }))
      const { totals, since } = await store.budgetTotals(undefined, hourMs)
      expect(totals.map(({ value, used }) => [value, used])).toEqual([['b', 2n]])
      await store.write(charge({ value: 'c', amount: 4 }))
      const next = await store.budgetTotals(since, 0)
      expect(next.totals.map(({ value, used }) => [value, used])).toEqual([['c', 4n]])
      expect((await store.budgetTotals(next.since, 0)).totals).toEqual([])
    })

    it('returns all windows if the database has an earlier state', async () => {
      const { store } = await start()
      await store.write(batchOf({ entries: [entryAt('a', at, { charges: [budgetCharge()] })] }))
      expect((await store.budgetTotals(Number.MAX_SAFE_INTEGER - 1, 0)).totals).toHaveLength(1)
    })

    it('returns every change while several stores write', async () => {
      const { store, open } = await start()
      const reader = await open()
      const writers = [store, await open(), await open()]
      const known = new Map<string, bigint>()
      let since: number | undefined
      let isDone = false
      const poll = async () => {
        const result = await reader.budgetTotals(since, 0)
        since = result.since
        for (const { value, used } of result.totals) known.set(value, used)
      }
      const polling = (async () => {
        while (!isDone) {
          await poll()
          await delay(1)
        }
      })()
      await Promise.all(
        writers.map(async (writer, index) => {
          for (let number = 1; number <= 30; number += 1) {
            const values = [`${(number * 7 + index) % 11}`, `${number % 3}`, 'all']
            const charges = values.map((value) => budgetCharge({ value, amount: 1 }))
            const entries = [entryAt(`${index}-${number}`, at, { charges })]
            await writer.write({ source: `concurrent-${index}`, first: number, number, entries, sums: [] })
          }
        }),
      )
      isDone = true
      await polling
      await poll()
      const all = await reader.budgetTotals(undefined, 0)
      expect(known).toEqual(new Map(all.totals.map(({ value, used }) => [value, used])))
      expect(known.get('all')).toBe(90n)
    })
  })

  describe(`${name}: retention`, () => {
    it('deletes requests with their details, the oldest first, in steps', async () => {
      const { store, sql } = await start()
      const entries = Array.from({ length: 25 }, (_, index) =>
        entryAt(`${index}`.padStart(2, '0'), at + index, { details: { request: 'x' } }),
      )
      await store.write(batchOf({ entries }))
      expect(await store.pruneRequests(at + 20, 15)).toBe(15)
      expect((await sql('select min(id) from tollgate_requests'))[0]).toEqual(['15'])
      expect(await store.pruneRequests(at + 20, 15)).toBe(5)
      expect(await store.pruneRequests(at + 20, 15)).toBe(0)
      expect(await numbersOf(sql, 'select count(*) from tollgate_request_details')).toEqual([5])
      expect(await numbersOf(sql, 'select requests from tollgate_usage_hours')).toEqual([25])
    })

    it('deletes sums, windows, uses and numbers that ended, in steps', async () => {
      const { store, sql } = await start()
      const day = Math.floor(at / dayMs) * dayMs
      const charges = [budgetCharge({ windowStart: day, windowEnd: day + hourMs })]
      for (const time of [day, day + hourMs, day + dayMs])
        await store.write(batchOf({ entries: [entryAt(`${time}`, time, { charges, keyId: `${time}` })] }))
      expect(await store.pruneUsage(day + hourMs - 1, 100)).toBe(1)
      const hours = 'select start from tollgate_usage_hours order by start'
      expect(await numbersOf(sql, hours)).toEqual([day, day + hourMs, day + dayMs])
      expect(await store.pruneUsage(day + 2 * hourMs + 1, 3)).toBe(3)
      expect(await store.pruneUsage(day + 2 * hourMs + 1, 3)).toBe(1)
      expect(await numbersOf(sql, hours)).toEqual([day + dayMs])
      expect(await numbersOf(sql, 'select count(*) from tollgate_usage_days')).toEqual([3])
      expect(await numbersOf(sql, 'select count(*) from tollgate_budgets')).toEqual([0])
      expect(await numbersOf(sql, 'select count(*) from tollgate_ledger_sources')).toEqual([3])
    })
  })

  it(`${name}: sums equal the entries after retries, duplicates, restarts and concurrent sources`, async () => {
    const { open, store, sql } = await start()
    const expected = { requests: 0, tokens: 0, cost: 0n, used: 0n }
    let runs = 0
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(operation, { maxLength: 6 }), { maxLength: 3 }), async (sources) => {
        runs += 1
        const run = runs
        await Promise.all(
          sources.map(async (operations, index) => {
            let own = await open()
            let number = 0
            for (const { kind, entries, sums } of operations) {
              if (kind === 'restart') {
                await own.close()
                own = await open()
              }
              number += 1
              const batch = { source: `${run}-${index}`, first: number, number, entries, sums }
              const repeated = kind === 'twice' ? [own.write(batch), store.write(batch)] : [own.write(batch)]
              const results = await Promise.all(repeated)
              expect(results.filter((result) => result.kind === 'written')).toHaveLength(1)
              if (kind === 'late') expect(await own.write(batch)).toEqual({ kind: 'duplicate' })
              addTo(expected, batch)
            }
            await own.close()
          }),
        )
        for (const table of ['tollgate_usage_hours', 'tollgate_usage_days']) {
          const [row = []] = await sql(
            `select coalesce(sum(requests), 0), coalesce(sum(total_tokens), 0) from ${table}`,
          )
          expect(row.map(Number)).toEqual([expected.requests, expected.tokens])
          expect(await costIn(sql, table)).toBe(expected.cost)
        }
        const { totals } = await store.budgetTotals(undefined, 0)
        expect(totals.reduce((sum, { used }) => sum + used, 0n)).toBe(expected.used)
      }),
      { numRuns: 15 },
    )
  })
}

const noTokens = { input: 0, output: 0, total: 0, cachedInput: 0, cacheCreationInput: 0, reasoning: 0 }

const name = fc.constantFrom('', 'a', 'b', 'ä\0', '\ud800', 'x'.repeat(600))
const amount = fc.oneof(fc.nat(), fc.constantFrom(0, Number.MAX_SAFE_INTEGER))

const charge = fc.record({
  budget: fc.constantFrom('llm/a', 'key/1/b'),
  value: name,
  windowStart: fc.constantFrom(0, hourMs),
  windowEnd: fc.constantFrom(2 * hourMs, 3 * hourMs),
  amount,
})

const entry = fc
  .record({
    id: fc.uuid(),
    completedAt: fc.constantFrom(at, at + hourMs, at + dayMs),
    total: fc.nat(),
    costPicodollars: fc.option(amount, { nil: undefined }),
    keyId: name,
    servedModel: name,
    status: fc.constantFrom(200, 429),
    charges: fc.array(charge, { maxLength: 3 }),
  })
  .map(({ id, completedAt, total, ...members }) =>
    entryAt(id, completedAt, { ...members, tokens: { ...noTokens, total } }),
  )

const sum = fc
  .record({ total: fc.nat(), cost: fc.bigInt({ min: 0n, max: 2n ** 70n }), keyId: name, charge })
  .map(
    ({ total, cost, keyId, charge: added }): UsageSum => ({
      dimensions: {
        hour: Math.floor(at / hourMs) * hourMs,
        kind: 'llm',
        keyId,
        user: '',
        group: '',
        route: '',
        provider: '',
        model: '',
        mcpTarget: '',
        status: 200,
      },
      counts: {
        requests: 2,
        tokens: { ...noTokens, total },
        estimatedRequests: 0,
        unpricedRequests: 0,
        costPicodollars: cost,
        durationMs: 1,
        firstByteMs: 0,
        firstBytes: 0,
        durations: [2, 0, 0, 0, 0, 0, 0, 0, 0, 0],
      },
      charges: [added],
    }),
  )

const operation = fc.record({
  kind: fc.constantFrom('once', 'twice', 'late', 'restart'),
  entries: fc.array(entry, { maxLength: 8 }),
  sums: fc.array(sum, { maxLength: 2 }),
})

type Expected = { requests: number; tokens: number; cost: bigint; used: bigint }

function addTo(expected: Expected, { entries, sums }: Pick<LedgerBatch, 'entries' | 'sums'>): void {
  for (const { tokens, costPicodollars, charges } of entries) {
    expected.requests += 1
    expected.tokens += tokens?.total ?? 0
    expected.cost += BigInt(costPicodollars ?? 0)
    for (const added of charges) expected.used += BigInt(added.amount)
  }
  for (const { counts, charges } of sums) {
    expected.requests += counts.requests
    expected.tokens += counts.tokens.total
    expected.cost += counts.costPicodollars
    for (const added of charges) expected.used += BigInt(added.amount)
  }
}

async function numbersOf(sql: LedgerTestDatabase['sql'], text: string): Promise<number[]> {
  return (await sql(text)).map(([value]) => Number(value))
}

async function costIn(sql: LedgerTestDatabase['sql'], table: string): Promise<bigint> {
  const [row = []] = await sql(
    `select coalesce(sum(cost_microdollars), 0), coalesce(sum(cost_picodollars), 0) from ${table}`,
  )
  return costOf(row[0], row[1])
}
