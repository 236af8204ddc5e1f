import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { isPostgresUrl } from '../../src/database/url.ts'
import type { ExportPosition, ExportQuery } from '../../src/ledger/query/export/contents.ts'
import { createLedgerQueries, type LedgerQueries } from '../../src/ledger/query/query.ts'
import type { FilterField } from '../../src/ledger/query/search/fields.ts'
import type { Condition, LedgerFilter, Position } from '../../src/ledger/query/search/filter.ts'
import { fillLedger } from '../support/fill-ledger.ts'
import { firstTime, lastTime } from '../support/synthetic-ledger.ts'

/**
 * Queries over a month of requests and a year of sums: the slowest of each kind. `--url` of an empty database
 * selects one; default is SQLite in a temporary folder. `--rows` is the number of requests.
 */

const { values } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    rows: { type: 'string' },
    url: { type: 'string' },
    /** The database was filled by an earlier run. */
    filled: { type: 'boolean', default: false },
  },
})
const rows = Number(values.rows ?? (values.short ? 100_000 : 10_000_000))
const exported = Math.min(rows, 1_000_000)
const runs = 5

async function measure(name: string, limitMs: number, run: () => Promise<unknown>): Promise<void> {
  const times: number[] = []
  for (let index = 0; index < runs; index += 1) {
    const before = performance.now()
    await run()
    times.push(performance.now() - before)
  }
  const first = times[0] ?? 0
  const median = times.toSorted((one, other) => one - other)[Math.floor(runs / 2)] ?? 0
  const isSlow = median > limitMs
  if (isSlow) slow.push(name)
  process.stdout.write(
    `${name.padEnd(44)} first ${first.toFixed(1).padStart(7)} ms, median ${median.toFixed(1).padStart(7)} ms${isSlow ? ` (limit ${limitMs})` : ''}\n`,
  )
}

const slow: string[] = []

/** A frequent and a rare value of each indexed column. */
const searched: readonly [field: FilterField, ...found: (string | number)[]][] = [
  ['status', 200, 500],
  ['errorCode', 'rate_limited', 'rare_error'],
  ['route', 'llm', 'route-9'],
  ['listener', 'llm'],
  ['keyId', 'key-7', 'absent'],
  ['keyName', 'name-7'],
  ['user', 'user-42'],
  ['group', 'team-7'],
  ['client', '10.0.3.7'],
  ['provider', 'openai'],
  ['requestModel', 'model-3'],
  ['servedModel', 'served-3'],
  ['mcpTarget', 'target-3'],
  ['mcpItem', 'tool-3'],
  ['traceId', `${'0'.repeat(24)}${(rows - (rows % 10)).toString(16).padStart(8, '0')}`],
]

async function measureSearches(queries: LedgerQueries): Promise<void> {
  const all: LedgerFilter = { from: undefined, to: undefined, conditions: [], text: undefined }
  const search =
    (conditions: Condition[], more: Partial<LedgerFilter> = {}, after?: Position) =>
    () =>
      queries.search({ filter: { ...all, ...more, conditions }, after, limit: 100 })
  const middle = { completedAt: Math.round((firstTime + lastTime) / 2), id: '' }
  await measure('newest requests', 200, search([]))
  await measure('behind a cursor in the middle', 200, search([], {}, middle))
  await measure('behind a cursor, of a range', 200, search([], { from: firstTime, to: lastTime }, middle))
  for (const [field, ...found] of searched)
    for (const value of found)
      await measure(
        `${field} = ${String(value).slice(-12)}`,
        200,
        search([{ kind: 'values', field, values: [value] }]),
      )
  const statuses: Condition = { kind: 'values', field: 'status', values: [429, 500] }
  const team: Condition = { kind: 'values', field: 'group', values: ['team-7'] }
  await measure('status in (429, 500), of a team', 200, search([statuses, team]))
  await measure('of a team, in the middle', 200, search([team], {}, middle))
  const keys = Array.from({ length: 20 }, (_, index) => `key-${index}`)
  const tools: Condition = { kind: 'values', field: 'mcpItem', values: ['tool-3', 'tool-4'] }
  await measure(
    'of 20 keys and 2 tools, not found',
    1_000,
    search([{ kind: 'values', field: 'keyId', values: keys }, tools]),
  )
  await measure('text, found in the newest rows', 200, search([], { text: 'model-3' }))
  await measure('text, not found: 50,000 rows', 1_000, search([], { text: 'nowhere' }))
  await measure(
    'duration, not found: 50,000 rows',
    1_000,
    search([{ kind: 'range', field: 'durationMs', min: 1e9, max: undefined }]),
  )
}

async function measureSummaries(queries: LedgerQueries): Promise<void> {
  const dayMs = 86_400_000
  const summarize =
    (days: number, groupBy: FilterField[], conditions: Condition[] = []) =>
    () =>
      queries.summarize({
        filter: { from: lastTime - days * dayMs, to: lastTime, conditions, text: undefined },
        groupBy,
        orderBy: 'requests',
        bucketCount: 96,
        bucketMs: undefined,
      })
  const team: Condition = { kind: 'values', field: 'group', values: ['team-7'] }
  await measure('a day', 1_000, summarize(1, []))
  await measure('a week by model', 200, summarize(7, ['servedModel']))
  await measure('a month', 50, summarize(30, []))
  await measure('a month by model', 50, summarize(30, ['servedModel']))
  await measure('a month of a team by key', 50, summarize(30, ['keyId'], [team]))
  await measure('a month by key and model', 500, summarize(30, ['keyId', 'servedModel']))
  await measure('a year by group', 1_000, summarize(365, ['group']))
  await measure('values for filters', 50, () =>
    queries.readOptions({ from: lastTime - 30 * dayMs, to: lastTime }),
  )
}

async function measureExport(queries: LedgerQueries, query: ExportQuery, most: number): Promise<void> {
  const before = performance.now()
  const sizes: number[] = []
  let bytes = 0
  let lines = 0
  let position: ExportPosition | undefined
  do {
    const page = await queries.exportPage({ query, position })
    bytes += page.csv.length
    lines += page.csv.split('\n').length - 1
    position = page.next
    sizes.push(process.memoryUsage.rss() / 1024 ** 2)
  } while (position !== undefined && lines <= most)
  const seconds = (performance.now() - before) / 1_000
  const tenth = Math.max(1, Math.floor(sizes.length / 10))
  const early = Math.max(...sizes.slice(tenth, 2 * tenth))
  const late = Math.max(...sizes.slice(-tenth))
  process.stdout.write(
    `CSV of ${query.kind}: ${lines} lines, ${(bytes / 1024 ** 2).toFixed(0)} MiB in ${seconds.toFixed(1)} s; resident ${early.toFixed(0)} MiB after a tenth, ${late.toFixed(0)} MiB at the end\n`,
  )
  if (late > early * 1.3 + 30) throw new Error('memory grows with the export')
}

async function main(url: string): Promise<void> {
  const before = performance.now()
  if (!values.filled) await fillLedger(url, rows)
  process.stdout.write(`${rows} requests filled in ${((performance.now() - before) / 1_000).toFixed(0)} s\n`)
  const kind = isPostgresUrl(url) ? 'postgres' : 'sqlite'
  const silent = () => undefined
  const log = { debug: silent, info: silent, warn: console.warn, error: console.error, audit: silent }
  const queries = createLedgerQueries({ url, kind, maxConnections: 3, log })
  try {
    await measureSearches(queries)
    await measureSummaries(queries)
    const filter = { from: firstTime, to: lastTime, conditions: [], text: undefined }
    await measureExport(queries, { kind: 'requests', filter }, exported)
    const year = { ...filter, from: firstTime - 335 * 86_400_000 }
    await measureExport(
      queries,
      { kind: 'usage', filter: year, groupBy: ['keyId', 'servedModel'], granularity: 'month' },
      exported,
    )
  } finally {
    await queries.close()
  }
  if (slow.length > 0 && !values.short) throw new Error(`slower than the limit: ${slow.join(', ')}`)
}

const folder = mkdtempSync(join(tmpdir(), 'tollgate-ledger-queries-'))
try {
  await main(values.url ?? `sqlite://${join(folder, 'ledger.db')}`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
