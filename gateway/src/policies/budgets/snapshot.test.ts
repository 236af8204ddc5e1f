import { describe, expect, it, vi } from 'vitest'
import { countTurns } from '../../../test/support/count-turns.ts'
import { createKeyedAccounts } from '../../lib/planes/keyed-accounts.ts'
import { createLocalMemory } from '../../lib/planes/memory.ts'
import type { BudgetRule } from '../../schema/budget.ts'
import { accountPrefix } from './accounts.ts'
import {
  type BudgetQuery,
  type ConfiguredBudget,
  type KeyBudgetQuery,
  readBudgets,
  readKeyBudgets,
} from './snapshot.ts'

const hourMs = 3_600_000
const now = 10 * hourMs
const rule: BudgetRule = {
  name: 'team',
  unit: 'tokens',
  limit: 100,
  window: { kind: 'fixed', lengthMs: hourMs },
  action: 'block',
  warnAt: undefined,
}
const team: ConfiguredBudget = {
  identity: 'llm/team/tokens',
  place: 'llm',
  rule,
  key: 'apiKey.group',
  apiKey: undefined,
}
const all: ConfiguredBudget = {
  ...team,
  identity: 'llm/all/usd',
  rule: { ...rule, name: 'all', unit: 'usd', limit: 2_500_000_000_000 },
  key: undefined,
}
const ofKey: ConfiguredBudget = {
  ...team,
  identity: 'key/k1/daily/tokens',
  place: 'key',
  rule: { ...rule, name: 'daily' },
  key: undefined,
  apiKey: { id: 'k1', name: 'build' },
}
const query: BudgetQuery = {
  budget: undefined,
  value: undefined,
  apiKeyId: undefined,
  limit: 100,
  cursor: undefined,
}

function accountsWith(used: Record<string, number>) {
  const accounts = createKeyedAccounts(createLocalMemory(), 'test', 1_000)
  for (const [key, amount] of Object.entries(used))
    accounts.setElsewhere(key, { amount, number: 1, endsAt: now + hourMs }, now)
  return accounts
}

const teamPrefix = accountPrefix(team.identity, now)

describe('readBudgets', () => {
  it('lists values by the share of their limit, and unused budgets without a key', async () => {
    const accounts = accountsWith({ [`${teamPrefix}red`]: 30, [`${teamPrefix}blue`]: 120 })
    const { budgets, nextCursor } = await readBudgets(accounts, [team, all], { query, now })
    expect(budgets.map(({ budget, value, usage }) => [budget, value, usage.used, usage.exceeded])).toEqual([
      ['team', 'blue', '120', true],
      ['team', 'red', '30', false],
      ['all', '', '0', false],
    ])
    expect(budgets[2]?.limit).toEqual({ unit: 'USD', amount: '2.5' })
    expect(nextCursor).toBeUndefined()
  })

  it('omits other windows and budgets that are not configured', async () => {
    const accounts = accountsWith({
      [`${accountPrefix(team.identity, now - hourMs)}red`]: 30,
      [`${accountPrefix('llm/removed/tokens', now)}red`]: 30,
    })
    expect((await readBudgets(accounts, [team], { query, now })).budgets).toEqual([])
  })

  it('pages without gaps and repetitions', async () => {
    const used = Object.fromEntries(
      Array.from({ length: 95 }, (_, index) => [`${teamPrefix}${index}`, index % 7]),
    )
    const accounts = accountsWith(used)
    const values: string[] = []
    let cursor: string | undefined
    do {
      const page = await readBudgets(accounts, [team], { query: { ...query, limit: 10, cursor }, now })
      values.push(...page.budgets.map(({ value }) => value))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(values).toHaveLength(95)
    expect(new Set(values).size).toBe(95)
  })

  it('selects by name and value', async () => {
    const accounts = accountsWith({ [`${teamPrefix}red`]: 30, [`${teamPrefix}blue`]: 120 })
    const selected = { ...query, budget: 'team', value: 'red' }
    const { budgets } = await readBudgets(accounts, [team, all], { query: selected, now })
    expect(budgets.map(({ value }) => value)).toEqual(['red'])
  })

  it('selects by virtual key', async () => {
    const { budgets } = await readBudgets(accountsWith({}), [all, ofKey], {
      query: { ...query, apiKeyId: 'k1' },
      now,
    })
    expect(budgets.map(({ budget }) => budget)).toEqual(['daily'])
  })
})

describe('readKeyBudgets', () => {
  const anyKey: KeyBudgetQuery = { apiKeyName: undefined, limit: 100, cursor: undefined }

  it('selects keys by name', async () => {
    const accounts = accountsWith({ [accountPrefix(ofKey.identity, now)]: 40 })
    const selected = (apiKeyName: string) => ({ query: { ...anyKey, apiKeyName }, now })
    const { budgets } = await readKeyBudgets(accounts, [team, ofKey], selected('build'))
    expect(budgets).toMatchObject([{ budget: 'daily', usage: { used: '40', remaining: '60' } }])
    expect((await readKeyBudgets(accounts, [ofKey], selected('other'))).budgets).toEqual([])
  })

  it('pages in the order of identities without gaps and repetitions', async () => {
    const budgets = Array.from({ length: 95 }, (_, index): ConfiguredBudget => {
      const id = String((index * 37) % 95).padStart(2, '0')
      return { ...ofKey, identity: `key/${id}/daily/tokens`, apiKey: { id, name: undefined } }
    })
    const ids: (string | undefined)[] = []
    let cursor: string | undefined
    do {
      const page = await readKeyBudgets(accountsWith({}), budgets, {
        query: { ...anyKey, limit: 10, cursor },
        now,
      })
      ids.push(...page.budgets.map(({ apiKeyId }) => apiKeyId))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(ids).toEqual(Array.from({ length: 95 }, (_, index) => String(index).padStart(2, '0')))
  })
})

describe('budgets of many keys', () => {
  const window = { kind: 'calendar', unit: 'month', timeZone: 'Europe/Berlin' } as const
  const many = Array.from({ length: 20_000 }, (_, index): ConfiguredBudget => {
    return { ...ofKey, identity: `key/${index}/daily/tokens`, rule: { ...rule, window } }
  })

  it.each([
    ['listed', () => readBudgets(accountsWith({}), many, { query, now })],
    [
      'read',
      () => readKeyBudgets(accountsWith({}), many, { query: { ...query, apiKeyName: undefined }, now }),
    ],
  ])('are %s in slices, with one calendar of each time zone', async (_, read) => {
    const formats = vi.spyOn(Intl, 'DateTimeFormat')
    try {
      expect(await countTurns(read)).toBeGreaterThanOrEqual(3)
      expect(formats.mock.calls.length).toBe(1)
    } finally {
      formats.mockRestore()
    }
  })
})
