import { enumeration, type Infer, object, optional } from '../../../../schema/dsl.ts'
import type { ReportIssue } from '../../../../schema/report.ts'
import { checkBackendPolicies } from '../../../../upstream/check.ts'
import { backendPolicyFields } from '../../../../upstream/config.ts'
import { parseEndpoint } from './endpoint.ts'

const { http, backendTLS, backendAuth, tcp, backendTunnel, requestHeaderModifier } = backendPolicyFields

/** `policies` of a guard service. */
export const servicePolicies = object(
  { backendAuth, backendTLS, http, tcp, backendTunnel, requestHeaderModifier },
  {
    doc: 'Credential and connection of the calls. The time limit of a check is `http.requestTimeout`, by default 10 s.',
  },
)

export type ServicePolicies = Infer<typeof servicePolicies>

/** `failureMode` of a guard service. */
export const failureModeField = {
  failureMode: optional(
    enumeration(['failClosed', 'failOpen', 'FailClosed', 'FailOpen'], {
      doc: 'Behaviour if the service fails: a timeout, an error or an invalid response. `failOpen` allows the content.',
      default: 'failClosed',
    }),
  ),
}

/** Fields of services that only allow or reject. */
export const detectorFields = {
  ...failureModeField,
  action: optional(
    enumeration(['reject', 'audit'], {
      doc: '`reject` applies the verdict of the service, `audit` only records it. `failureMode` applies to both.',
      default: 'reject',
    }),
  ),
  policies: optional(servicePolicies),
}

/** Settings of a guard service, reduced to the fields of every kind. */
export type ServiceConfig = {
  readonly failureMode?: Infer<(typeof failureModeField)['failureMode']>
  readonly policies?: ServicePolicies | undefined
}

export function failsOpen({ failureMode }: ServiceConfig): boolean {
  return failureMode === 'failOpen' || failureMode === 'FailOpen'
}

/** Reports an invalid address, and errors in the policies. */
export function checkService(
  { endpoint, policies }: ServiceConfig & { readonly endpoint?: string | undefined },
  report: ReportIssue,
): void {
  if (endpoint !== undefined && parseEndpoint(endpoint) === undefined)
    report(['endpoint'], 'must be a host, host:port or an https:// address without query')
  if (policies) checkBackendPolicies(policies, (path, message) => report(['policies', ...path], message))
}
