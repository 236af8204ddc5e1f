import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { NamedBackend } from '../../pipeline/destinations/config.ts'
import {
  type GuardConfig,
  type GuardrailsConfig,
  rejectionEdits,
  rejectionOf,
  type StreamingMode,
  streamingModeOf,
} from './config.ts'
import type { Check, Guard, Phase } from './guard.ts'
import { compileKind, nameOfKind } from './kinds/index.ts'
import type { WebhookLimits } from './kinds/webhook/limits.ts'

/** The guards of one place. */
export type GuardSet = {
  readonly request: readonly Guard[]
  readonly response: readonly Guard[]
  /** Undefined where the place does not say. */
  readonly streaming: StreamingMode | undefined
}

export type GuardOptions = {
  /** Names the guards in metrics and logs that have no name of their own: `llm`, `model gpt-4o`, `route chat`. */
  place: string
  backends: readonly NamedBackend[]
  limits: WebhookLimits
}

/** Compiles the guards of one place. Throws on what `checkGuardrails` reports. */
export function compileGuards(
  config: GuardrailsConfig,
  options: GuardOptions,
  context: CompileContext,
): GuardSet {
  const compile = (phase: Phase) =>
    (config[phase] ?? []).map((entry, index) => compileGuard(entry, { ...options, phase, index }, context))
  return { request: compile('request'), response: compile('response'), streaming: streamingModeOf(config) }
}

function compileGuard(
  entry: GuardConfig,
  { place, phase, index, backends, limits }: GuardOptions & { phase: Phase; index: number },
  context: CompileContext,
): Guard {
  const name = entry.name ?? `${place} ${phase} ${nameOfKind(entry)} ${index + 1}`
  const kind = compileKind(entry, { phase, backends, limits, rejection: rejectionOf(entry) }, context)
  const edit = rejectionEdits(entry)
  return {
    ...kind,
    name,
    meter: context.metrics.guard(name),
    check: edit === undefined ? kind.check : withRejectionHeaders(kind.check, edit),
  }
}

function withRejectionHeaders(check: Check, edit: NonNullable<ReturnType<typeof rejectionEdits>>): Check {
  return async (question) => {
    const verdict = await check(question)
    if (verdict.kind !== 'reject') return verdict
    const headers = { ...verdict.rejection.headers }
    edit(headers)
    return { ...verdict, rejection: { ...verdict.rejection, headers } }
  }
}
