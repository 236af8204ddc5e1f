import type { BudgetCharge, TokenCounts } from './entry.ts'

/** Dimensions of the hourly sums. Empty texts if not applicable. */
export type UsageDimensions = {
  /** Start of the hour, milliseconds since the epoch. */
  readonly hour: number
  readonly kind: 'llm' | 'mcp'
  readonly keyId: string
  readonly user: string
  readonly group: string
  readonly route: string
  readonly provider: string
  /** `servedModel` of the entries. */
  readonly model: string
  readonly mcpTarget: string
  readonly status: number
}

/** Sums over entries with equal dimensions. */
export type UsageCounts = {
  readonly requests: number
  readonly tokens: TokenCounts
  readonly estimatedRequests: number
  /** Calls without a price. */
  readonly unpricedRequests: number
  readonly costPicodollars: bigint
  readonly durationMs: number
  readonly firstByteMs: number
  /** Entries with a first byte. */
  readonly firstBytes: number
  /** Counts by duration: at most `durationBounds[index]` milliseconds; the last is unbounded. */
  readonly durations: readonly number[]
}

/** Upper bounds of `UsageCounts.durations` in milliseconds: fine for MCP calls, up to long LLM requests. */
export const durationBounds = [
  ...[1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000],
  ...[2_500, 5_000, 10_000, 30_000, 60_000, 120_000],
] as const

/** Amounts of entries whose attributes were dropped, because the queue of the ledger was full. */
export type UsageSum = {
  readonly dimensions: UsageDimensions
  readonly counts: UsageCounts
  readonly charges: readonly BudgetCharge[]
}
