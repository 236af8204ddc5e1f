import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LedgerEntry } from '../../src/ledger/entry.ts'
import { createLedgerStore } from '../../src/ledger/store/open.ts'
import type { LedgerStore } from '../../src/ledger/store/store.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { hourMs } from '../../src/lib/duration.ts'
import { startPostgresServer } from '../support/postgres-server.ts'

/**
 * Entries into the tables of both databases, as fast as possible: rows per second and CPU time of the writer
 * at each tenth. The last tenth sustains the target, and the totals of the budgets are exact.
 */

const short = process.argv.includes('--short')
const total = short ? 25_000 : 1_000_000
/** As the writer of a busy gateway. */
const batchRows = 2500
const targetRowsPerSecond = short ? 0 : 5000
const users = 2000

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-ledger-'))
  try {
    await measure('sqlite', `sqlite://${join(folder, 'ledger.db')}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  const parameters = { fsync: 'on', shared_buffers: '256MB', max_wal_size: '4GB' }
  const server = await startPostgresServer({ parameters })
  try {
    await measure('postgres', await server.createDatabase())
  } finally {
    await server.end()
  }
}

async function measure(name: string, url: string): Promise<void> {
  const store = await createLedgerStore({ url, field: 'url', maxConnections: 1 }, systemClock)
  try {
    await store.open()
    let charged = 0n
    for (let tenth = 1; tenth <= 10; tenth += 1) {
      const { rowsPerSecond, cpuUs, amount } = await fill(store, tenth)
      charged += amount
      const figures = `${Math.round(rowsPerSecond)} rows/s, ${cpuUs.toFixed(0)} us of CPU per row in the writer`
      process.stdout.write(`${name}, ${(total / 10) * tenth} rows: ${figures}\n`)
      if (tenth === 10 && rowsPerSecond < targetRowsPerSecond) throw new Error('the rate is below the target')
    }
    const { totals } = await store.budgetTotals(undefined, 0)
    const used = totals.reduce((sum, budget) => sum + budget.used, 0n)
    if (used !== charged) throw new Error(`the budgets have ${used}, charged were ${charged}`)
  } finally {
    await store.close()
  }
}

/** Writes a tenth of the rows. The time of making them does not count. */
async function fill(store: LedgerStore, tenth: number) {
  let ms = 0
  let cpuUs = 0
  let amount = 0n
  const rows = total / 10
  for (let number = 1; number <= rows / batchRows; number += 1) {
    const entries = Array.from({ length: batchRows }, (_, index) =>
      newEntry((tenth - 1) * rows + (number - 1) * batchRows + index),
    )
    for (const { charges } of entries) for (const charge of charges) amount += BigInt(charge.amount)
    const cpu = process.cpuUsage()
    const startedAt = performance.now()
    await store.write({ source: `tenth ${tenth}`, first: number, number, entries, sums: [] })
    ms += performance.now() - startedAt
    const used = process.cpuUsage(cpu)
    cpuUs += used.user + used.system
  }
  return { rowsPerSecond: (rows / ms) * 1000, cpuUs: cpuUs / rows, amount }
}

const start = Date.UTC(2026, 0, 1)

/** Some users have many requests, most have few; each has a key, a group and few models. */
function newEntry(index: number): LedgerEntry {
  const completedAt = start + Math.floor(index / 5)
  const user = Math.floor(Math.random() ** 2 * users)
  const model = (user + random(3)) % 20
  const isError = random(20) === 0
  const windowStart = Math.floor(completedAt / hourMs) * hourMs
  const costPicodollars = random(1e12)
  return {
    id: newId(completedAt),
    kind: 'llm',
    startedAt: completedAt - 120,
    completedAt,
    durationMs: random(3000),
    firstByteMs: random(500),
    status: isError ? 429 : 200,
    errorCode: isError ? 'rate_limited' : undefined,
    refusedBy: isError ? 'rate-limit: llm: requests per minute' : undefined,
    method: 'POST',
    path: '/v1/chat/completions',
    route: `route-${user % 10}`,
    listener: 'default',
    keyId: `key-${user % 200}`,
    keyName: `key of team ${user % 200}`,
    user: `user-${user}@example.com`,
    group: `group-${user % 20}`,
    client: `10.0.${user % 16}.${(user >> 4) + random(2)}`,
    userAgent: 'openai-python/1.99.1',
    operation: 'chat',
    provider: `provider-${model % 5}`,
    requestModel: `model-${model}`,
    servedModel: `model-${model}-2026-01`,
    streaming: random(2) === 0,
    attempts: 1,
    tokens: {
      input: random(5000),
      output: random(1000),
      total: random(6000),
      cachedInput: random(2000),
      cacheCreationInput: 0,
      reasoning: 0,
    },
    tokensEstimated: false,
    costPicodollars,
    costStatus: 'exact',
    mcpMethod: undefined,
    mcpTarget: undefined,
    mcpItem: undefined,
    guards: undefined,
    limits: '[{"limit":"llm","unit":"requests","capacity":1000,"remaining":900,"refused":false}]',
    traceId: randomBytes(16).toString('hex'),
    upstreamRequestId: `req_${randomBytes(12).toString('hex')}`,
    incomplete: false,
    charges: [
      {
        budget: 'llm/team',
        value: `group-${user % 20}`,
        windowStart,
        windowEnd: windowStart + hourMs,
        amount: costPicodollars,
      },
    ],
    details: isError ? { explanation: JSON.stringify({ rules: 'x'.repeat(800) }) } : {},
  }
}

/** UUID version 7. */
function newId(time: number): string {
  const hex = time.toString(16).padStart(12, '0')
  const rest = randomBytes(9).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7${rest.slice(0, 3)}-a${rest.slice(3, 6)}-${rest.slice(6, 18)}`
}

function random(below: number): number {
  return Math.floor(Math.random() * below)
}

await main()
