import type { BudgetCharge } from '../../ledger/entry.ts'
import type { TimeWindow } from '../../lib/time-window.ts'
import type { Headers } from '../../net/http/headers.ts'

/** Status of a limit: the content of the `x-ratelimit-*` headers. */
export type LimitStatus = {
  readonly limit: number
  readonly remaining: number
  readonly resetSeconds: number
  /** Header values that override the numbers: limit, remaining, reset. */
  readonly headerValues?: readonly [limit: string, remaining: string, reset: string] | undefined
  /**
   * Further headers about the same limit (`ratelimit`, `ratelimit-policy`...), from the rate limit service.
   */
  readonly relatedHeaders?: Headers | undefined
}

/** Units of the limits of one scope that a request has reserved. */
export type LimitReservation = {
  /** Reverts the count, because another limit refused the request. */
  release(): void
  /** Counts the tokens the request consumed. */
  charge(tokens: number): void
}

/** Limits applied to a request, over all scopes; written by `policies/rate-limit`. */
export type RequestLimits = {
  /** The status with the least remaining, for each unit. */
  requests: LimitStatus | undefined
  tokens: LimitStatus | undefined
  refused: LimitStatus | undefined
  /** Response headers that rate limit services request. */
  headers?: Headers | undefined
  /** Whether the limit headers are on the reply. */
  headersSent: boolean
  /** Time spent on rate limit services. Their timeouts bound the sum, not each wait. */
  waitedMs?: number | undefined
  readonly reservations: LimitReservation[]
}

/** State of a budget at the admission of a request. Amounts are tokens or picodollars. */
export type BudgetStatus = {
  /** Identity, as in the ledger. */
  readonly budget: string
  readonly name: string
  readonly value: string
  readonly unit: 'usd' | 'tokens'
  readonly limit: number
  readonly used: number
  /** Reserved by other requests in progress. */
  readonly reserved: number
  /** Reserved for this request. */
  readonly estimate: number
  readonly window: TimeWindow
  readonly outcome: 'admitted' | 'warned' | 'audited' | 'refused' | 'unavailable'
  /**
   * Replaces the reservation by the amount of the call, 0 if no provider was called. Returns the charge. Only
   * the first call has an effect.
   */
  settle(call: SettledCall): BudgetCharge | undefined
}

/** Amounts of a call after its end. */
export type SettledCall = {
  readonly tokens: number
  readonly picodollars: number
  /** False if the amount in dollars is without that of an attempt, which has no price. */
  readonly isPriced: boolean
}

/** Correction of the amounts that an earlier call has charged by an estimate. */
export type Settlement = {
  /** Differences of the real amounts to the charged ones. */
  readonly tokens: number
  readonly picodollars: number
  /** Budgets that the earlier call was charged to. */
  readonly budgets: readonly Omit<BudgetCharge, 'amount'>[]
  /** The earlier call was one of this process: without a database, others have not charged it. */
  readonly isOwn: boolean
}
