import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { NamedBackend } from '../../upstream/config.ts'
import {
  type GuardConfig,
  type GuardrailsConfig,
  rejectionEdit,
  rejectionOf,
  type StreamingMode,
  streamingModeOf,
} from './config.ts'
import type { Check, Guard, Phase, Rejection } from './guard.ts'
import { compileKind, nameOfKind } from './kinds/kinds.ts'
import type { WebhookLimits } from './kinds/webhook/limits.ts'

/** Guards of one scope. */
export type GuardSet = {
  readonly request: readonly Guard[]
  readonly response: readonly Guard[]
  /** Undefined if the scope does not configure it. */
  readonly streaming: StreamingMode | undefined
}

export type GuardOptions = {
  /**
   * Name of the scope, the prefix of unnamed guards in metrics and logs: `llm`, `model gpt-4o`, `route chat`.
   */
  scope: string
  backends: readonly NamedBackend[]
  limits: WebhookLimits
}

/** Compiles the guards of one scope. Throws on errors that `checkGuardrails` reports. */
export function compileGuards(
  config: GuardrailsConfig,
  options: GuardOptions,
  context: CompileContext,
): GuardSet {
  const allowsUnknown = config.unknownContent === 'allow'
  const compile = (phase: Phase) =>
    (config[phase] ?? []).map((entry, index) =>
      compileGuard(entry, { ...options, phase, index, allowsUnknown }, context),
    )
  return { request: compile('request'), response: compile('response'), streaming: streamingModeOf(config) }
}

type GuardAt = { phase: Phase; index: number; allowsUnknown: boolean }

function compileGuard(
  entry: GuardConfig,
  { scope, phase, index, allowsUnknown, backends, limits }: GuardOptions & GuardAt,
  context: CompileContext,
): Guard {
  const name = entry.name ?? `${scope} ${phase} ${nameOfKind(entry)} ${index + 1}`
  const kind = compileKind(entry, { phase, backends, limits, rejection: rejectionOf(entry) }, context)
  const edit = rejectionEdit(entry)
  return {
    ...kind,
    name,
    allowsUnknown,
    scopes: entry.scope && new Set(entry.scope),
    meter: context.metrics.guard(name),
    check: edit === undefined ? kind.check : withEditedRejection(kind.check, edit),
  }
}

function withEditedRejection(check: Check, edit: (rejection: Rejection) => Rejection): Check {
  return async (question) => {
    const verdict = await check(question)
    return verdict.kind === 'reject' ? { ...verdict, rejection: edit(verdict.rejection) } : verdict
  }
}
