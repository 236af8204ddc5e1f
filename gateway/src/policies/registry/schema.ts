import { type Infer, object, optional } from '../../schema/dsl.ts'
import { apiKeySchema } from '../api-key/api-key.ts'
import { authorizationSchema } from '../authorization.ts'
import { basicAuthSchema } from '../basic-auth/basic-auth.ts'
import { budgetsSchema } from '../budgets/config.ts'
import { corsSchema } from '../cors.ts'
import { csrfSchema } from '../csrf.ts'
import { directResponseSchema } from '../direct-response.ts'
import { guardrailsSchema } from '../guardrails/config.ts'
import { requestHeaderModifierSchema, responseHeaderModifierSchema } from '../header-modifier.ts'
import { jwtAuthSchema } from '../jwt-auth.ts'
import { mcpAuthenticationSchema } from '../mcp-authentication/config.ts'
import { mcpAuthorizationSchema } from '../mcp-authorization.ts'
import { oidcSchema } from '../oidc/config.ts'
import { globalRateLimitSchema } from '../rate-limit/global/config.ts'
import { localRateLimitSchema } from '../rate-limit/local-config.ts'
import { requestRedirectSchema } from '../url/redirect.ts'
import { urlRewriteSchema } from '../url/rewrite.ts'

/** Policies of a gateway or listener, which apply to all of its routes. */
export const gatewayPolicyFields = {
  cors: optional(corsSchema),
  csrf: optional(csrfSchema),
  oidc: optional(oidcSchema),
  jwtAuth: optional(jwtAuthSchema),
  basicAuth: optional(basicAuthSchema),
  apiKey: optional(apiKeySchema),
  authorization: optional(authorizationSchema),
  localRateLimit: optional(localRateLimitSchema),
  rateLimit: optional(
    object(
      { local: optional(localRateLimitSchema), global: optional(globalRateLimitSchema) },
      {
        doc: 'Alias: `rateLimit.local` is `localRateLimit`, `rateLimit.global` is `remoteRateLimit`.',
        advanced: true,
      },
    ),
  ),
  remoteRateLimit: optional(globalRateLimitSchema),
  budgets: optional(budgetsSchema),
}

/** Policies of an MCP endpoint. */
const mcpPolicyFields = {
  ...gatewayPolicyFields,
  mcpAuthentication: optional(mcpAuthenticationSchema),
  mcpAuthorization: optional(mcpAuthorizationSchema),
  requestHeaderModifier: optional(requestHeaderModifierSchema),
  responseHeaderModifier: optional(responseHeaderModifierSchema),
}

/** `routes[].policies` on requests and replies. */
export const routePolicyFields = {
  ...mcpPolicyFields,
  requestRedirect: optional(requestRedirectSchema),
  directResponse: optional(directResponseSchema),
  urlRewrite: optional(urlRewriteSchema),
}

/** `llm.policies`. */
export const llmPoliciesSchema = object(
  { ...gatewayPolicyFields, guardrails: optional(guardrailsSchema) },
  { doc: 'Authentication, authorization, limits and guardrails of the models.' },
)

/** `mcp.policies`. */
export const mcpPoliciesSchema = object(mcpPolicyFields, {
  doc: 'Authentication, authorization and limits of the MCP servers.',
})

const anyPoliciesSchema = object(routePolicyFields, { doc: 'Policies of any scope.' })

/** Policies of one scope: a gateway, listener, route, `llm` or `mcp`. */
export type PoliciesConfig = Infer<typeof anyPoliciesSchema>
