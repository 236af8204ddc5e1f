import { guardFields, scopeDefault, scopeDoc } from '../../../policies/guardrails/config.ts'
import { contentScopes } from '../../../policies/guardrails/content/scopes/content-scope.ts'
import { presidioFields } from '../../../policies/guardrails/kinds/presidio/config.ts'
import { builtinNames, patternSchema } from '../../../policies/guardrails/kinds/regex/regex.ts'
import { webhookHeaderFields } from '../../../policies/guardrails/kinds/webhook/config.ts'
import { exactlyOne, type Infer, list, object, optional } from '../../../schema/dsl.ts'
import { clusterEnumeration } from '../enumerations.ts'
import { backendReferenceSchema } from '../references.ts'
import { vendorKinds } from './guard-vendors.ts'

const maxGuards = 16

const webhook = object(
  {
    backendRef: backendReferenceSchema('Server of the webhook.'),
    failureMode: optional(
      clusterEnumeration(['failClosed', 'failOpen'], {
        doc: 'Behaviour if the webhook fails: a timeout or an invalid response. `FailOpen` allows the content. A broken `backendRef` always refuses.',
        default: 'FailClosed',
      }),
    ),
    action: optional(
      clusterEnumeration(['reject', 'audit'], {
        doc: '`Reject` applies the verdict of the webhook, `Audit` only records it. `failureMode` applies to both.',
        default: 'Reject',
      }),
    ),
    ...webhookHeaderFields,
  },
  { doc: 'Calls an external server that allows, modifies or rejects the content.' },
)

const regex = object(
  {
    action: optional(
      clusterEnumeration(['mask', 'reject', 'audit'], {
        doc: 'Action on content with a match; `Audit` only records it.',
        default: 'Mask',
      }),
    ),
    rules: list(
      exactlyOne(
        {
          pattern: patternSchema,
          builtin: clusterEnumeration(builtinNames, {
            doc: 'Built-in pattern. Matches are replaced by its name, for example `<EMAIL_ADDRESS>`.',
          }),
        },
        {},
        { doc: 'Rule.' },
      ),
      { doc: 'Rules, applied in order.' },
      { min: 1, max: 64 },
    ),
    failureMode: optional(
      clusterEnumeration(['failClosed', 'failOpen'], {
        doc: 'Behaviour if the search fails, for example on texts that are too long. `FailOpen` allows the content.',
        default: 'FailClosed',
      }),
    ),
  },
  { doc: 'Pattern search in the proxy.', example: { rules: [{ builtin: 'Email' }] } },
)

const presidioServer = (doc: string) => object({ backendRef: backendReferenceSchema(doc) }, { doc })

const presidio = object(
  {
    analyzer: presidioServer('Server of the analyzer, which finds entities.'),
    anonymizer: optional(
      presidioServer(
        'Server of the anonymizer, which replaces the entities. Without it, the proxy replaces them by their types, for example `<PERSON>`.',
      ),
    ),
    ...presidioFields,
    action: optional(
      clusterEnumeration(['mask', 'reject', 'audit'], {
        doc: 'Action on content with an entity; `Audit` only records it.',
        default: 'Mask',
      }),
    ),
    failureMode: optional(
      clusterEnumeration(['failClosed', 'failOpen'], {
        doc: 'Behaviour if a server fails. `FailOpen` allows the content. A broken `backendRef` always refuses.',
        default: 'FailClosed',
      }),
    ),
  },
  { doc: 'Finds personal data with Microsoft Presidio, and masks it or rejects the content.' },
)

const kinds = { webhook, regex, presidio, ...vendorKinds }

const scope = list(
  clusterEnumeration(contentScopes, { doc: 'Kind of content.' }),
  { doc: clusterNames(scopeDoc), default: clusterNames(scopeDefault) },
  { min: 1, max: contentScopes.length },
)

/** A text of the documentation with the names of scopes as in the cluster. */
function clusterNames(text: string): string {
  return contentScopes.reduce(
    (written, name) =>
      written.replaceAll(`\`${name}\``, `\`${name.charAt(0).toUpperCase()}${name.slice(1)}\``),
    text,
  )
}

const guard = exactlyOne(kinds, { ...guardFields, scope: optional(scope) }, { doc: 'Guard.' })
const guardOfTools = exactlyOne(kinds, guardFields, { doc: 'Guard.' })

const guards = (doc: string) => optional(list(guard, { doc }, { min: 1, max: maxGuards }))

/** Schema of a list of guards of MCP messages, which have no scopes. */
export const guardsOfTools = (doc: string) =>
  optional(list(guardOfTools, { doc }, { min: 1, max: maxGuards }))

/** `backend.ai.promptGuard`. */
export const promptGuardSchema = object(
  {
    request: guards('Guards of requests, run in order before the call of the model.'),
    response: guards('Guards of responses, run in order before the response to the client.'),
    streaming: optional(
      clusterEnumeration(['buffered', 'windowed', 'disabled'], {
        doc: 'Mode of streamed responses for the response guards of this policy: `Buffered` delays them until the whole response is checked, `Windowed` checks and sends them in parts, `Disabled` skips the check.',
        default: 'Buffered',
      }),
    ),
    unknownContent: optional(
      clusterEnumeration(['reject', 'allow'], {
        doc: 'Content parts and items of unknown type, which may contain unchecked text: `Reject` counts as a failed check of the guards, `Allow` checks the texts that are found.',
        default: 'Reject',
      }),
    ),
  },
  { doc: 'Guards that allow, modify or reject content.' },
)

export type PromptGuard = Infer<typeof promptGuardSchema>
export type Guard = Infer<typeof guard>
