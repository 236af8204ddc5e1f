import type { LedgerEntry } from '../../ledger/entry.ts'
import type { Clock } from '../../lib/clock.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import type { JsonObject, JsonValue } from '../../lib/json/json.ts'
import type { Delivery } from '../../net/http/incoming-request.ts'
import type { Exchange } from '../exchange.ts'
import type { BudgetStatus } from '../limits/limits.ts'
import type { Policy } from '../policy.ts'
import type { HttpListener } from '../snapshot.ts'
import { amountOf, causeOf } from './cause.ts'
import type { AttemptRecord, Recording, Times } from './recording.ts'

/** Maximum size of an explanation in characters of JSON. */
export const maxExplanationLength = 16_384

/** Inputs of an explanation besides the exchange. */
export type ExplanationInputs = {
  readonly entry: LedgerEntry
  /** Policies that the request entered, in order. */
  readonly entered: readonly Policy[]
  readonly listener: Pick<HttpListener, 'explain'> | undefined
  readonly delivery: Delivery
  /** `Clock.monotonic()` at the end of the exchange. */
  readonly endedAt: number
}

/**
 * Explains a finished request as JSON text: route, key, rules, limits, guards, attempts and times. Undefined
 * if `config.logging.explain` excludes the request. Contains configured texts and figures: no contents,
 * header values, query strings or credentials, and no claims beside user and group.
 */
export function explanationOf(exchange: Exchange, inputs: ExplanationInputs): string | undefined {
  if (!isExplained(exchange, inputs)) return undefined
  try {
    return explain(exchange, inputs)
  } catch {
    // An error here must not lose the entry, whose amounts count.
    return undefined
  }
}

/** Explanations per second of one listener: about 2 % of a core, so that refused floods cost little. */
const maxPerSecond = 1_000

/** Creates `explanationOf` with a limit per second; further requests have no explanation. */
export function createExplainer({ monotonic }: Clock): typeof explanationOf {
  let second = 0
  let count = 0
  return (exchange, inputs) => {
    if (!isExplained(exchange, inputs)) return undefined
    const now = Math.floor(monotonic() / 1000)
    if (now !== second) {
      second = now
      count = 0
    }
    count += 1
    return count > maxPerSecond ? undefined : explanationOf(exchange, inputs)
  }
}

function isExplained(exchange: Exchange, inputs: ExplanationInputs): boolean {
  const { recording } = exchange
  if (recording?.times === undefined) return false
  return recording.explainsAll || hasFailed(exchange, recording, inputs)
}

function explain(exchange: Exchange, inputs: ExplanationInputs): string | undefined {
  const { recording } = exchange
  const times = recording?.times
  if (recording === undefined || times === undefined) return undefined
  const { entry, endedAt, entered } = inputs
  const deciding = entered.filter(({ onRequest, explain: describes }) => onRequest ?? describes)
  const policies = deciding.map((policy) => describePolicy(policy, exchange, times))
  const attempts = recording.attempts?.map((attempt) => describeAttempt(attempt, exchange, endedAt))
  return boundedJson({
    cause: causeOf(exchange, recording, { entry, policies }),
    outcome: describeOutcome(exchange, times, entry),
    times: describeTimes(exchange, times, inputs),
    key: describeKey(exchange),
    identity: identityOf(entry),
    attempts,
    cache: exchange.facts.llm?.cache,
    limits: recording.limits?.map((limit) => ({ ...limit })),
    budgets: exchange.budgets?.map((status) => describeBudget(status, entry)),
    guards: recording.guards?.map((guard) => ({ ...guard, durationMs: round(guard.durationMs) })),
    items: recording.items?.map((item) => ({ ...item })),
    policies,
    routing: describeRouting(exchange, inputs),
  })
}

/** Whether a request is explained by default: refused, failed, incomplete, or with a failed attempt. */
function hasFailed(
  { log }: Exchange,
  { attempts }: Recording,
  { entry, delivery }: ExplanationInputs,
): boolean {
  if (entry.status >= 400 || !delivery.complete) return true
  if (log.refusedBy !== undefined || log.failure !== undefined) return true
  return attempts?.some(({ failure }) => failure !== undefined) === true
}

/** Sections that are dropped if an explanation is too long, the least important first. */
const droppable = ['routing', 'policies', 'items', 'guards', 'limits', 'budgets', 'attempts'] as const

type Sections = { readonly [name: string]: unknown }

function boundedJson(sections: Sections): string {
  let text = JSON.stringify(sections)
  const kept: Record<string, unknown> = { ...sections }
  const omitted: string[] = []
  for (const name of droppable) {
    if (text.length <= maxExplanationLength) return text
    if (kept[name] === undefined) continue
    delete kept[name]
    omitted.push(name)
    text = JSON.stringify({ ...kept, truncated: omitted })
  }
  return text
}

function describeOutcome({ log }: Exchange, { stoppedBy }: Times, entry: LedgerEntry): Sections {
  const { status, errorCode, refusedBy, incomplete } = entry
  return {
    status,
    errorCode,
    refusedBy,
    // The last entered policy of a request that reached no backend.
    stoppedBy,
    incomplete: incomplete || undefined,
    failure: failureOf(log.failure),
  }
}

/** Codes of an error and its cause. Messages may contain data of a peer. */
function failureOf(error: unknown): Sections | undefined {
  if (!(error instanceof Error)) return undefined
  const code = error instanceof GatewayError ? error.code : 'internal'
  const system = systemCode(error.cause) ?? systemCode(error)
  return { code, system }
}

function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  const { code } = error
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,60}$/.test(code) ? code : undefined
}

/** Times of the phases in milliseconds. A phase that did not take place is absent. */
function describeTimes(
  { startedAt }: Exchange,
  { waits, backendAt, repliedAt, readyAt }: Times,
  { delivery: { firstByteAt }, endedAt }: ExplanationInputs,
): Sections {
  return {
    totalMs: round(endedAt - startedAt),
    // Includes the waits of policies before the backend.
    policiesMs: between(startedAt, backendAt ?? repliedAt),
    waits:
      waits.length === 0 ? undefined : waits.map(({ step, durationMs }) => ({ step, ms: round(durationMs) })),
    backendMs: between(backendAt, repliedAt),
    replyMs: between(repliedAt, readyAt),
    firstByteMs: between(startedAt, firstByteAt),
    streamMs: between(firstByteAt, endedAt),
  }
}

function between(from: number | undefined, to: number | undefined): number | undefined {
  return from === undefined || to === undefined ? undefined : round(to - from)
}

/** The accepted key and its permissions; undefined without one. */
function describeKey({ facts: { apiKey }, auth }: Exchange): Sections | undefined {
  if (apiKey === undefined) return undefined
  return {
    id: textOf(apiKey['id']),
    name: textOf(apiKey['name']),
    group: textOf(apiKey['group']),
    models: auth.models && some(auth.models.patterns),
    targets: auth.targets && some(auth.targets.patterns),
    expiresAt: auth.expiresAt === undefined ? undefined : new Date(auth.expiresAt).toISOString(),
    budgets: auth.budgets?.flatMap(({ budgets }) => budgets.map(({ name }) => name)),
    limits: auth.limits?.map(({ label, capacity }) => `${label}: ${capacity}`),
  }
}

/** The value of a budget may be a claim, of which only those of the identity are shown. */
function describeBudget(
  { budget, name, value, unit, limit, used, reserved, estimate, window, outcome }: BudgetStatus,
  { keyId, keyName, user, group }: LedgerEntry,
): Sections {
  const known = value === '' || [keyId, keyName, user, group].includes(value)
  const [start, end] = [window.start, window.end].map((time) => new Date(time).toISOString())
  const amount = (counted: number) => amountOf(counted, unit)
  return {
    budget,
    name,
    value: known ? value : '(not shown)',
    unit,
    limit: amount(limit),
    used: amount(used),
    reserved: amount(reserved),
    left: amount(Math.max(0, limit - used - reserved)),
    estimate: amount(estimate),
    outcome,
    window: { start, end },
  }
}

const maxPatterns = 50

function some(patterns: readonly string[]): readonly string[] {
  return patterns.length <= maxPatterns ? patterns : [...patterns.slice(0, maxPatterns), '…']
}

function identityOf({ user, group }: LedgerEntry): Sections | undefined {
  return user === undefined && group === undefined ? undefined : { user, group }
}

function describeAttempt(attempt: AttemptRecord, { startedAt }: Exchange, endedAt: number): Sections {
  const { target, provider, model, session, sent, status, failure } = attempt
  return {
    target,
    provider,
    model,
    session,
    outcome: outcomeOf(attempt),
    status,
    failure: sent ? failure : undefined,
    skipped: sent ? undefined : failure,
    startMs: between(startedAt, attempt.startedAt),
    firstByteMs: between(attempt.startedAt, attempt.headAt),
    durationMs: between(attempt.startedAt, attempt.endedAt ?? endedAt),
  }
}

function outcomeOf({ sent, failure, status }: AttemptRecord): string {
  if (!sent) return 'skipped'
  if (failure !== undefined) return 'failed'
  return status === undefined ? 'no response' : 'responded'
}

/** A policy, its result, its time if it waited, and its own description. */
function describePolicy(policy: Policy, exchange: Exchange, { stoppedBy, waits }: Times): JsonObject {
  const waited = waits.find(({ step }) => step === policy.name)
  const described = describeDecision(policy, exchange)
  return {
    policy: policy.name,
    result: policy.name === stoppedBy ? 'stopped' : 'passed',
    ...(waited && { durationMs: round(waited.durationMs) }),
    ...(described !== undefined && { decision: described }),
  }
}

/** An error in a description must not lose the entry. */
function describeDecision(policy: Policy, exchange: Exchange): JsonValue | undefined {
  try {
    return policy.explain?.(exchange)
  } catch {
    return 'not available'
  }
}

function describeRouting({ facts, route }: Exchange, { listener }: ExplanationInputs): Sections {
  const name = route?.target.name
  if (listener?.explain === undefined) return { listener: route?.target.listener, route: name }
  const { candidates } = listener.explain(facts.request)
  return {
    listener: route?.target.listener,
    route: name,
    candidates: candidates.map(({ target, hostname, path, result }) => {
      const { kind, ...reason } = result
      return { route: target.name, hostname, path: `${path.kind} ${path.value}`, result: kind, ...reason }
    }),
  }
}

const maxText = 200

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value.slice(0, maxText) : undefined
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100
}
