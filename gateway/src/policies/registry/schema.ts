import { type Infer, object, optional } from '../../schema/dsl.ts'
import type { requestPolicyNames } from '../../upstream/config.ts'
import { a2aSchema } from '../a2a/a2a.ts'
import { apiKeySchema } from '../api-key/api-key.ts'
import { authorizationSchema } from '../authorization.ts'
import { basicAuthSchema } from '../basic-auth/basic-auth.ts'
import { budgetsSchema } from '../budgets/config.ts'
import { bufferSchema } from '../buffer.ts'
import { conditionalOr } from '../conditional.ts'
import { corsSchema } from '../cors.ts'
import { csrfSchema } from '../csrf.ts'
import { delaySchema } from '../delay.ts'
import { directResponseSchema } from '../direct-response.ts'
import { extAuthzSchema } from '../ext-authz/config.ts'
import { extProcSchema } from '../ext-proc/config.ts'
import { guardrailsSchema } from '../guardrails/config.ts'
import { mcpGuardrailsSchema } from '../guardrails/mcp/config.ts'
import { requestHeaderModifierSchema, responseHeaderModifierSchema } from '../header-modifier.ts'
import { jwtAuthSchema } from '../jwt-auth.ts'
import { mcpAuthenticationSchema } from '../mcp-authentication/config.ts'
import { mcpAuthorizationSchema } from '../mcp-authorization.ts'
import { oidcSchema } from '../oidc/config.ts'
import { globalRateLimitSchema } from '../rate-limit/global/config.ts'
import { limitSchema, localRateLimitSchema } from '../rate-limit/local-config.ts'
import { transformationsSchema } from '../transformations/config.ts'
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
  extAuthz: optional(conditionalOr(extAuthzSchema)),
  authorization: optional(authorizationSchema),
  localRateLimit: optional(conditionalOr(localRateLimitSchema, limitSchema)),
  rateLimit: optional(
    object(
      { local: optional(localRateLimitSchema), global: optional(globalRateLimitSchema) },
      {
        doc: 'Alias: `rateLimit.local` is `localRateLimit`, `rateLimit.global` is `remoteRateLimit`.',
        advanced: true,
      },
    ),
  ),
  remoteRateLimit: optional(conditionalOr(globalRateLimitSchema)),
  budgets: optional(budgetsSchema),
  transformations: optional(conditionalOr(transformationsSchema)),
  extProc: optional(conditionalOr(extProcSchema)),
}

/** Policies of a route or of the `mcp` section on requests and replies. */
export const routePolicyFields = {
  ...gatewayPolicyFields,
  mcpAuthentication: optional(mcpAuthenticationSchema),
  mcpAuthorization: optional(mcpAuthorizationSchema),
  mcpGuardrails: optional(mcpGuardrailsSchema),
  requestHeaderModifier: optional(requestHeaderModifierSchema),
  responseHeaderModifier: optional(responseHeaderModifierSchema),
  requestRedirect: optional(requestRedirectSchema),
  directResponse: optional(conditionalOr(directResponseSchema)),
  urlRewrite: optional(urlRewriteSchema),
  delay: optional(delaySchema),
  a2a: optional(a2aSchema),
  buffer: optional(bufferSchema),
}

/** Policies of requests of a backend, which run after its choice. */
export const backendScopeFields = {
  extAuthz: routePolicyFields.extAuthz,
  authorization: routePolicyFields.authorization,
  mcpAuthorization: routePolicyFields.mcpAuthorization,
  mcpGuardrails: routePolicyFields.mcpGuardrails,
  a2a: routePolicyFields.a2a,
  transformations: routePolicyFields.transformations,
  requestRedirect: routePolicyFields.requestRedirect,
}

/** `llm.policies`. */
export const llmPoliciesSchema = object(
  { ...gatewayPolicyFields, guardrails: optional(guardrailsSchema) },
  { doc: 'Authentication, authorization, limits and guardrails of the models.' },
)

const anyPoliciesSchema = object(routePolicyFields, { doc: 'Policies of any scope.' })

/** Policies of requests of a backend. */
export type BackendScopeConfig = Pick<PoliciesConfig, (typeof requestPolicyNames)[number]>

/** Policies of one scope: a gateway, listener, route, `llm` or `mcp`. */
export type PoliciesConfig = Infer<typeof anyPoliciesSchema>
