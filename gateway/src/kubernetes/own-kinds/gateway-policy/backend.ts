import { llmPolicyMeta } from '../../../backends/llm/config/backend-config.ts'
import { mcpRuleSchema } from '../../../policies/mcp-authorization.ts'
import { type Infer, object, optional } from '../../../schema/dsl.ts'
import { authSchema, llmFields, tlsSchema } from '../backend-settings.ts'
import { mcpAuthenticationSchema } from './authentication.ts'
import { authorizationSchema } from './authorization.ts'
import { promptGuardSchema } from './guards.ts'
import { mcpGuardrailsSchema } from './mcp-guardrails.ts'

const ai = object(
  {
    promptGuard: optional(promptGuardSchema),
    ...llmFields,
  },
  llmPolicyMeta,
)

const mcp = object(
  {
    mcpAuthentication: optional(mcpAuthenticationSchema),
    mcpAuthorization: optional(
      authorizationSchema(
        mcpRuleSchema,
        'Rules for single tools, prompts and resources. Denied items are hidden from lists and refused in calls.',
      ),
    ),
    guardrails: optional(mcpGuardrailsSchema),
  },
  { doc: 'Authentication, rules and guards of MCP servers.' },
)

const tls = tlsSchema(
  'TLS to HTTP backends without a BackendTLSPolicy. `{}` trusts the well-known authorities.',
)

/** `spec.backend`. */
export const backendSchema = object(
  { ai: optional(ai), mcp: optional(mcp), tls: optional(tls), auth: optional(authSchema) },
  { doc: 'Policies of calls of models, MCP servers and HTTP backends.' },
)

export type AiPolicy = Infer<typeof ai>
export type TlsPolicy = Infer<typeof tls>
export type AuthPolicy = Infer<typeof authSchema>
