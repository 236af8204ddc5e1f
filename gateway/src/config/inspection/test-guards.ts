import { setTimeout as delay } from 'node:timers/promises'
import { createLocalMemory } from '../../lib/planes/memory.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { compileGuards } from '../../policies/guardrails/compile-guards.ts'
import type { GuardrailsConfig } from '../../policies/guardrails/config.ts'
import { findHunks } from '../../policies/guardrails/content/text-change.ts'
import type { Guard, Phase } from '../../policies/guardrails/guard.ts'
import type { WebhookLimits } from '../../policies/guardrails/kinds/webhook/limits.ts'
import { runGuards } from '../../policies/guardrails/run.ts'
import type { Content } from '../../policies/guardrails/view.ts'
import type { GuardOutcome } from '../../telemetry/metrics/rules-and-guards.ts'
import type { Config } from '../schema.ts'
import { trafficSections } from '../traffic/sections.ts'
import { createDetachedExchange } from './detached-exchange.ts'

/** Test of guards on texts, without traffic. */
export type GuardTest = {
  /** Undefined for the guards of `llm` in the active configuration. */
  readonly guards: GuardrailsConfig | undefined
  readonly texts: readonly { readonly role: string; readonly content: string }[]
  readonly direction: Phase
}

export type GuardTestResult = {
  readonly outcome: 'passed' | 'masked' | 'rejected' | 'failed'
  /** Texts after all guards. */
  readonly texts: readonly { readonly role: string; readonly content: string }[]
  /** Response to the client, if a guard rejects. */
  readonly rejection?: { readonly status: number; readonly body: string }
  /** Guards that ran, in order: none runs after a rejection. */
  readonly guards: readonly TestedGuard[]
}

export type TestedGuard = {
  readonly name: string
  readonly outcome: GuardOutcome
  readonly reason?: string
  readonly ms: number
  /** Replaced parts of the texts before this guard. */
  readonly matches: readonly GuardMatch[]
}

/** A replaced part of a text: its offsets in UTF-16 units, and both texts. */
export type GuardMatch = {
  readonly text: number
  readonly start: number
  readonly end: number
  readonly before: string
  readonly after: string
}

export type GuardTestContext = {
  readonly config: Config
  readonly context: CompileContext
  readonly limits: WebhookLimits
}

const maxTestMs = 15_000
const maxMatches = 200
/** Calls of one test to a webhook: tests do not use the slots of traffic. */
const maxCalls = 4

/** Runs compiled guards on texts, webhooks included. Counts in no metric and in no limit of traffic. */
export async function testGuards(
  { guards, texts, direction }: GuardTest,
  { config, context, limits }: GuardTestContext,
): Promise<GuardTestResult> {
  const records: { outcome: GuardOutcome; durationMs: number }[] = []
  const silent = silentContext(context, (outcome, durationMs) => records.push({ outcome, durationMs }))
  const { backends } = trafficSections(config)
  const sets = guards === undefined ? configuredGuards(config) : [{ scope: 'test', config: guards }]
  const places = { backends, limits: { ...limits, maxConnections: maxCalls } }
  const compiled = sets
    .flatMap(({ scope, config: set }) => compileGuards(set, { scope, ...places }, silent)[direction])
    // The texts of a test are those of the scopes.
    .map((guard): Guard => ({ ...guard, scopes: undefined }))
  const exchange = createDetachedExchange({}, context.clock)
  const state = { texts: texts.map((text): Content => ({ ...text, fixed: false })) }
  const tested: TestedGuard[] = []
  const deadline = context.clock.monotonic() + maxTestMs
  for (const guard of compiled) {
    const before = state.texts
    exchange.guards = undefined
    const left = deadline - context.clock.monotonic()
    const outcome = await atMost(runOne(guard, { texts: before, exchange, direction, context }), left)
    const { outcome: decision = 'fail_closed', durationMs = maxTestMs } = records.at(-1) ?? {}
    const reason = outcome === 'late' ? 'the test took longer than 15 s' : reasonOf(exchange)
    const changed = outcome !== 'late' && outcome.kind === 'changed' ? outcome.contents : undefined
    if (changed !== undefined)
      state.texts = before.map((text, index) => ({ ...text, content: changed[index] ?? text.content }))
    tested.push({
      name: guard.name,
      outcome: outcome === 'late' ? 'fail_closed' : decision,
      ...(reason === undefined ? {} : { reason }),
      ms: Math.round(durationMs * 100) / 100,
      matches: changed === undefined ? [] : matchesOf(before, changed),
    })
    if (outcome === 'late') return resultOf('failed', state.texts, tested)
    if (outcome.kind !== 'rejected') continue
    const { status, body } = outcome.rejection
    const kind = decision === 'fail_closed' ? 'failed' : 'rejected'
    return { ...resultOf(kind, state.texts, tested), rejection: { status, body } }
  }
  const isMasked = tested.some(({ outcome }) => outcome === 'mask')
  return resultOf(isMasked ? 'masked' : 'passed', state.texts, tested)
}

function resultOf(
  outcome: GuardTestResult['outcome'],
  texts: readonly Content[],
  guards: readonly TestedGuard[],
): GuardTestResult {
  return { outcome, texts: texts.map(({ role, content }) => ({ role, content })), guards }
}

/** The guard of a run sets its reason. */
function reasonOf({ guards }: Run['exchange']): string | undefined {
  return guards?.[0]?.reason
}

type Run = {
  readonly texts: readonly Content[]
  readonly exchange: ReturnType<typeof createDetachedExchange>
  readonly direction: Phase
  readonly context: CompileContext
}

function runOne(guard: Guard, { texts, exchange, direction, context }: Run) {
  const replyHeaders = direction === 'response' ? {} : undefined
  const checked = { phase: direction, texts, unknownType: undefined, exchange, replyHeaders }
  return runGuards([guard], { ...checked, clock: context.clock })
}

async function atMost<T>(work: Promise<T>, ms: number): Promise<T | 'late'> {
  const cancellation = new AbortController()
  try {
    const late = delay(Math.max(1, ms), 'late' as const, { signal: cancellation.signal })
    return await Promise.race([work, late])
  } finally {
    cancellation.abort()
  }
}

/** A context whose guards neither count in metrics nor occupy the slots of traffic. */
function silentContext(
  context: CompileContext,
  record: (outcome: GuardOutcome, durationMs: number) => void,
): CompileContext {
  const own = new Map<string, object>()
  return {
    ...context,
    memory: createLocalMemory(),
    metrics: {
      ...context.metrics,
      guard: () => ({ checked: (_phase, outcome, durationMs) => record(outcome, durationMs) }),
    },
    retained<T extends object>(name: string, create: () => T): T {
      if (!name.startsWith('guardrails/')) return context.retained(name, create)
      const known = own.get(name)
      // The guard: each name has one creator.
      if (known !== undefined) return known as T
      const created = create()
      own.set(name, created)
      return created
    },
  }
}

function configuredGuards({ llm }: Config): { scope: string; config: GuardrailsConfig }[] {
  return [
    ...(llm?.guardrails === undefined ? [] : [{ scope: 'llm', config: llm.guardrails }]),
    ...(llm?.policies?.guardrails === undefined
      ? []
      : [{ scope: 'llm.policies', config: llm.policies.guardrails }]),
  ]
}

function matchesOf(before: readonly Content[], after: readonly string[]): GuardMatch[] {
  return before
    .flatMap(({ content }, text) =>
      findHunks(content, after[text] ?? content).map(({ start, end, text: replacement }) => ({
        text,
        start,
        end,
        before: content.slice(start, end),
        after: replacement,
      })),
    )
    .slice(0, maxMatches)
}
