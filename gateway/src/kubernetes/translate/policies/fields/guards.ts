import { formatPath, type Path } from '../../../../schema/path.ts'
import { fileValue } from '../../../own-kinds/enumerations.ts'
import type { Guard, PromptGuard } from '../../../own-kinds/gateway-policy/guards.ts'
import type { RoutePolicies } from '../../plan.ts'
import type { Lookups } from '../lookups.ts'
import { type Field, type FieldKind, fieldOf } from './field.ts'
import { renameVendor, translateVendor } from './guard-vendors.ts'
import { resolveBackend } from './resolve-backend.ts'

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
  const resolved = translated.flatMap((one) => one.resolved)
  const promptGuard: Guardrails = {
    [phase]: translated.map(({ guard }) => guard),
    // Streams have responses only.
    ...(phase === 'response' && streaming && { streaming: fileValue(streaming) }),
    ...(unknownContent && { unknownContent: fileValue(unknownContent) }),
  }
  const place = { place: ['ai', 'promptGuard', phase], path, rename: renameTarget }
  return {
    ...fieldOf({ ai: { promptGuard } }, place),
    backends: resolved.flatMap(({ backends }) => backends),
    mistakes: resolved.flatMap(({ mistakes }) => mistakes),
    unresolved: resolved.flatMap(({ unresolved }) => unresolved),
  }
}

/** A guard of the file, and the references to its servers. */
type TranslatedGuard = { readonly guard: FileGuard; readonly resolved: readonly References[] }

type References = Pick<Field, 'backends' | 'mistakes' | 'unresolved'>

/** Translates a guard at a path below `spec`. */
export function translateGuard(guard: Guard, path: Path, lookups: Lookups): TranslatedGuard {
  const { name, rejection, scope } = guard
  const common = {
    ...(name !== undefined && { name }),
    ...(rejection && { rejection }),
    ...(scope && { scope: scope.map(fileValue) }),
  }
  if (guard.regex !== undefined)
    return { guard: { ...common, regex: translateRegex(guard.regex) }, resolved: [] }
  if (guard.presidio !== undefined) {
    const { guard: settings, resolved } = translatePresidio(guard.presidio, [...path, 'presidio'], lookups)
    return { guard: { ...common, presidio: settings }, resolved }
  }
  if (guard.webhook !== undefined) {
    const { guard: settings, resolved } = translateWebhook(guard.webhook, [...path, 'webhook'], lookups)
    return { guard: { ...common, webhook: settings }, resolved: [resolved] }
  }
  const { kind, problems } = translateVendor(guard, path, lookups)
  return { guard: { ...common, ...kind }, resolved: problems.map((one) => ({ ...one, backends: [] })) }
}

function translateWebhook(
  { backendRef, failureMode, action, ...headers }: NonNullable<Guard['webhook']>,
  path: Path,
  lookups: Lookups,
) {
  const resolved = resolveBackend(backendRef, [...path, 'backendRef'], lookups)
  const guard: NonNullable<FileGuard['webhook']> = {
    target: { backend: resolved.reference },
    // A broken reference is a mistake, not an outage: the guard stays and refuses.
    ...(failureMode && !resolved.isBroken && { failureMode: fileValue(failureMode) }),
    ...(action && { action: fileValue(action) }),
    ...headers,
  }
  return { guard, resolved }
}

function translatePresidio(
  { analyzer, anonymizer, action, failureMode, ...settings }: NonNullable<Guard['presidio']>,
  path: Path,
  lookups: Lookups,
) {
  const found = resolveBackend(analyzer.backendRef, [...path, 'analyzer', 'backendRef'], lookups)
  const replacing =
    anonymizer && resolveBackend(anonymizer.backendRef, [...path, 'anonymizer', 'backendRef'], lookups)
  const isBroken = found.isBroken || replacing?.isBroken === true
  const guard: NonNullable<FileGuard['presidio']> = {
    analyzer: { backend: found.reference },
    ...(replacing && { anonymizer: { backend: replacing.reference } }),
    ...settings,
    ...(action && { action: fileValue(action) }),
    ...(failureMode && !isBroken && { failureMode: fileValue(failureMode) }),
  }
  return { guard, resolved: replacing === undefined ? [found] : [found, replacing] }
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

/** Path of a guard's reference in place of its target, and of its credential. */
export function renameTarget(rest: Path): Path {
  const text = formatPath(rest)
  if (text.includes('webhook.target')) return [...rest.slice(0, 2), 'backendRef']
  return /presidio\.(?:analyzer|anonymizer)\b/.test(text)
    ? [...rest.slice(0, 3), 'backendRef']
    : rest.map(renameVendor)
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
