import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Policy } from '../../pipeline/policy.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { requestPolicyNames } from '../../upstream/config.ts'
import type { TrafficKind } from './cel-variables.ts'
import { checkRoutePolicies } from './check.ts'
import { compilePolicies } from './registry.ts'
import type { BackendScopeConfig } from './schema.ts'
import type { PolicyScope } from './scope.ts'

/**
 * Returns the policies of requests among the policies of a backend; undefined without any. The same
 * object for the same node, so that their compilation is cached.
 */
function requestPoliciesOf(
  policies: BackendScopeConfig | undefined,
  { cached }: Pick<CompileContext, 'cached'>,
): BackendScopeConfig | undefined {
  if (policies === undefined || !hasRequestPolicies(policies)) return undefined
  return cached(policies, 'policies of requests', () => pickRequestPolicies(policies))
}

/** The scope of a backend; empty without policies of requests. */
export function backendScope(
  name: string,
  policies: BackendScopeConfig | undefined,
  context: Pick<CompileContext, 'cached'>,
): PolicyScope[] {
  const picked = requestPoliciesOf(policies, context)
  return picked === undefined ? [] : [{ name, policies: picked }]
}

/**
 * Compiles the policies of an HTTP backend, in the order of all policies. They run for each attempt after the
 * choice of the backend, and after the policies of the route. Undefined without any.
 */
export function compileBackendPolicies(
  scopes: readonly PolicyScope[],
  context: CompileContext,
  maxBodyBytes: number,
): readonly Policy[] | undefined {
  if (scopes.length === 0) return undefined
  return compilePolicies(scopes, context, { kind: 'http', maxBodyBytes, place: 'backend' }).policies
}

/** Reports errors in the policies of requests of a backend with a kind of traffic. */
export function checkBackendScope(
  policies: BackendScopeConfig | undefined,
  kind: TrafficKind,
  report: ReportIssue,
): void {
  if (policies !== undefined && hasRequestPolicies(policies))
    checkRoutePolicies(pickRequestPolicies(policies), kind, report)
}

function hasRequestPolicies(policies: BackendScopeConfig): boolean {
  return requestPolicyNames.some((name) => policies[name] !== undefined)
}

function pickRequestPolicies(policies: BackendScopeConfig): BackendScopeConfig {
  return Object.fromEntries(
    requestPolicyNames.flatMap((name) => (policies[name] === undefined ? [] : [[name, policies[name]]])),
  )
}
