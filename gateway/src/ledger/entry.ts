import type { CostStatus } from './cost-status.ts'

/** Tokens by type. Input includes cached reads and cache writes, output includes reasoning. */
export type TokenCounts = {
  readonly input: number
  readonly output: number
  readonly total: number
  readonly cachedInput: number
  readonly cacheCreationInput: number
  readonly reasoning: number
}

/**
 * Amount that a request charged to a budget. `amount` is in the unit of the budget: tokens, or picodollars
 * (10^-12 US dollars).
 */
export type BudgetCharge = {
  /** Identity of the budget: `llm/<name>`, or `key/<key id>/<name>`. */
  readonly budget: string
  /** Value of the budget's key expression; empty for a single count. */
  readonly value: string
  /** Milliseconds since the epoch. */
  readonly windowStart: number
  readonly windowEnd: number
  readonly amount: number
}

/** Parts of an entry that are dropped first if the queue of the ledger is full. Never credentials. */
export type EntryDetails = {
  /** JSON text of the explanation of the request. */
  readonly explanation?: string | undefined
  /** Texts of prompt and response, redacted and truncated. */
  readonly request?: string | undefined
  readonly response?: string | undefined
}

/** One LLM request or MCP call. Texts from clients are truncated; undefined if unknown or not applicable. */
export type LedgerEntry = {
  /** UUID version 7 (RFC 9562), the value of `x-request-id` in the response. */
  readonly id: string
  readonly kind: 'llm' | 'mcp'
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  readonly completedAt: number
  readonly durationMs: number
  readonly firstByteMs: number | undefined
  /** 499 if the client disconnected before a response. */
  readonly status: number
  /** Stable code of a refusal or failure of the gateway, for example `model_not_found`. */
  readonly errorCode: string | undefined
  /** Policy and reason of a refusal, for example `rate-limit: llm: requests per minute`. */
  readonly refusedBy: string | undefined
  readonly method: string
  readonly path: string
  readonly route: string
  readonly listener: string
  readonly keyId: string | undefined
  readonly keyName: string | undefined
  readonly user: string | undefined
  readonly group: string | undefined
  readonly client: string
  readonly userAgent: string | undefined
  readonly operation: string | undefined
  readonly provider: string | undefined
  readonly requestModel: string | undefined
  /** Model of the provider: as reported, or as requested from it. Undefined if no provider was called. */
  readonly servedModel: string | undefined
  readonly streaming: boolean
  /** Result of the response cache; undefined if the request did not use it, and in older entries. */
  readonly cache?: 'hit' | 'miss' | undefined
  /**
   * Id of the earlier request whose estimated amounts this one corrects: tokens, cost and charges are
   * differences, which may be negative.
   */
  readonly settles?: string | undefined
  /** Calls of providers or targets. */
  readonly attempts: number
  readonly tokens: TokenCounts | undefined
  readonly tokensEstimated: boolean
  /** Exact; a safe integer. */
  readonly costPicodollars: number | undefined
  readonly costStatus: CostStatus | undefined
  readonly mcpMethod: string | undefined
  readonly mcpTarget: string | undefined
  readonly mcpItem: string | undefined
  /** JSON text: list of `{guard, phase, outcome, reason, durationMs}`. */
  readonly guards: string | undefined
  /** JSON text: list of `{limit, unit, capacity, remaining, refused}`. */
  readonly limits: string | undefined
  /** Trace id of `traceparent` (W3C Trace Context), 32 hexadecimal digits. */
  readonly traceId: string | undefined
  /** `x-request-id` or `request-id` of the provider's response. */
  readonly upstreamRequestId: string | undefined
  /** The response did not reach its end. */
  readonly incomplete: boolean
  readonly charges: readonly BudgetCharge[]
  readonly details: EntryDetails
}
