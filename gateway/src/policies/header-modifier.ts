import { forwardingOf } from '../pipeline/forwarding.ts'
import type { Policy } from '../pipeline/policy.ts'
import type { ReportIssue } from '../schema/report.ts'
import {
  checkHeaderModifier as check,
  compileHeaderModifier,
  type HeaderModifierConfig,
  headerModifierOf,
} from '../upstream/header-modifier.ts'

/** `requestHeaderModifier`: headers of what is forwarded. */
export const requestHeaderModifierSchema = headerModifierOf(
  'Changes headers before a request is forwarded; expressions keep seeing what the client sent',
)

/** `responseHeaderModifier`: headers of the answer. */
export const responseHeaderModifierSchema = headerModifierOf(
  'Changes headers of answers; refusals by other policies stay as they are',
)

const insteadOfRequest: ReadonlyMap<string, string> = new Map([
  ['host', 'the host is not changed as a header: use urlRewrite.authority'],
])

/** Reports names and values that no header has, and headers that are not for a policy to change. */
export function checkHeaderModifier(
  config: HeaderModifierConfig,
  of: 'request' | 'response',
  report: ReportIssue,
) {
  check(config, report, of === 'request' ? insteadOfRequest : undefined)
}

/** Notes the changes for whoever forwards the request, which the client's own stays. */
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

/** Changes the headers of what the policies after it, or the backend, answer. */
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
