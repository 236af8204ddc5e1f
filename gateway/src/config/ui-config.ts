import { loginPaths } from '../policies/oidc/paths.ts'
import { checkRoutePolicies } from '../policies/registry/check.ts'
import { gatewayPolicyFields } from '../policies/registry/schema.ts'
import { type Infer, object, optional } from '../schema/dsl.ts'
import { gatewayReferences } from '../schema/gateway-references.ts'
import type { ReportIssue } from '../schema/report.ts'

const { cors, csrf, oidc, jwtAuth, basicAuth, apiKey, authorization, localRateLimit, transformations } =
  gatewayPolicyFields

/** `ui`: the config API on gateways, for remote access. */
export const uiSchema = object(
  {
    gateways: optional(gatewayReferences),
    policies: optional(
      object(
        { cors, csrf, oidc, jwtAuth, basicAuth, apiKey, authorization, localRateLimit, transformations },
        {
          doc: 'Access to the console and the admin API. `oidc`, or `jwtAuth`, `basicAuth` or `apiKey` in strict mode, is required.',
        },
      ),
    ),
  },
  { doc: 'The config API on gateways, beside the admin address.' },
)

export type UiConfig = Infer<typeof uiSchema>

/** Path prefixes that are served on a gateway. */
export const uiPaths: readonly string[] = [
  '/ui',
  '/api/whoami',
  '/api/config',
  '/api/keys',
  '/api/limits',
  '/api/requests',
  '/api/budgets',
  '/api/logs',
  '/api/usage.csv',
  '/api/costs',
  '/api/forward',
  '/api/cel',
  '/api/state',
  '/api/guards',
  '/api/routes',
  '/api/mcp',
]

/** Paths of a configuration: also those of its login. */
export function uiPathsOf({ policies }: UiConfig): readonly string[] {
  return policies?.oidc === undefined ? uiPaths : [...uiPaths, ...Object.values(loginPaths(policies.oidc))]
}

/** Checks rules beyond the schema, first of all that access is authenticated. */
export function checkUi({ policies }: UiConfig, report: ReportIssue): void {
  if (policies) checkRoutePolicies(policies, 'ui', (path, message) => report(['policies', ...path], message))
  const modes = [policies?.jwtAuth, policies?.basicAuth, policies?.apiKey].flatMap((policy) =>
    policy ? [policy.mode ?? 'strict'] : [],
  )
  if (policies?.oidc !== undefined || modes.includes('strict')) return
  const reason = 'without authentication every client can read and change the configuration'
  if (modes.length > 0)
    report(['policies'], `jwtAuth, basicAuth or apiKey must be strict here without oidc: ${reason}`)
  else report([], `requires oidc, jwtAuth, basicAuth or apiKey in ui.policies: ${reason}`)
}
