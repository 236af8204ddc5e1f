import type { Clock } from '../../lib/clock.ts'
import type { JsonValue } from '../../lib/json/json.ts'
import { firstHeader, type Headers } from '../../net/http/headers.ts'
import type { GuardOutcome } from '../../telemetry/metrics/rules-and-guards.ts'

/** Result of a guard, for the access log: never content. */
export type GuardDecision = {
  readonly guard: string
  readonly phase: 'request' | 'response'
  readonly outcome: GuardOutcome
  readonly reason: string | undefined
  /** Of the check, in milliseconds; 0 without a check. */
  readonly durationMs: number
}

/** A limit that a request was checked against. */
export type LimitDecision = {
  /** Label of the limit, as in metrics. */
  readonly limit: string
  readonly unit: 'requests' | 'tokens'
  readonly capacity: number
  /** Units left after the request was counted, or at its refusal. */
  readonly remaining: number
  /** Seconds until the limit is at its capacity again. */
  readonly resetSeconds: number
  /** The limit was exhausted. */
  readonly refused: boolean
}

/** Call of a provider or of an MCP target. Times are milliseconds. */
export type AttemptRecord = {
  /** Configured name of the model entry or of the MCP target. */
  readonly target: string
  readonly provider?: string | undefined
  /** Model sent to the provider. */
  readonly model?: string | undefined
  /** Whether an MCP session was opened by the call. */
  readonly session?: 'new' | 'existing' | undefined
  /** False if the request was not sent, because the target does not support it. */
  sent: boolean
  /** `Clock.monotonic()`; undefined if the times of requests are not recorded. */
  readonly startedAt: number | undefined
  /** Undefined before a response. */
  status: number | undefined
  /** `x-request-id` or `request-id` of the response. */
  upstreamRequestId: string | undefined
  /** Code of a failure, for example `upstream_connect`; undefined after a response. */
  failure: string | undefined
  /** `Clock.monotonic()` at the head of the response. */
  headAt: number | undefined
  /** `Clock.monotonic()` at the failure or the end; undefined if the attempt ended with the request. */
  endedAt: number | undefined
}

/** Item rules of MCP that decided on a call. */
export type ItemDecision = {
  readonly rules: string
  readonly item: { readonly kind: string; readonly name: string; readonly target: string }
  readonly permitted: boolean
  /** Results of single rules; undefined if not evaluated again. */
  readonly results: JsonValue | undefined
}

/** A step of the request path that waited. */
export type Wait = { readonly step: string; readonly durationMs: number }

/** Times of a request: `Clock.monotonic()`, milliseconds. */
export type Times = {
  /** Steps that waited, in order. */
  readonly waits: Wait[]
  /** All policies admitted the request. */
  backendAt: number | undefined
  /** The backend replied. */
  repliedAt: number | undefined
  /** All policies handled the reply. */
  readyAt: number | undefined
  /** Policy that ended the request phase by a reply or an error. */
  stoppedBy: string | undefined
}

/**
 * Decisions and times of a request for its entry in the ledger. Exists only for requests with an entry, so
 * that others allocate nothing.
 */
export type Recording = {
  /** Checked limits in order; written by `policies/rate-limit`. */
  limits: LimitDecision[] | undefined
  /** All decisions of guards, neutral ones included; written by `policies/guardrails`. */
  guards: GuardDecision[] | undefined
  /** Calls of providers and targets in order; written by backends. */
  attempts: AttemptRecord[] | undefined
  /** Written by `policies/mcp-authorization`. */
  items: ItemDecision[] | undefined
  /** Undefined if explanations are off. */
  readonly times: Times | undefined
  /** Successful requests are explained, too. */
  readonly explainsAll: boolean
}

/** `config.logging.explain`: the requests whose entry has an explanation. */
export type Explain = 'errors' | 'all' | 'off'

/** Creates the recording of a request. */
export function createRecording(explain: Explain): Recording {
  return {
    limits: undefined,
    guards: undefined,
    attempts: undefined,
    items: undefined,
    times:
      explain === 'off'
        ? undefined
        : { waits: [], backendAt: undefined, repliedAt: undefined, readyAt: undefined, stoppedBy: undefined },
    explainsAll: explain === 'all',
  }
}

/** Decisions of each kind per request; further ones are not recorded. */
const maxDecisions = 32

/** Records a step that waited since `from`. */
export function recordWait(times: Times, step: string, from: number | undefined, clock: Clock): void {
  if (from !== undefined && times.waits.length < maxDecisions)
    times.waits.push({ step, durationMs: clock.monotonic() - from })
}

/** Records the status of a limit. */
export function recordLimit(
  recording: Recording,
  { limit, unit, refused }: Pick<LimitDecision, 'limit' | 'unit' | 'refused'>,
  status: { readonly limit: number; readonly remaining: number; readonly resetSeconds: number },
): void {
  recording.limits ??= []
  if (recording.limits.length >= maxDecisions) return
  const { limit: capacity, remaining, resetSeconds } = status
  recording.limits.push({ limit, unit, capacity, remaining, resetSeconds, refused })
}

/** Records a decision of a guard. Equal decisions, as of the windows of a stream, are merged. */
export function recordGuard(recording: Recording, decision: GuardDecision): void {
  recording.guards ??= []
  const { guards } = recording
  const { guard, phase, outcome, durationMs } = decision
  const index = guards.findIndex(
    (known) => known.guard === guard && known.phase === phase && known.outcome === outcome,
  )
  const known = guards[index]
  if (known !== undefined) guards[index] = { ...known, durationMs: known.durationMs + durationMs }
  else if (guards.length < maxDecisions) guards.push(decision)
}

/** Records the decision of item rules on a call. */
export function recordItem(recording: Recording, decision: ItemDecision): void {
  recording.items ??= []
  if (recording.items.length < maxDecisions) recording.items.push(decision)
}

/** Records the start of a call of a provider or target. Times are recorded for explanations only. */
export function recordAttempt(
  recording: Recording,
  { target, provider, model, session }: Pick<AttemptRecord, 'target' | 'provider' | 'model' | 'session'>,
  clock: Clock,
): AttemptRecord {
  const attempt: AttemptRecord = {
    target,
    provider,
    model,
    session,
    sent: true,
    startedAt: recording.times && clock.monotonic(),
    status: undefined,
    upstreamRequestId: undefined,
    failure: undefined,
    headAt: undefined,
    endedAt: undefined,
  }
  recording.attempts ??= []
  if (recording.attempts.length < maxDecisions) recording.attempts.push(attempt)
  return attempt
}

/** Records the head of a response. */
export function recordHead(
  attempt: AttemptRecord,
  { status, headers }: { readonly status: number; readonly headers: Headers },
  clock: Clock,
): void {
  attempt.status = status
  attempt.upstreamRequestId = firstHeader(headers, 'x-request-id') ?? firstHeader(headers, 'request-id')
  if (attempt.startedAt !== undefined) attempt.headAt = clock.monotonic()
}

/** Records the failure of a call. */
export function recordFailure(attempt: AttemptRecord, failure: string, clock: Clock): void {
  attempt.failure = failure
  if (attempt.startedAt !== undefined) attempt.endedAt = clock.monotonic()
}
