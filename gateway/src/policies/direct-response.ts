import type { Policy } from '../pipeline/policy.ts'
import { type Infer, integer, object, optional, string } from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'

/** `directResponse`: the gateway answers itself. */
export const directResponseSchema = object(
  {
    status: integer({ doc: 'Status of the answer.', example: 404 }, { min: 200, max: 599 }),
    body: optional(
      string({
        doc: 'Text of the answer, sent as `text/plain` unless `responseHeaderModifier` sets another `content-type`.',
        default: '',
        example: 'not here',
      }),
    ),
  },
  { doc: 'Answers every request with the same text; no backend is needed.' },
)

export type DirectResponseConfig = Infer<typeof directResponseSchema>

/** Statuses whose answers end with their head (RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5). */
const withoutBody: readonly number[] = [204, 205, 304]

/** Reports texts that the status does not allow. */
export function checkDirectResponse({ status, body = '' }: DirectResponseConfig, report: ReportIssue) {
  if (body !== '' && withoutBody.includes(status))
    report(['body'], `an answer with status ${status} has no body`)
}

/** Answers every request. The body is made once; headers are each answer's own, because other policies change them. */
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
