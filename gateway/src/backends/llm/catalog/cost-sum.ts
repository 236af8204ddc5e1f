import type { CostStatus } from '../../../ledger/cost-status.ts'
import type { Usage } from '../../../pipeline/facts/llm-facts.ts'
import type { CostBasis } from './cost.ts'
import type { Picodollars } from './money.ts'
import type { Cost } from './prices.ts'

/** Sum of costs, without those that have no price. Its status is that of the worst part. */
export type CostSum = {
  readonly amount: Picodollars | undefined
  /** Undefined without any cost. */
  readonly status: CostStatus | undefined
}

export const noCost: CostSum = { amount: undefined, status: undefined }

/** From good to bad. */
const statuses = ['exact', 'estimated', 'unpriced', 'missing'] as const

export function addCost({ amount, status }: CostSum, cost: Cost, usage: Pick<Usage, 'estimated'>): CostSum {
  const own = cost.kind === 'cost' ? qualityOf(cost.basis, usage) : cost.kind
  const isWorse = status === undefined || statuses.indexOf(own) > statuses.indexOf(status)
  return {
    amount: cost.kind === 'cost' ? (amount ?? 0n) + cost.amount : amount,
    status: isWorse ? own : status,
  }
}

function qualityOf(
  basis: CostBasis = 'tokens',
  { estimated }: Pick<Usage, 'estimated'>,
): 'exact' | 'estimated' {
  return basis === 'units' || (basis === 'tokens' && !estimated) ? 'exact' : 'estimated'
}

/** 9,007 dollars, beyond any real call: larger amounts are not safe integers. */
const largest = BigInt(Number.MAX_SAFE_INTEGER)

/** An amount as a safe integer. */
export function safeAmount(amount: Picodollars): number {
  return amount > largest ? Number.MAX_SAFE_INTEGER : Number(amount)
}
