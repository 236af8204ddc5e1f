import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange, fixtureUsage } from '../../../test/fixtures/pipeline.ts'
import { createPlaneMemories } from '../../../test/support/plane-memories.ts'
import { type BudgetReport, type BudgetTotals, createBudgetTotals } from '../../ledger/budget-use.ts'
import type { BudgetCharge } from '../../ledger/entry.ts'
import { createWindows } from '../../lib/time-window.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { accountPrefix, applyBudgetReport, budgetAccounts } from './accounts.ts'
import { compileBudgets } from './budgets.ts'
import { type BudgetConfig, budgetRule } from './config.ts'

// Gateways with two data planes each share a database. Requests, clocks, commits, reports, restarts and
// outages are random. A naive model has a list of all charges and decides by sums over it.

const startedAt = Date.parse('2026-10-24T20:00:00Z')
const gateways = 2
const limit = 100
const values = ['a', 'b']

type Batch = { charges: BudgetCharge[]; isCommitted: boolean }

/** A request of the model: the charge that it will have had, as far as known. */
type InProgress = { exchange: Exchange; policy: Policy; estimate: number; value: string; windowStart: number }

type Gateway = {
  policies: Policy[]
  apply(report: BudgetReport): void
  totals: BudgetTotals
  spool: Batch[]
  /** Batches of earlier processes. */
  orphans: Batch[]
  inProgress: InProgress[]
  /** Charges since the start of the process. */
  charged: BudgetCharge[]
  /** The first report, for a repetition. */
  first: BudgetReport | undefined
  find(value: string, windowStart: number): { used: number; reserved: number }
}

type Command =
  | { kind: 'request'; gateway: number; plane: number; value: string; estimate: number }
  | { kind: 'end'; gateway: number; index: number; amount: number }
  | { kind: 'commit'; gateway: number; isKnown: boolean }
  | { kind: 'report'; gateway: number; delivery: 'delivered' | 'lost' | 'repeated' }
  | { kind: 'advance'; minutes: number }
  | { kind: 'restart'; gateway: number }

const gateway = fc.nat({ max: gateways - 1 })
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('request' as const),
      gateway,
      plane: fc.nat({ max: 1 }),
      value: fc.constantFrom(...values),
      estimate: fc.nat({ max: 40 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('end' as const),
      gateway,
      index: fc.nat(),
      amount: fc.nat({ max: 60 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('commit' as const), gateway, isKnown: fc.boolean() }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('report' as const),
      gateway,
      delivery: fc.constantFrom('delivered' as const, 'lost' as const, 'repeated' as const),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('advance' as const), minutes: fc.nat({ max: 600 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const), gateway }) },
)

const windows = fc.constantFrom(
  { window: '1h' },
  { window: '24h' },
  { window: 'day', timeZone: 'Europe/Berlin' },
  { window: 'month', timeZone: 'America/Havana' },
)

function createWorld(config: BudgetConfig) {
  const time = { now: startedAt }
  const clock = { now: () => time.now, monotonic: () => time.now, advance: () => undefined }
  const database = new Map<string, { charge: BudgetCharge; used: bigint }>()
  const everything: BudgetCharge[] = []
  const windowAt = createWindows(budgetRule(config).window)

  function start(orphans: Batch[]): Gateway {
    const contexts = createPlaneMemories(2).map((memory) => ({ ...fixtureContext(), clock, memory }))
    const [first] = contexts
    if (first === undefined) throw new Error('a data plane expected')
    const accounts = budgetAccounts(first)
    accounts.expectReports()
    return {
      policies: contexts.map((context) => compileBudgets([{ scope: 'llm', budgets: [config] }], context)),
      apply: (report) => applyBudgetReport(accounts, report, clock),
      totals: createBudgetTotals(clock.now),
      spool: [],
      orphans,
      inProgress: [],
      charged: [],
      first: undefined,
      find: (value, windowStart) =>
        accounts.find(accountPrefix('llm/team/tokens', windowStart) + value) ?? { used: 0, reserved: 0 },
    }
  }

  function write({ charges }: Batch): void {
    for (const charge of charges) {
      const key = `${charge.windowStart} ${charge.value}`
      const used = (database.get(key)?.used ?? 0n) + BigInt(charge.amount)
      database.set(key, { charge, used })
    }
  }

  /** Commits the oldest batch. A result that is not known is found out by the next attempt. */
  function commit(at: Gateway, isKnown: boolean): void {
    const orphan = at.orphans.shift()
    if (orphan !== undefined) {
      if (!orphan.isCommitted) write(orphan)
      return
    }
    const [batch] = at.spool
    if (batch === undefined) return
    if (!batch.isCommitted) write(batch)
    batch.isCommitted = true
    if (!isKnown) return
    at.spool.shift()
    at.totals.apply({ confirmed: batch.charges, totals: readTotals() })
  }

  function readTotals() {
    return [...database.values()].map(({ charge, used }) => ({ ...charge, used }))
  }

  return { time, start, commit, readTotals, everything, windowAt }
}

function usedIn(charges: readonly BudgetCharge[], value: string, windowStart: number): number {
  return charges
    .filter((charge) => charge.value === value && charge.windowStart === windowStart)
    .reduce((sum, { amount }) => sum + amount, 0)
}

function requestOf(value: string, estimate: number): Exchange {
  const operation = { operation: 'chat', api: 'chat_completions' } as const
  const exchange = fixtureExchange({}, { apiKey: { group: value } })
  exchange.facts.llm = {
    ...{ ...operation, requestModel: 'm', configuredModel: 'm', provider: 'openai', streaming: false },
  }
  exchange.llm = {
    operation,
    estimate: () => ({ tokens: estimate, picodollars: undefined }),
    message: undefined,
  }
  return exchange
}

describe('budgets of replicas', () => {
  it('agree with a list of all charges', () => {
    fc.assert(
      fc.property(windows, fc.array(command, { maxLength: 120 }), (window, commands) => {
        const config: BudgetConfig = {
          name: 'team',
          limit: { tokens: limit },
          key: 'apiKey.group',
          ...window,
        }
        const world = createWorld(config)
        const all = Array.from({ length: gateways }, () => world.start([]))
        for (const step of commands) apply(step, world, all)
        settleAll(world, all)
        const { start } = world.windowAt(world.time.now)
        for (const at of all)
          for (const value of values) {
            const truth = usedIn(world.everything, value, start)
            expect(at.find(value, start).used).toBe(truth)
          }
      }),
      { numRuns: 300 },
    )
  })
})

function apply(step: Command, world: ReturnType<typeof createWorld>, all: Gateway[]): void {
  if (step.kind === 'advance') {
    world.time.now += step.minutes * 60_000
    return
  }
  const at = all[step.gateway]
  if (at === undefined) return
  switch (step.kind) {
    case 'request':
      admit(step, world, at)
      return
    case 'end':
      end(at, at.inProgress.splice(step.index % Math.max(1, at.inProgress.length), 1)[0], step.amount, world)
      return
    case 'commit':
      world.commit(at, step.isKnown)
      return
    case 'report':
      report(step.delivery, world, at)
      return
    case 'restart': {
      // Requests in progress are lost, the spool is not. What was charged remains charged.
      all[step.gateway] = world.start([...at.orphans, ...at.spool])
    }
  }
}

function admit(
  { plane, value, estimate }: Command & { kind: 'request' },
  world: ReturnType<typeof createWorld>,
  at: Gateway,
): void {
  const policy = at.policies[plane]
  if (policy === undefined) return
  const { start } = world.windowAt(world.time.now)
  const own = usedIn(at.charged, value, start)
  const reserved = at.inProgress
    .filter((other) => other.value === value && other.windowStart === start)
    .reduce((sum, other) => sum + other.estimate, 0)
  const before = at.find(value, start)
  // The use elsewhere is that of the latest report; the rest is exact at any time.
  expect(before.used).toBeGreaterThanOrEqual(own)
  expect(before.reserved).toBe(reserved)
  const exchange = requestOf(value, estimate)
  const reply = policy.onRequest?.(exchange)
  expect(reply === undefined).toBe(before.used + reserved < limit)
  if (reply === undefined) at.inProgress.push({ exchange, policy, estimate, value, windowStart: start })
  else policy.onEnd?.(exchange)
}

function end(
  at: Gateway,
  request: InProgress | undefined,
  amount: number,
  world: ReturnType<typeof createWorld>,
): void {
  if (request === undefined) return
  const { exchange, policy } = request
  // No usage: the provider was not called.
  if (amount > 0) exchange.facts.usage = fixtureUsage(amount)
  policy.onEnd?.(exchange)
  const charges = exchange.charges ?? []
  expect(charges.map((charge) => charge.amount)).toEqual(amount > 0 ? [amount] : [])
  at.charged.push(...charges)
  world.everything.push(...charges)
  if (charges.length > 0) at.spool.push({ charges, isCommitted: false })
}

function report(
  delivery: 'delivered' | 'lost' | 'repeated',
  world: ReturnType<typeof createWorld>,
  at: Gateway,
): void {
  if (delivery === 'repeated') {
    if (at.first !== undefined) at.apply(at.first)
    return
  }
  at.totals.apply({ confirmed: [], totals: world.readTotals() })
  const made = at.totals.report()
  if (delivery === 'lost') {
    at.totals.lost(made)
    return
  }
  at.apply(made)
  at.first ??= made
}

/** Ends all requests, commits all batches and delivers all reports. */
function settleAll(world: ReturnType<typeof createWorld>, all: Gateway[]): void {
  for (const at of all) {
    for (const request of at.inProgress.splice(0)) end(at, request, 1, world)
    while (at.orphans.length + at.spool.length > 0) world.commit(at, true)
  }
  for (const at of all) report('delivered', world, at)
}
