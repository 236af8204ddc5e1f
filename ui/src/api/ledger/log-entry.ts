/** Request of the ledger, as `/api/logs/*` return it. Unknown values are null. */
export type LogEntry = {
  readonly id: string
  readonly kind: 'llm' | 'mcp'
  /** RFC 3339. */
  readonly startedAt: string
  readonly completedAt: string
  readonly durationMs: number
  readonly firstByteMs: number | null
  readonly traceId: string | null
  readonly httpStatus: number
  readonly error: string | null
  readonly refusedBy: string | null
  readonly method: string
  readonly path: string
  readonly route: string
  readonly listener: string
  readonly keyId: string | null
  readonly keyName: string | null
  readonly user: string | null
  readonly group: string | null
  readonly client: string
  readonly userAgent: string | null
  readonly genAi: {
    readonly operationName: string | null
    readonly providerName: string | null
    readonly requestModel: string | null
    readonly responseModel: string | null
  }
  readonly mcp: {
    readonly method: string
    readonly target: string | null
    readonly item: string | null
  } | null
  readonly streaming: boolean
  readonly attempts: number
  /** Result of the response cache; null if the request did not use it. */
  readonly cache: 'hit' | 'miss' | null
  /** Id of the request whose estimated amounts this one corrects; the amounts are differences. */
  readonly settles: string | null
  readonly usage: {
    readonly inputTokens: number | null
    readonly outputTokens: number | null
    readonly totalTokens: number | null
    readonly cachedInputTokens: number | null
    readonly cacheCreationInputTokens: number | null
    readonly reasoningTokens: number | null
    readonly estimated: boolean
  }
  /** US dollars. */
  readonly cost: number | null
  readonly costStatus: 'exact' | 'estimated' | 'unpriced' | 'missing' | null
  readonly guards: readonly GuardDecision[] | null
  readonly limits: readonly LimitDecision[] | null
  readonly charges: readonly unknown[]
  readonly upstreamRequestId: string | null
  readonly incomplete: boolean
  readonly hasPayload: boolean
  readonly hasExplanation: boolean
}

export type GuardDecision = {
  readonly guard: string
  readonly phase: 'request' | 'response'
  readonly outcome: string
  readonly reason?: string
  readonly durationMs: number
}

export type LimitDecision = {
  readonly limit: string
  readonly unit: 'requests' | 'tokens'
  readonly capacity: number
  readonly remaining: number
  readonly resetSeconds?: number
  readonly refused: boolean
}

/** Prompt and response of a request: JSON texts of messages, or other texts. */
export type Payload = {
  readonly requestPrompt: string | null
  readonly responseCompletion: string | null
}
