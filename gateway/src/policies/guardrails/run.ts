import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../lib/clock.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { type GuardDecision, recordGuard } from '../../pipeline/recording/recording.ts'
import type { GuardOutcome } from '../../telemetry/metrics/rules-and-guards.ts'
import { CheckFailure, type Guard, type Phase, type Rejection, type Verdict } from './guard.ts'
import { type Content, viewOf } from './view.ts'

/** Content to check and its context. */
export type CheckedContent = {
  readonly phase: Phase
  /** Undefined for unreadable content: every check of it fails. */
  readonly texts: readonly Content[] | undefined
  /** Unknown content type, which may contain unchecked text. */
  readonly unknownType: string | undefined
  readonly exchange: Exchange
  readonly replyHeaders: Headers | undefined
  readonly clock: Clock
}

/** Outcome of all guards: unchanged content, modified content, or a rejection. */
export type Outcome =
  | { readonly kind: 'pass' }
  | { readonly kind: 'changed'; readonly contents: readonly string[] }
  | {
      readonly kind: 'rejected'
      readonly rejection: Rejection
      readonly guard: string
      /** The check failed. */
      readonly isFailure?: true
    }

/**
 * Runs the guards in order, each on the content as modified by earlier ones, until one rejects. A failed
 * check rejects unless its guard fails open.
 */
export async function runGuards(guards: readonly Guard[], checked: CheckedContent): Promise<Outcome> {
  const { exchange, phase, replyHeaders, clock, unknownType } = checked
  let texts = checked.texts
  let changed = false
  let turnStartedAt = clock.monotonic()
  for (const guard of guards) {
    let startedAt = clock.monotonic()
    if (startedAt - turnStartedAt > maxTurnMs) {
      await setImmediate()
      turnStartedAt = clock.monotonic()
      startedAt = turnStartedAt
    }
    const record = (outcome: GuardOutcome, reason: string | undefined) => {
      const durationMs = clock.monotonic() - startedAt
      guard.meter.checked(phase, outcome, durationMs)
      recordDecision(exchange, { guard: guard.name, phase, outcome, reason, durationMs })
    }
    let verdict: Verdict
    try {
      if (texts === undefined) throw new CheckFailure('unreadable content')
      if (unknownType !== undefined && !guard.allowsUnknown) throw unknownContent(unknownType)
      const view = viewOf(texts, guard, phase)
      const isEmpty = view.shown.length === 0 && (guard.scopes !== undefined || texts.length > 0)
      const answer = isEmpty ? allow : guard.check({ texts: view.shown, exchange, replyHeaders })
      verdict = answer instanceof Promise ? await answer : answer
      if (verdict.kind === 'modify') {
        checkChange(view.shown, verdict.contents)
        if (!guard.audit) texts = view.apply(verdict.contents)
      }
    } catch (error) {
      if (exchange.cancellation.cancelled) {
        record('cancelled', undefined)
        throw new GatewayError('request_aborted', 'the client closed the connection', { cause: error })
      }
      const reason = failureReason(error)
      record(guard.failOpen ? 'fail_open' : 'fail_closed', reason)
      if (guard.failOpen) continue
      exchange.log.failure ??= error
      return { kind: 'rejected', rejection: failureRejections[phase], guard: guard.name, isFailure: true }
    }
    if (verdict.kind === 'allow') {
      record('allow', undefined)
    } else if (guard.audit) {
      record(verdict.kind === 'reject' ? 'audit_reject' : 'audit_mask', verdict.reason)
    } else if (verdict.kind === 'reject') {
      record('reject', verdict.reason)
      return { kind: 'rejected', rejection: verdict.rejection, guard: guard.name }
    } else {
      record('mask', verdict.reason)
      changed = true
    }
  }
  if (!changed || texts === undefined) return { kind: 'pass' }
  return { kind: 'changed', contents: texts.map(({ content }) => content) }
}

const allow: Verdict = { kind: 'allow' }

/** Maximum run time of synchronous guards before a yield to traffic. */
const maxTurnMs = 10

/** Records content that was not checked. */
export function recordSkipped(guards: readonly Guard[], exchange: Exchange, phase: Phase): void {
  for (const { meter, name } of guards) {
    meter.checked(phase, 'skipped', 0)
    recordDecision(exchange, { guard: name, phase, outcome: 'skipped', reason: undefined, durationMs: 0 })
  }
}

function checkChange(texts: readonly Content[], contents: readonly string[]): void {
  if (contents.length !== texts.length) {
    throw new CheckFailure(`${contents.length} texts returned for ${texts.length}`)
  }
  for (const [index, { content, fixed, isJson }] of texts.entries()) {
    const after = contents[index]
    if (after === content) continue
    if (fixed) throw new CheckFailure('text returned for a fixed text')
    if (isJson === true && !isSameKind(content, after)) throw new CheckFailure('arguments that are not JSON')
  }
}

/** Whether a text is a JSON object, or a list, as the one before. */
function isSameKind(before: string, after: string | undefined): boolean {
  try {
    const value: unknown = JSON.parse(after ?? '')
    return typeof value === 'object' && value !== null && Array.isArray(value) === before.startsWith('[')
  } catch {
    return false
  }
}

/** Creates the failure for an unknown type. Only a well-formed type is logged, because it is client data. */
function unknownContent(type: string): CheckFailure {
  const name = /^[\w.:-]{1,64}$/.test(type) ? ` "${type}"` : ''
  return new CheckFailure(`content of unknown type${name}`)
}

function failureReason(error: unknown): string {
  if (error instanceof CheckFailure) return error.message
  return error instanceof GatewayError ? error.code : 'internal'
}

/** Maximum number of distinct decisions per request. Windows of a stream repeat the same ones. */
const maxDecisions = 16

/** Records a decision for the log and the explanation. */
export function recordDecision(exchange: Exchange, decision: GuardDecision): void {
  if (exchange.recording !== undefined) recordGuard(exchange.recording, decision)
  if (decision.outcome === 'allow') return
  const decisions = exchange.guards ?? []
  exchange.guards = decisions
  if (decisions.length >= maxDecisions) return
  const { guard, phase, outcome } = decision
  const isKnown = decisions.some(
    (known) => known.guard === guard && known.phase === phase && known.outcome === outcome,
  )
  if (!isKnown) decisions.push(decision)
}

/** Rejections of failed checks, with the texts of similar gateways. */
const failureRejections: Readonly<Record<Phase, Rejection>> = {
  request: failure('failed to process LLM request: prompt guard failed'),
  response: failure('failed to process LLM response: prompt guard failed'),
}

function failure(body: string): Rejection {
  return { status: 503, body, headers: { 'content-type': 'text/plain' } }
}
