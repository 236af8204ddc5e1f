import { formatPath, type Path } from '../../../../schema/path.ts'
import { fileValue } from '../../../own-kinds/enumerations.ts'
import type { Guard, PromptGuard } from '../../../own-kinds/gateway-policy/guards.ts'
import type { RoutePolicies } from '../../plan.ts'
import type { Lookups } from '../lookups.ts'
import { type Field, type FieldKind, fieldOf } from './field.ts'
import { type ResolvedBackend, resolveBackend } from './resolve-backend.ts'

export type Guardrails = NonNullable<NonNullable<RoutePolicies['ai']>['promptGuard']>
type FileGuard = NonNullable<Guardrails['request']>[number]
type Phase = 'request' | 'response'

/** `backend.ai.promptGuard.request`. */
export const requestGuardField = guardField('request')

/** `backend.ai.promptGuard.response`. */
export const responseGuardField = guardField('response')

function guardField(phase: Phase): FieldKind {
  return {
    path: `backend.ai.promptGuard.${phase}`,
    traffic: ['llm'],
    levels: 'mostSpecific',
    translate({ backend }, lookups) {
      const promptGuard = backend?.ai?.promptGuard
      const guards = promptGuard?.[phase]
      return promptGuard && guards && translateGuards(phase, guards, promptGuard, lookups)
    },
  }
}

function translateGuards(
  phase: Phase,
  guards: readonly Guard[],
  { streaming, unknownContent }: PromptGuard,
  lookups: Lookups,
): Field {
  const path: Path = ['backend', 'ai', 'promptGuard', phase]
  const translated = guards.map((guard, index) => translateGuard(guard, [...path, index], lookups))
  const promptGuard: Guardrails = {
    [phase]: translated.map(({ guard }) => guard),
    // Streams have responses only.
    ...(phase === 'response' && streaming && { streaming: fileValue(streaming) }),
    ...(unknownContent && { unknownContent: fileValue(unknownContent) }),
  }
  const place = { place: ['ai', 'promptGuard', phase], path, rename: renameTarget }
  return {
    ...fieldOf({ ai: { promptGuard } }, place),
    backends: translated.flatMap(({ resolved }) => resolved?.backends ?? []),
    mistakes: translated.flatMap(({ resolved }) => resolved?.mistakes ?? []),
    unresolved: translated.flatMap(({ resolved }) => resolved?.unresolved ?? []),
  }
}

/** Translates a guard at a path below `spec`. */
export function translateGuard(
  guard: Guard,
  path: Path,
  lookups: Lookups,
): { guard: FileGuard; resolved?: ResolvedBackend } {
  const { webhook, regex, scope, ...fields } = guard
  const common = { ...fields, ...(scope && { scope: scope.map(fileValue) }) }
  if (webhook === undefined) return { guard: { ...common, regex: translateRegex(regex) } }
  const { backendRef, failureMode, action, ...headers } = webhook
  const resolved = resolveBackend(backendRef, [...path, 'webhook', 'backendRef'], lookups)
  return {
    guard: {
      ...common,
      webhook: {
        target: { backend: resolved.reference },
        // A broken reference is a mistake, not an outage: the guard stays and refuses.
        ...(failureMode && !resolved.isBroken && { failureMode: fileValue(failureMode) }),
        ...(action && { action: fileValue(action) }),
        ...headers,
      },
    },
    resolved,
  }
}

function translateRegex({ action, rules, failureMode }: NonNullable<Guard['regex']>) {
  return {
    ...(action && { action: fileValue(action) }),
    rules: rules.map((rule) =>
      rule.builtin === undefined ? { pattern: rule.pattern } : { builtin: fileValue(rule.builtin) },
    ),
    ...(failureMode && { failureMode: fileValue(failureMode) }),
  }
}

/** Path of a guard's reference in place of its target. */
export function renameTarget(rest: Path): Path {
  const text = formatPath(rest)
  return text.includes('webhook.target') ? [...rest.slice(0, 2), 'backendRef'] : rest
}

/** Merges the guards of both phases, which may be from two policies. */
export function mergeGuards(request: Guardrails | undefined, response: Guardrails | undefined): Guardrails {
  const allows = [request, response].every(
    (guards) => guards === undefined || guards.unknownContent === 'allow',
  )
  return {
    ...(request?.request && { request: request.request }),
    ...(response?.response && { response: response.response }),
    ...(response?.streaming && { streaming: response.streaming }),
    // The stricter one applies.
    ...(allows && { unknownContent: 'allow' as const }),
  }
}
