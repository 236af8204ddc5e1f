import type { Policy } from '../pipeline/policy.ts'
import { type Infer, integer, object, optional, string } from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'

/** `directResponse`: fixed response of the gateway. */
export const directResponseSchema = object(
  {
    status: integer({ doc: 'Response status.', example: 404 }, { min: 200, max: 599 }),
    body: optional(
      string({
        doc: 'Response body, sent as `text/plain` unless `responseHeaderModifier` sets another `content-type`.',
        default: '',
        example: 'not here',
      }),
    ),
  },
  { doc: 'Responds to every request with a fixed text, without a backend.' },
)

export type DirectResponseConfig = Infer<typeof directResponseSchema>

/** Statuses without a body (RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5). */
const withoutBody: readonly number[] = [204, 205, 304]

/** Reports a body that the status does not allow. */
export function checkDirectResponse({ status, body = '' }: DirectResponseConfig, report: ReportIssue) {
  if (body !== '' && withoutBody.includes(status))
    report(['body'], `an answer with status ${status} has no body`)
}

/**
 * Compiles a fixed response. The body is shared; headers are created per reply, because other policies modify
 * them.
 */
export function compileDirectResponse({ status, body = '' }: DirectResponseConfig): Policy {
  const bytes = body === '' ? undefined : Buffer.from(body)
  return {
    name: 'direct response',
    onRequest() {
      const headers = bytes === undefined ? {} : { 'content-type': 'text/plain; charset=utf-8' }
      return { status, headers, body: bytes }
    },
  }
}
