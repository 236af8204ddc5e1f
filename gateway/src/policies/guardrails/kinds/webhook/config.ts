import { checkCel } from '../../../../cel/checked.ts'
import { isToken } from '../../../../lib/http-token.ts'
import { compilePattern } from '../../../../lib/pattern.ts'
import {
  cel,
  enumeration,
  exactlyOne,
  hostPort,
  type Infer,
  list,
  map,
  name,
  object,
  optional,
  string,
} from '../../../../schema/dsl.ts'
import type { ReportIssue } from '../../../../schema/report.ts'
import { checkBackendHost } from '../../../../upstream/check.ts'
import { findBackend, type NamedBackend } from '../../../../upstream/config.ts'
import { missingBackend } from '../../../../upstream/destination.ts'
import type { Phase } from '../../guard.ts'
import { headerTarget, headerVariables, isDerived } from './headers.ts'

/** `webhook`: specification, "Guardrail webhook object". */
export const webhookSchema = object(
  {
    target: exactlyOne(
      {
        host: hostPort({
          doc: 'Host and port of the server, which is asked without TLS.',
          example: 'localhost:8000',
        }),
        backend: name({
          doc: 'A named backend, as `/<name>`: for TLS, credentials or another time limit.',
          example: '/guard',
        }),
      },
      {},
      { doc: 'Which server is asked.' },
    ),
    failureMode: optional(
      enumeration(['failClosed', 'failOpen', 'FailClosed', 'FailOpen'], {
        doc: 'Whether content passes when the webhook fails: no answer in time, or none that can be understood.',
        default: 'failClosed',
      }),
    ),
    action: optional(
      enumeration(['reject', 'audit'], {
        doc: '`reject` does what the webhook says, `audit` only notes it. A webhook that fails obeys `failureMode` either way.',
        default: 'reject',
      }),
    ),
    headers: optional(
      map(cel({ doc: 'What is sent.' }, [...headerVariables]), {
        doc: 'Headers of the call, or `:path`, `:method` and `:authority`, as expressions over the client’s request. One that cannot be evaluated is left out. In response guards `llmRequest` has no value, so a header that needs it is left out.',
        example: { ':path': '"/v1/check"', 'x-user': 'jwt.sub' },
      }),
    ),
    forwardHeaderMatches: optional(
      list(
        object(
          {
            name: name({ doc: 'Name of the header, in any case.', example: 'x-request-id' }),
            value: exactlyOne(
              {
                exact: string({ doc: 'The whole value.' }),
                regex: string({ doc: 'RE2 pattern of the whole value.' }),
              },
              {},
              { doc: 'What the value has to be.' },
            ),
          },
          { doc: 'One header.' },
        ),
        {
          doc: 'Headers that are passed on: of the client for request guards, of the model’s answer for response guards.',
          advanced: true,
        },
        { max: 64 },
      ),
    ),
  },
  { doc: 'Asks a server of yours to allow, modify or reject the content.' },
)

export type WebhookConfig = Infer<typeof webhookSchema>

export type WebhookPlace = { phase: Phase; backends: readonly NamedBackend[] }

const pseudoHeaders = [':path', ':method', ':authority']

/** Reports targets that lead nowhere, headers that cannot be sent and expressions that do not compile. */
export function checkWebhook(config: WebhookConfig, { backends }: WebhookPlace, report: ReportIssue): void {
  const { target, headers = {}, forwardHeaderMatches = [] } = config
  if (target.host !== undefined)
    checkBackendHost(target.host, (message) => report(['target', 'host'], message))
  else {
    const found = findBackend(target.backend, backends)
    if (found?.host === undefined) report(['target', 'backend'], missingBackend(target.backend, found))
  }
  const names = new Set<string>()
  for (const [field, source] of Object.entries(headers)) {
    const at = ['headers', field]
    const meant = headerTarget(field)
    if (names.has(meant)) report(at, `is the same as another one: ${meant}`)
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
  else if (!isToken(field)) report(`"${field}" is no name of a header field`)
  else if (isDerived(field) || field === 'host') report(`${field} is made anew for each call`)
}
