import { checkCel } from '../../../../cel/checked.ts'
import { isToken } from '../../../../lib/http-token.ts'
import { compilePattern } from '../../../../lib/pattern.ts'
import {
  cel,
  enumeration,
  exactlyOne,
  type Infer,
  list,
  map,
  name,
  object,
  optional,
  string,
} from '../../../../schema/dsl.ts'
import type { ReportIssue } from '../../../../schema/report.ts'
import type { NamedBackend } from '../../../../upstream/config.ts'
import type { Phase } from '../../guard.ts'
import { checkTarget, targetSchema } from '../service/target.ts'
import { headerTarget, headerVariables, isDerived } from './headers.ts'

/** Headers of calls. */
export const webhookHeaderFields = {
  headers: optional(
    map(cel({ doc: 'Header value.', reveals: true }, [...headerVariables]), {
      doc: 'Headers of the call, or `:path`, `:method` and `:authority`, as expressions over the client’s request. A header whose evaluation fails is omitted. In response guards `llmRequest` has no value, so headers that need it are omitted.',
      example: { ':path': '"/v1/check"', 'x-user': 'jwt.sub' },
    }),
  ),
  forwardHeaderMatches: optional(
    list(
      object(
        {
          name: name({ doc: 'Header name, case-insensitive.', example: 'x-request-id' }),
          value: exactlyOne(
            {
              exact: string({ doc: 'Exact value.' }),
              regex: string({ doc: 'RE2 pattern that matches the whole value.' }),
            },
            {},
            { doc: 'Condition on the value.' },
          ),
        },
        { doc: 'Header.' },
      ),
      {
        doc: 'Forwarded headers: of the client for request guards, of the model’s response for response guards.',
        advanced: true,
      },
      { max: 64 },
    ),
  ),
}

/** `webhook`: specification, "Guardrail webhook object". */
export const webhookSchema = object(
  {
    target: targetSchema({ doc: 'Webhook server.', example: 'localhost:8000' }),
    failureMode: optional(
      enumeration(['failClosed', 'failOpen', 'FailClosed', 'FailOpen'], {
        doc: 'Behaviour if the webhook fails: a timeout or an invalid response. `failOpen` allows the content.',
        default: 'failClosed',
      }),
    ),
    action: optional(
      enumeration(['reject', 'audit'], {
        doc: '`reject` applies the verdict of the webhook, `audit` only records it. `failureMode` applies to both.',
        default: 'reject',
      }),
    ),
    ...webhookHeaderFields,
  },
  { doc: 'Calls an external server that allows, modifies or rejects the content.' },
)

export type WebhookConfig = Infer<typeof webhookSchema>

export type WebhookPlace = { phase: Phase; backends: readonly NamedBackend[] }

const pseudoHeaders = [':path', ':method', ':authority']

/** Reports invalid targets, invalid headers and expressions that do not compile. */
export function checkWebhook(config: WebhookConfig, { backends }: WebhookPlace, report: ReportIssue): void {
  const { target, headers = {}, forwardHeaderMatches = [] } = config
  checkTarget(target, backends, (path, message) => report(['target', ...path], message))
  const names = new Set<string>()
  for (const [field, source] of Object.entries(headers)) {
    const at = ['headers', field]
    const meant = headerTarget(field)
    if (names.has(meant)) report(at, `duplicates another header: ${meant}`)
    names.add(meant)
    if (!pseudoHeaders.includes(meant)) checkField(meant, (message) => report(at, message))
    checkCel(source, headerVariables, (message) => report(at, message))
  }
  for (const [index, { name: field, value }] of forwardHeaderMatches.entries()) {
    const at = ['forwardHeaderMatches', index]
    checkField(field.toLowerCase(), (message) => report([...at, 'name'], message))
    if (value.regex === undefined) continue
    const compiled = compilePattern(value.regex)
    if (!compiled.ok) report([...at, 'value', 'regex'], compiled.message)
  }
}

function checkField(field: string, report: (message: string) => void): void {
  if (field.startsWith(':')) report(`expected one of ${pseudoHeaders.join(', ')} or the name of a header`)
  else if (!isToken(field)) report(`"${field}" is not a header name`)
  else if (isDerived(field) || field === 'host') report(`${field} is set by the gateway`)
}
