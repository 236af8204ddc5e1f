import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../lib/clock.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { Exchange, GuardDecision } from '../../pipeline/exchange.ts'
import type { GuardOutcome } from '../../telemetry/metrics/policies.ts'
import {
  CheckFailure,
  type Guard,
  type GuardText,
  type Phase,
  type Rejection,
  type Verdict,
} from './guard.ts'

/** What is shown to guards; a text that is nowhere written cannot be changed. */
export type Content = GuardText & { readonly fixed: boolean }

/** What guards are held against. */
export type CheckedContent = {
  readonly phase: Phase
  /** Undefined where content cannot be shown: every check of it fails. */
  readonly texts: readonly Content[] | undefined
  /** A type of content that is not known, so that its texts may have been missed. */
  readonly unknownType: string | undefined
  readonly exchange: Exchange
  readonly replyHeaders: Headers | undefined
  readonly clock: Clock
}

/** What guards came to: the content as it was, as they changed it, or a rejection in its place. */
export type Outcome =
  | { readonly kind: 'pass' }
  | { readonly kind: 'changed'; readonly contents: readonly string[] }
  | { readonly kind: 'rejected'; readonly rejection: Rejection; readonly guard: string }

/**
 * Asks the guards one after another, each about what the ones before it made of the content, until one rejects. A check
 * that fails rejects, unless its guard fails open: whatever goes wrong, content is not let through unchecked.
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
    const note = (outcome: GuardOutcome, reason: string | undefined) => {
      guard.meter.checked(phase, outcome, clock.monotonic() - startedAt)
      if (outcome !== 'allow') recordDecision(exchange, { guard: guard.name, phase, outcome, reason })
    }
    let verdict: Verdict
    try {
      if (texts === undefined) throw new CheckFailure('content that cannot be read')
      if (unknownType !== undefined && !guard.allowsUnknown) throw unknownContent(unknownType)
      const answer = guard.check({ texts, exchange, replyHeaders })
      verdict = answer instanceof Promise ? await answer : answer
      if (verdict.kind === 'modify') checkChange(texts, verdict.contents)
    } catch (error) {
      if (exchange.cancellation.cancelled) {
        note('cancelled', undefined)
        throw new GatewayError('request_aborted', 'the client closed the connection', { cause: error })
      }
      const reason = failureReason(error)
      note(guard.failOpen ? 'fail_open' : 'fail_closed', reason)
      if (guard.failOpen) continue
      exchange.log.failure ??= error
      return { kind: 'rejected', rejection: failureRejections[phase], guard: guard.name }
    }
    if (verdict.kind === 'allow') {
      note('allow', undefined)
    } else if (guard.audit) {
      note(verdict.kind === 'reject' ? 'audit_reject' : 'audit_mask', verdict.reason)
    } else if (verdict.kind === 'reject') {
      note('reject', verdict.reason)
      return { kind: 'rejected', rejection: verdict.rejection, guard: guard.name }
    } else {
      note('mask', verdict.reason)
      const { contents } = verdict
      texts = texts.map((text, index) => ({ ...text, content: contents[index] ?? text.content }))
      changed = true
    }
  }
  if (!changed || texts === undefined) return { kind: 'pass' }
  return { kind: 'changed', contents: texts.map(({ content }) => content) }
}

/** Guards that look for patterns answer at once: many of them take turns with traffic. */
const maxTurnMs = 10

/** Notes that content was not shown to guards at all. */
export function recordSkipped(guards: readonly Guard[], exchange: Exchange, phase: Phase): void {
  for (const { meter, name } of guards) {
    meter.checked(phase, 'skipped', 0)
    recordDecision(exchange, { guard: name, phase, outcome: 'skipped', reason: undefined })
  }
}

function checkChange(texts: readonly Content[], contents: readonly string[]): void {
  if (contents.length !== texts.length) {
    throw new CheckFailure(`${contents.length} texts came back for ${texts.length}`)
  }
  for (const [index, { content, fixed }] of texts.entries()) {
    if (fixed && contents[index] !== content) throw new CheckFailure('text came back where there was none')
  }
}

/** Types come from outside: only what looks like one is logged. */
function unknownContent(type: string): CheckFailure {
  const name = /^[\w.:-]{1,64}$/.test(type) ? ` "${type}"` : ''
  return new CheckFailure(`content of unknown type${name}`)
}

function failureReason(error: unknown): string {
  if (error instanceof CheckFailure) return error.message
  return error instanceof GatewayError ? error.code : 'internal'
}

/** Windows of a stream come to the same again and again. */
const maxDecisions = 16

function recordDecision(exchange: Exchange, decision: GuardDecision): void {
  const decisions = exchange.guards ?? []
  exchange.guards = decisions
  if (decisions.length >= maxDecisions) return
  const { guard, phase, outcome } = decision
  const isKnown = decisions.some(
    (known) => known.guard === guard && known.phase === phase && known.outcome === outcome,
  )
  if (!isKnown) decisions.push(decision)
}

/** The words that users of such gateways know. */
const failureRejections: Readonly<Record<Phase, Rejection>> = {
  request: failure('failed to process LLM request: prompt guard failed'),
  response: failure('failed to process LLM response: prompt guard failed'),
}

function failure(body: string): Rejection {
  return { status: 503, body, headers: { 'content-type': 'text/plain' } }
}
