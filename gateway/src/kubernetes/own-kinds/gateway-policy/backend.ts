import {
  llmPolicyFields,
  llmPolicyMeta,
  routeTypeNames,
} from '../../../backends/llm/config/backend-config.ts'
import { mcpRuleSchema } from '../../../policies/mcp-authorization.ts'
import { boolean, exactlyOne, type Infer, list, map, object, optional } from '../../../schema/dsl.ts'
import { credentialLocation, serverNameFields } from '../../../upstream/config.ts'
import { clusterEnumeration } from '../enumerations.ts'
import { authoritiesReferenceSchema, secretEntrySchema, secretReferenceSchema } from '../references.ts'
import { mcpAuthenticationSchema } from './authentication.ts'
import { authorizationSchema } from './authorization.ts'
import { promptGuardSchema } from './guards.ts'

const ai = object(
  {
    promptGuard: optional(promptGuardSchema),
    ...llmPolicyFields,
    routes: optional(
      map(clusterEnumeration(routeTypeNames, { doc: 'API call at these paths.' }), {
        doc: 'API calls by path suffix. The longest matching suffix wins, and `*` matches all other paths. Without it every path is a chat completion.',
        example: { '/v1/messages': 'Messages', '/v1/chat/completions': 'Completions', '*': 'Passthrough' },
      }),
    ),
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
  },
  { doc: 'Authentication and rules of MCP servers.' },
)

const tls = object(
  {
    caCertificateRefs: optional(
      list(
        authoritiesReferenceSchema,
        { doc: 'Trusted certificate authorities.', default: 'the well-known authorities' },
        { min: 1, max: 8 },
      ),
    ),
    clientCertificateRef: optional(
      secretReferenceSchema('Secret of type `kubernetes.io/tls` with the client certificate of the gateway.'),
    ),
    ...serverNameFields,
    insecureSkipVerify: optional(
      boolean({ doc: 'Accepts every certificate. For tests only.', default: false, advanced: true }),
    ),
  },
  { doc: 'TLS to HTTP backends without a BackendTLSPolicy. `{}` trusts the well-known authorities.' },
)

const auth = exactlyOne(
  {
    secretRef: secretEntrySchema("The gateway's own credential at the backend.", { key: 'credential' }),
    passthrough: object(
      {},
      { doc: 'Forwards the accepted credential of the client, which is otherwise withheld from backends.' },
    ),
  },
  { location: optional(credentialLocation) },
  { doc: 'How the gateway authenticates to backends.' },
)

/** `spec.backend`. */
export const backendSchema = object(
  { ai: optional(ai), mcp: optional(mcp), tls: optional(tls), auth: optional(auth) },
  { doc: 'Policies of calls of models, MCP servers and HTTP backends.' },
)

export type AiPolicy = Infer<typeof ai>
export type TlsPolicy = Infer<typeof tls>
export type AuthPolicy = Infer<typeof auth>
