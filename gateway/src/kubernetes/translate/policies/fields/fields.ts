import { aiFields } from './ai.ts'
import { apiKeyField } from './api-keys.ts'
import { jwtField, mcpAuthenticationField } from './authentication.ts'
import { authorizationField, mcpAuthorizationField } from './authorization.ts'
import { authField, tlsField } from './connections.ts'
import type { FieldKind } from './field.ts'
import { requestGuardField, responseGuardField } from './guards.ts'
import { globalLimitField, localLimitField } from './rate-limits.ts'
import { trafficFields } from './traffic.ts'

/** The fields of GatewayPolicies. */
export const fieldKinds: readonly FieldKind[] = [
  ...trafficFields,
  jwtField,
  apiKeyField,
  authorizationField,
  localLimitField,
  globalLimitField,
  requestGuardField,
  responseGuardField,
  ...aiFields,
  mcpAuthenticationField,
  mcpAuthorizationField,
  tlsField,
  authField,
]
