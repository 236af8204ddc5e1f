import { hourMs } from '../lib/duration.ts'
import type { BudgetCharge, LedgerEntry, TokenCounts } from './entry.ts'
import { durationBounds, type UsageCounts, type UsageDimensions, type UsageSum } from './usage-sum.ts'

/** Entries and sums added up. Amounts and charges are exact. */
export type Collapsed = {
  add(entry: LedgerEntry): void
  addSum(sum: UsageSum): void
  /** Number of sums. */
  size(): number
  /** The sums. */
  sums(): UsageSum[]
  clear(): void
}

/**
 * Name in place of the names beyond the limit: only hour, kind and class of the status remain.
 */
const otherName = '(other)'

const noTokens: TokenCounts = {
  input: 0,
  output: 0,
  total: 0,
  cachedInput: 0,
  cacheCreationInput: 0,
  reasoning: 0,
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }
type Counts = Omit<Mutable<UsageCounts>, 'tokens' | 'durations'> & {
  tokens: Mutable<TokenCounts>
  durations: number[]
}
type Charge = Omit<Mutable<BudgetCharge>, 'amount'> & { amount: bigint }

/**
 * Creates an empty accumulation with at most `maxSums` combinations of dimensions and `maxCharges` windows of
 * budgets. Further ones are added to a rest without names, so that no amount is lost.
 */
export function createCollapsed(maxSums: number, maxCharges: number): Collapsed {
  const sums = new Map<string, { dimensions: UsageDimensions; counts: Counts }>()
  const charges = new Map<string, Charge>()

  function countsOf(dimensions: UsageDimensions): Counts {
    const key = keyOf(dimensions)
    const known = sums.get(key)
    if (known !== undefined) return known.counts
    if (sums.size >= maxSums && dimensions.keyId !== otherName) return countsOf(restOf(dimensions))
    const counts = noCounts()
    sums.set(key, { dimensions, counts })
    return counts
  }

  function charge(added: BudgetCharge): void {
    const key = JSON.stringify([added.budget, added.value, added.windowStart, added.windowEnd])
    const known = charges.get(key)
    if (known !== undefined) known.amount += BigInt(added.amount)
    else if (charges.size >= maxCharges && added.value !== otherName) charge({ ...added, value: otherName })
    else charges.set(key, { ...added, amount: BigInt(added.amount) })
  }

  return {
    add(entry) {
      addEntry(countsOf(dimensionsOf(entry)), entry)
      for (const added of entry.charges) charge(added)
    },
    addSum(sum) {
      addCounts(countsOf(sum.dimensions), sum.counts)
      for (const added of sum.charges) charge(added)
    },
    size: () => sums.size,
    sums() {
      const all = [...sums.values()].map(({ dimensions, counts }): UsageSum => {
        const { tokens, durations, ...rest } = counts
        const copy = { ...rest, tokens: { ...tokens }, durations: [...durations] }
        return { dimensions, counts: copy, charges: [] }
      })
      const [first, ...others] = all
      if (first === undefined) return []
      return [{ ...first, charges: [...charges.values()].flatMap(chargesOf) }, ...others]
    },
    clear() {
      sums.clear()
      charges.clear()
    },
  }
}

/** Dimensions of an entry: those of its hourly sum. */
function dimensionsOf(entry: LedgerEntry): UsageDimensions {
  return {
    hour: Math.floor(entry.completedAt / hourMs) * hourMs,
    kind: entry.kind,
    keyId: entry.keyId ?? '',
    user: entry.user ?? '',
    group: entry.group ?? '',
    route: entry.route,
    provider: entry.provider ?? '',
    model: entry.servedModel ?? '',
    mcpTarget: entry.mcpTarget ?? '',
    status: entry.status,
  }
}

/** Index of a duration in `UsageCounts.durations`. */
function durationIndex(durationMs: number): number {
  let index = 0
  while (index < durationBounds.length && durationMs > (durationBounds[index] ?? 0)) index += 1
  return index
}

function keyOf(dimensions: UsageDimensions): string {
  const { hour, kind, keyId, user, group, route, provider, model, mcpTarget, status } = dimensions
  return JSON.stringify([hour, kind, keyId, user, group, route, provider, model, mcpTarget, status])
}

function restOf({ hour, kind, status }: UsageDimensions): UsageDimensions {
  return {
    hour,
    kind,
    keyId: otherName,
    user: otherName,
    group: otherName,
    route: otherName,
    provider: otherName,
    model: otherName,
    mcpTarget: otherName,
    status: Math.floor(status / 100) * 100,
  }
}

function noCounts(): Counts {
  return {
    requests: 0,
    tokens: { ...noTokens },
    estimatedRequests: 0,
    unpricedRequests: 0,
    costPicodollars: 0n,
    durationMs: 0,
    firstByteMs: 0,
    firstBytes: 0,
    durations: new Array<number>(durationBounds.length + 1).fill(0),
  }
}

function addEntry(counts: Counts, entry: LedgerEntry): void {
  const { tokens = noTokens, costStatus, firstByteMs } = entry
  counts.requests += 1
  addTokens(counts.tokens, tokens)
  if (entry.tokensEstimated || costStatus === 'estimated') counts.estimatedRequests += 1
  if (costStatus === 'unpriced' || costStatus === 'missing') counts.unpricedRequests += 1
  counts.costPicodollars += BigInt(entry.costPicodollars ?? 0)
  counts.durationMs += entry.durationMs
  if (firstByteMs !== undefined) {
    counts.firstByteMs += firstByteMs
    counts.firstBytes += 1
  }
  const index = durationIndex(entry.durationMs)
  counts.durations[index] = (counts.durations[index] ?? 0) + 1
}

function addCounts(counts: Counts, added: UsageCounts): void {
  counts.requests += added.requests
  addTokens(counts.tokens, added.tokens)
  counts.estimatedRequests += added.estimatedRequests
  counts.unpricedRequests += added.unpricedRequests
  counts.costPicodollars += added.costPicodollars
  counts.durationMs += added.durationMs
  counts.firstByteMs += added.firstByteMs
  counts.firstBytes += added.firstBytes
  for (const [index, count] of added.durations.entries())
    counts.durations[index] = (counts.durations[index] ?? 0) + count
}

function addTokens(counts: Mutable<TokenCounts>, added: TokenCounts): void {
  counts.input += added.input
  counts.output += added.output
  counts.total += added.total
  counts.cachedInput += added.cachedInput
  counts.cacheCreationInput += added.cacheCreationInput
  counts.reasoning += added.reasoning
}

/** The amount of a charge in safe integers. */
function chargesOf({ amount, ...window }: Charge): BudgetCharge[] {
  const largest = BigInt(Number.MAX_SAFE_INTEGER)
  const charges: BudgetCharge[] = []
  let rest = amount
  for (; rest > largest; rest -= largest) charges.push({ ...window, amount: Number.MAX_SAFE_INTEGER })
  for (; rest < -largest; rest += largest) charges.push({ ...window, amount: -Number.MAX_SAFE_INTEGER })
  charges.push({ ...window, amount: Number(rest) })
  return charges
}
