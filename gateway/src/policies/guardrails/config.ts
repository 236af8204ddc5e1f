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
import type { Phase, Rejection } from './guard.ts'
import { checkKind, kindSchemas } from './kinds/kinds.ts'

const rejection = object(
  {
    status: optional(
      integer(
        { doc: 'Status of the answer. A webhook states its own, which holds.', default: 403 },
        { min: 200, max: 599 },
      ),
    ),
    body: optional(
      string({
        doc: 'Text of the answer. Of a webhook it stands in for an empty text.',
        default: 'The request was rejected due to inappropriate content',
      }),
    ),
    headers: optional(headerModifierSchema),
  },
  { doc: 'The answer to what the guard rejects.' },
)

const guard = exactlyOne(
  kindSchemas,
  {
    name: optional(name({ doc: 'Name in metrics and logs.', default: 'its place, kind and number' })),
    rejection: optional(rejection),
  },
  { doc: 'One guard.' },
)

export type GuardConfig = Infer<typeof guard>

const guards = (doc: string) => optional(list(guard, { doc }, { max: 64 }))

/** `guardrails`: who checks what goes to a model and comes from it. */
export const guardrailsSchema = object(
  {
    request: guards('Check a request before it goes to the model, one after another.'),
    response: guards('Check an answer before it goes to the client, one after another.'),
    streaming: optional(
      enumeration(['buffered', 'windowed', 'disabled', 'Enabled', 'Disabled'], {
        doc: 'What happens to streamed answers: `buffered` holds them until all of it is checked, `windowed` checks and passes on piece by piece, `disabled` does not check them. `Enabled` is `windowed`. Of several places the strictest holds.',
        default: 'buffered',
      }),
    ),
    unknownContent: optional(
      enumeration(['reject', 'allow'], {
        doc: 'Content parts and items whose type the gateway does not know, so that it may miss texts in them: `reject` counts as a failed check of the guards of this place, `allow` checks the texts that are found.',
        default: 'reject',
      }),
    ),
  },
  { doc: 'Guards that allow, change or reject content. Those of `llm` come before those of a model.' },
)

export type GuardrailsConfig = Infer<typeof guardrailsSchema>

/** How streamed answers are checked, the strictest first. */
export const streamingModes = ['buffered', 'windowed', 'disabled'] as const
export type StreamingMode = (typeof streamingModes)[number]

export function streamingModeOf({ streaming }: GuardrailsConfig): StreamingMode | undefined {
  if (streaming === 'Enabled') return 'windowed'
  return streaming === 'Disabled' ? 'disabled' : streaming
}

/** Reports what the schema cannot say: targets, patterns, expressions, names that repeat. */
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
  const { rejection: answer } = entry
  if (answer?.headers) {
    checkHeaderModifier(answer.headers, (path, message) => report(['rejection', 'headers', ...path], message))
  }
}

const defaultStatus = 403
const defaultBody = 'The request was rejected due to inappropriate content'

/** The answer to what a guard of the gateway's own rejects. */
export function rejectionOf({ rejection: answer }: GuardConfig): Rejection {
  return {
    status: answer?.status ?? defaultStatus,
    body: answer?.body ?? defaultBody,
    headers: { 'content-type': 'text/plain; charset=utf-8' },
  }
}

/**
 * Changes of every rejection of a guard: of its headers, and of the text of a webhook that sends none. Undefined if nothing
 * is configured.
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
