import type { GuardDecision, LimitDecision, LogEntry } from './log-entry.ts'

/** Decisions about a request, as `GET /api/requests/{id}` returns them. */
export type Explanation = {
  readonly cause?: string
  readonly outcome?: {
    readonly status: number
    readonly errorCode?: string
    readonly refusedBy?: string
    readonly stoppedBy?: string
    readonly incomplete?: boolean
    readonly failure?: { readonly code: string; readonly system?: string }
  }
  readonly times?: RequestTimes
  readonly key?: {
    readonly id?: string
    readonly name?: string
    readonly group?: string
    readonly models?: readonly string[]
    readonly targets?: readonly string[]
    readonly expiresAt?: string
    readonly budgets?: readonly string[]
    readonly limits?: readonly string[]
  }
  readonly identity?: { readonly user?: string; readonly group?: string }
  readonly attempts?: readonly Attempt[]
  readonly limits?: readonly LimitDecision[]
  readonly budgets?: readonly BudgetDecision[]
  readonly guards?: readonly GuardDecision[]
  readonly items?: readonly ItemDecision[]
  readonly policies?: readonly PolicyDecision[]
  readonly routing?: {
    readonly listener?: string
    readonly route?: string
    readonly candidates?: readonly RouteCandidate[]
  }
  /** Names of omitted sections. */
  readonly truncated?: readonly string[]
}

/** Milliseconds; phases that did not take place are absent. */
export type RequestTimes = {
  readonly totalMs: number
  readonly policiesMs?: number
  readonly waits?: readonly { readonly step: string; readonly ms: number }[]
  readonly backendMs?: number
  readonly replyMs?: number
  readonly firstByteMs?: number
  readonly streamMs?: number
}

export type Attempt = {
  readonly target: string
  readonly provider?: string
  readonly model?: string
  readonly session?: 'new' | 'existing'
  readonly outcome: 'responded' | 'failed' | 'skipped' | 'no response'
  readonly status?: number
  readonly failure?: string
  readonly skipped?: string
  readonly startMs?: number
  readonly firstByteMs?: number
  readonly durationMs?: number
}

export type BudgetDecision = {
  readonly budget: string
  readonly name: string
  readonly value: string
  readonly unit: 'usd' | 'tokens'
  readonly limit: number
  readonly used: number
  readonly reserved: number
  readonly left: number
  readonly estimate: number
  readonly outcome: string
  readonly window: { readonly start: string; readonly end: string }
}

export type ExplainedRule = {
  readonly rule: string
  readonly expression: string
  readonly value?: boolean
  readonly error?: string
  readonly refuses: boolean
}

export type PolicyDecision = {
  readonly policy: string
  readonly result: 'passed' | 'stopped'
  readonly durationMs?: number
  /** `{scope, rules}` of rules; other policies describe themselves. */
  readonly decision?: unknown
}

export type ItemDecision = {
  readonly rules: string
  readonly item: { readonly kind: string; readonly name: string; readonly target: string }
  readonly permitted: boolean
  readonly results?: readonly ExplainedRule[]
}

export type RouteCandidate = {
  readonly route: string
  readonly hostname: string
  readonly path: string
  readonly result: 'selected' | 'outranked' | 'failed'
  readonly by?: 'hostname' | 'path' | 'conditions' | 'order'
  readonly condition?: string
  readonly name?: string
}

export type ExplainedRequest = { readonly request: LogEntry; readonly explanation: Explanation | null }
