import { aiFields } from './ai.ts'
import { apiKeyField } from './authentication/api-keys.ts'
import { jwtField, mcpAuthenticationField } from './authentication/authentication.ts'
import { basicAuthField } from './authentication/basic-auth.ts'
import { authorizationField, mcpAuthorizationField } from './authorization.ts'
import { bufferField } from './buffer.ts'
import { authField, tlsField } from './connections.ts'
import { directResponseField } from './direct-response.ts'
import type { FieldKind } from './field.ts'
import { frontendFields } from './frontend/frontend.ts'
import { requestGuardField, responseGuardField } from './guards.ts'
import { globalLimitField, localLimitField } from './rate-limits.ts'
import { extAuthField } from './services/ext-auth.ts'
import { extProcField } from './services/ext-proc.ts'
import { mcpGuardrailsField } from './services/mcp-guardrails.ts'
import { trafficFields } from './traffic.ts'
import { transformationField } from './transformation.ts'

/** The fields of GatewayPolicies. */
export const fieldKinds: readonly FieldKind[] = [
  ...trafficFields,
  directResponseField,
  extAuthField,
  extProcField,
  transformationField,
  bufferField,
  jwtField,
  apiKeyField,
  basicAuthField,
  authorizationField,
  localLimitField,
  globalLimitField,
  requestGuardField,
  responseGuardField,
  ...aiFields,
  mcpAuthenticationField,
  mcpAuthorizationField,
  mcpGuardrailsField,
  tlsField,
  authField,
  ...frontendFields,
]
