import type { KeyedAccounts } from '../../lib/planes/keyed-accounts.ts'
import { createWindowSource, type FindWindow, type TimeWindow } from '../../lib/time-window.ts'
import type { BudgetRule } from '../../schema/budget.ts'
import { accountPrefix, parseAccountKey } from './accounts.ts'
import { formatAmount } from './reply.ts'

/** A budget of the configuration. */
export type ConfiguredBudget = {
  readonly identity: string
  /** Scope with policies, or `key`. */
  readonly place: string
  readonly rule: BudgetRule
  /** Expression with a budget per value; undefined for a single one. */
  readonly key: string | undefined
  /** The virtual key that has the budget. */
  readonly apiKey: { readonly id: string; readonly name: string | undefined } | undefined
}

/** State of one value of a budget. Amounts are decimal texts, of US dollars or tokens. */
export type BudgetState = {
  place: string
  budget: string
  key: string | undefined
  value: string
  apiKeyId: string | undefined
  apiKeyName: string | undefined
  limit: { unit: 'USD' | 'Tokens'; amount: string }
  usage: { used: string; reserved: string; remaining: string; share: number; exceeded: boolean }
  window: { start: number; end: number }
  action: BudgetRule['action']
}

export type BudgetQuery = {
  /** Name of the budget. */
  readonly budget: string | undefined
  readonly value: string | undefined
  /** Id of the virtual key with the budget. */
  readonly apiKeyId: string | undefined
  readonly limit: number
  readonly cursor: string | undefined
}

export type KeyBudgetQuery = {
  /** `metadata.name` of the keys; undefined for all. */
  readonly apiKeyName: string | undefined
  readonly limit: number
  readonly cursor: string | undefined
}

export type BudgetPage = {
  observedAt: number
  budgets: BudgetState[]
  /** Opaque; undefined on the last page. */
  nextCursor: string | undefined
}

type Amounts = { readonly used: number; readonly reserved: number }
/** A state before its texts are formatted. */
type Entry = {
  readonly budget: ConfiguredBudget
  readonly value: string
  readonly window: TimeWindow
  readonly amounts: Amounts
  readonly share: number
  /** Position in the order of the list. */
  readonly order: string
}

const unused: Amounts = { used: 0, reserved: 0 }
/** Accounts and budgets read between two yields to traffic. */
const itemsPerTurn = 5_000

/** Yields to traffic between parts of an iteration. */
async function* inTurns<T>(items: Iterable<T>): AsyncGenerator<readonly T[]> {
  let part: T[] = []
  for (const item of items) {
    part.push(item)
    if (part.length < itemsPerTurn) continue
    yield part
    part = []
    await new Promise(setImmediate)
  }
  yield part
}

/** Reads a page of all budgets, those closest to their limit first. */
export async function readBudgets(
  accounts: KeyedAccounts,
  budgets: readonly ConfiguredBudget[],
  { query, now }: { query: BudgetQuery; now: number },
): Promise<BudgetPage> {
  const windowsOf = createWindowSource()
  const known = new Map<string, { budget: ConfiguredBudget; windowAt: FindWindow }>()
  for await (const part of inTurns(budgets)) {
    for (const budget of part) known.set(budget.identity, { budget, windowAt: windowsOf(budget.rule.window) })
  }
  const page: Entry[] = []
  const after = query.cursor === undefined ? undefined : Buffer.from(query.cursor, 'base64url').toString()
  const seen = new Set<string>()

  function add(entry: Entry): void {
    const { budget, value, order } = entry
    if (query.budget !== undefined && budget.rule.name !== query.budget) return
    if (query.value !== undefined && value !== query.value) return
    if (query.apiKeyId !== undefined && budget.apiKey?.id !== query.apiKeyId) return
    if (after !== undefined && order <= after) return
    // One more than the page has, to find whether there is a next one.
    if (page.length > query.limit && order >= (page.at(-1)?.order ?? '')) return
    page.push(entry)
    page.sort((one, other) => (one.order < other.order ? -1 : 1))
    page.length = Math.min(page.length, query.limit + 1)
  }

  function addAccount(position: number): void {
    const account = accounts.read(position)
    const parsed = account && parseAccountKey(account.key)
    const found = parsed && known.get(parsed.budget)
    if (account === undefined || parsed === undefined || found === undefined) return
    const window = found.windowAt(now)
    if (window.start !== parsed.windowStart) return
    seen.add(parsed.budget)
    add(entryOf({ ...found, value: parsed.value, window, amounts: account }))
  }

  for await (const part of inTurns(accounts.positions())) part.forEach(addAccount)
  for await (const part of inTurns(known)) {
    for (const [identity, { budget, windowAt }] of part) {
      if (budget.key === undefined && !seen.has(identity))
        add(entryOf({ budget, value: '', window: windowAt(now), amounts: unused }))
    }
  }
  const hasNext = page.length > query.limit
  const shown = page.slice(0, query.limit)
  return {
    observedAt: now,
    budgets: shown.map(stateOf),
    nextCursor: hasNext ? Buffer.from(shown.at(-1)?.order ?? '').toString('base64url') : undefined,
  }
}

/** Reads a page of the budgets of virtual keys, in the order of their identities. */
export async function readKeyBudgets(
  accounts: KeyedAccounts,
  budgets: readonly ConfiguredBudget[],
  { query, now }: { query: KeyBudgetQuery; now: number },
): Promise<BudgetPage> {
  const { apiKeyName, limit, cursor } = query
  const after = cursor === undefined ? '' : Buffer.from(cursor, 'base64url').toString()
  const order = (one: ConfiguredBudget, other: ConfiguredBudget) => (one.identity < other.identity ? -1 : 1)
  let page: ConfiguredBudget[] = []
  let last: string | undefined
  for await (const part of inTurns(budgets)) {
    for (const budget of part) {
      const { apiKey, identity } = budget
      if (apiKey === undefined || (apiKeyName !== undefined && apiKey.name !== apiKeyName)) continue
      if (identity <= after || (last !== undefined && identity > last)) continue
      page.push(budget)
      // The page is sorted, not the budgets of all keys.
      if (page.length < 2 * (limit + 1)) continue
      page = page.sort(order).slice(0, limit + 1)
      last = page.at(-1)?.identity
    }
  }
  const shown = page.sort(order).slice(0, limit)
  const windowsOf = createWindowSource()
  const states = shown.map((budget) => {
    const window = windowsOf(budget.rule.window)(now)
    const amounts = accounts.find(accountPrefix(budget.identity, window.start)) ?? unused
    return stateOf(entryOf({ budget, value: '', window, amounts }))
  })
  const end = page.length > limit ? shown.at(-1)?.identity : undefined
  return {
    observedAt: now,
    budgets: states,
    nextCursor: end === undefined ? undefined : Buffer.from(end).toString('base64url'),
  }
}

/** Digits of a share in the order of a list: shares beyond it are equal. */
const shareDigits = 12

function entryOf({ budget, value, window, amounts }: Omit<Entry, 'share' | 'order'>): Entry {
  const share = (amounts.used + amounts.reserved) / budget.rule.limit
  // Descending by share, then by name and value.
  const rank = Math.round(1e6 * (1e5 - Math.min(share, 1e5)))
    .toString()
    .padStart(shareDigits, '0')
  return { budget, value, window, amounts, share, order: `${rank} ${budget.identity}\n${value}` }
}

function stateOf({ budget, value, window, amounts, share }: Entry): BudgetState {
  const { place, rule, key, apiKey } = budget
  const { unit, limit, name, action } = rule
  const { used, reserved } = amounts
  return {
    place,
    budget: name,
    key,
    value,
    apiKeyId: apiKey?.id,
    apiKeyName: apiKey?.name,
    limit: { unit: unit === 'usd' ? 'USD' : 'Tokens', amount: formatAmount(unit, limit) },
    usage: {
      used: formatAmount(unit, used),
      reserved: formatAmount(unit, reserved),
      remaining: formatAmount(unit, Math.max(0, limit - used - reserved)),
      share: Math.round(share * 1_000) / 1_000,
      exceeded: used >= limit,
    },
    window: { start: window.start, end: window.end },
    action,
  }
}
