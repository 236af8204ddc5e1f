import {
  enumeration,
  exactlyOne,
  type Infer,
  integer,
  list,
  name,
  object,
  optional,
  string,
} from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import type { NamedBackend } from '../../upstream/config.ts'
import {
  checkHeaderModifier,
  compileHeaderModifier,
  headerModifierSchema,
} from '../../upstream/header-modifier.ts'
import { type ContentScope, contentScopes } from './content/scopes/content-scope.ts'
import type { Phase, Rejection } from './guard.ts'
import { checkKind, kindSchemas } from './kinds/kinds.ts'

const rejection = object(
  {
    status: optional(
      integer(
        { doc: 'Response status. A status from a webhook takes precedence.', default: 403 },
        { min: 200, max: 599 },
      ),
    ),
    body: optional(
      string({
        doc: 'Response body. For a webhook it replaces an empty body.',
        default: 'The request was rejected due to inappropriate content',
      }),
    ),
    headers: optional(headerModifierSchema),
  },
  { doc: 'Response to rejected content.' },
)

export const scopeDoc =
  'Content that the guard receives: `systemPrompt`, `messages` (texts of users and models), `toolOutput` (results of tools), `toolInput` (arguments of tool calls), `toolDefinitions` (requests only) and `reasoning`.'

export const scopeDefault = 'all except `toolInput`, `toolDefinitions` and, in responses, `reasoning`'

const scope = list(
  enumeration(contentScopes, { doc: 'Kind of content.' }),
  { doc: scopeDoc, default: scopeDefault, example: ['messages', 'toolInput'] },
  { min: 1, max: contentScopes.length },
)

/** Fields of guards of every kind. */
export const guardFields = {
  name: optional(name({ doc: 'Name in metrics and logs.', default: 'scope, kind and number' })),
  rejection: optional(rejection),
}

/** A guard of any kind. */
export const guardSchema = exactlyOne(
  kindSchemas,
  { ...guardFields, scope: optional(scope) },
  { doc: 'Guard.' },
)

export type GuardConfig = Infer<typeof guardSchema>

const guards = (doc: string) => optional(list(guardSchema, { doc }, { max: 64 }))

/** `guardrails`: guards of requests to models and their responses. */
export const guardrailsSchema = object(
  {
    request: guards('Guards of requests, run in order before the call of the model.'),
    response: guards('Guards of responses, run in order before the response to the client.'),
    streaming: optional(
      enumeration(['buffered', 'windowed', 'disabled', 'Enabled', 'Disabled'], {
        doc: 'Mode of streamed responses: `buffered` delays them until the whole response is checked, `windowed` checks and sends them in parts, `disabled` skips the check. `Enabled` is `windowed`. Of several scopes the strictest mode applies.',
        default: 'buffered',
      }),
    ),
    unknownContent: optional(
      enumeration(['reject', 'allow'], {
        doc: 'Content parts and items of unknown type, which may contain unchecked text: `reject` counts as a failed check of the guards of this scope, `allow` checks the texts that are found.',
        default: 'reject',
      }),
    ),
  },
  { doc: 'Guards that allow, modify or reject content. Guards of `llm` run before those of a model.' },
)

export type GuardrailsConfig = Infer<typeof guardrailsSchema>

/** Modes of streamed responses, from strict to permissive. */
export const streamingModes = ['buffered', 'windowed', 'disabled'] as const
export type StreamingMode = (typeof streamingModes)[number]

export function streamingModeOf({ streaming }: GuardrailsConfig): StreamingMode | undefined {
  if (streaming === 'Enabled') return 'windowed'
  return streaming === 'Disabled' ? 'disabled' : streaming
}

/** Reports errors beyond the schema: targets, patterns, expressions, duplicate names. */
export function checkGuardrails(
  config: GuardrailsConfig,
  backends: readonly NamedBackend[],
  report: ReportIssue,
): void {
  const names = new Set<string>()
  for (const phase of ['request', 'response'] as const) {
    for (const [index, entry] of (config[phase] ?? []).entries()) {
      const under: ReportIssue = (path, message) => report([phase, index, ...path], message)
      checkGuard(entry, { phase, backends }, under)
      if (entry.name === undefined) continue
      const label = `${phase} ${entry.name}`
      if (names.has(label)) under(['name'], `another guard of this phase is named "${entry.name}"`)
      names.add(label)
    }
  }
}

function checkGuard(
  entry: GuardConfig,
  place: { phase: Phase; backends: readonly NamedBackend[] },
  report: ReportIssue,
): void {
  checkKind(entry, place, report)
  if (place.phase === 'response') checkResponseScope(entry.scope ?? [], report)
  const { rejection: answer } = entry
  if (answer?.headers) {
    checkHeaderModifier(answer.headers, (path, message) => report(['rejection', 'headers', ...path], message))
  }
}

/** Reports scopes that responses do not have. */
function checkResponseScope(scope: readonly ContentScope[], report: ReportIssue): void {
  for (const [index, name] of scope.entries()) {
    if (name === 'systemPrompt' || name === 'toolDefinitions')
      report(['scope', index], `${name} is only valid in request guards`)
  }
}

const defaultStatus = 403
const defaultBody = 'The request was rejected due to inappropriate content'

/** Returns the rejection of a built-in guard. */
export function rejectionOf({ rejection: answer }: GuardConfig): Rejection {
  return {
    status: answer?.status ?? defaultStatus,
    body: answer?.body ?? defaultBody,
    headers: { 'content-type': 'text/plain; charset=utf-8' },
  }
}

/**
 * Compiles edits of the rejections of a guard: its headers, and the body of a webhook rejection without one.
 * Undefined if none are configured.
 */
export function rejectionEdit(entry: GuardConfig): ((rejection: Rejection) => Rejection) | undefined {
  const { rejection: answer, webhook } = entry
  const text = webhook === undefined ? undefined : answer?.body
  const editHeaders = answer?.headers && compileHeaderModifier(answer.headers)
  if (text === undefined && editHeaders === undefined) return undefined
  return (rejection) => {
    const headers = { ...rejection.headers }
    editHeaders?.(headers)
    return { ...rejection, headers, body: rejection.body === '' ? (text ?? '') : rejection.body }
  }
}
