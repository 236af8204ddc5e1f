import type { Policy } from '../pipeline/policy.ts'
import { forwardingOf } from '../pipeline/request-edits.ts'
import type { ReportIssue } from '../schema/report.ts'
import {
  checkHeaderModifier as check,
  compileHeaderModifier,
  type HeaderModifierConfig,
  headerModifierOf,
} from '../upstream/header-modifier.ts'

/** `requestHeaderModifier`: headers of forwarded requests. */
export const requestHeaderModifierSchema = headerModifierOf(
  'Changes headers of forwarded requests; expressions see the original request',
)

/** `responseHeaderModifier`: headers of replies. */
export const responseHeaderModifierSchema = headerModifierOf(
  'Changes headers of replies; refusals by other policies are unchanged',
)

const insteadOfRequest: ReadonlyMap<string, string> = new Map([
  ['host', 'host is not a modifiable header: use urlRewrite.authority'],
])

/** Reports invalid header names and values, and headers that a policy must not change. */
export function checkHeaderModifier(
  config: HeaderModifierConfig,
  of: 'request' | 'response',
  report: ReportIssue,
) {
  check(config, report, of === 'request' ? insteadOfRequest : undefined)
}

/** Records edits of the forwarded request. The original request is unchanged. */
export function compileRequestHeaderModifier(config: HeaderModifierConfig): Policy {
  const edit = compileHeaderModifier(config)
  return {
    name: 'request headers',
    onRequest(exchange) {
      forwardingOf(exchange).headerEdits.push(edit)
      return undefined
    },
  }
}

/** Edits the headers of replies by later policies and the backend. */
export function compileResponseHeaderModifier(config: HeaderModifierConfig): Policy {
  const edit = compileHeaderModifier(config)
  return {
    name: 'response headers',
    onReply(_, reply) {
      edit(reply.headers)
      return reply
    },
  }
}
