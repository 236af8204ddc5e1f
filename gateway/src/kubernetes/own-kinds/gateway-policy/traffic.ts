import { forwardingPolicyFields, timeoutFields } from '../../../backends/http/config.ts'
import { ruleSchema } from '../../../policies/authorization.ts'
import { corsSchema } from '../../../policies/cors.ts'
import { directResponseSchema } from '../../../policies/direct-response.ts'
import {
  requestHeaderModifierSchema,
  responseHeaderModifierSchema,
} from '../../../policies/header-modifier.ts'
import { object, optional } from '../../../schema/dsl.ts'
import { apiKeyAuthenticationSchema, jwtAuthenticationSchema } from './authentication.ts'
import { authorizationSchema } from './authorization.ts'
import { rateLimitSchema } from './rate-limits.ts'

const { requestTimeout, backendRequestTimeout } = timeoutFields

/** `spec.traffic`. */
export const trafficSchema = object(
  {
    rateLimit: optional(rateLimitSchema),
    cors: optional(corsSchema),
    jwtAuthentication: optional(jwtAuthenticationSchema),
    apiKeyAuthentication: optional(apiKeyAuthenticationSchema),
    authorization: optional(
      authorizationSchema(ruleSchema, 'Rules on the request, its key or token, and the LLM request.'),
    ),
    headerModifiers: optional(
      object(
        {
          request: optional(requestHeaderModifierSchema),
          response: optional(responseHeaderModifierSchema),
        },
        { doc: 'Changes of headers.' },
      ),
    ),
    timeouts: optional(
      object(
        { request: requestTimeout, backendRequest: backendRequestTimeout },
        { doc: 'Time limits of requests.' },
      ),
    ),
    retry: forwardingPolicyFields.retry,
    directResponse: optional(directResponseSchema),
  },
  { doc: 'Policies of requests of every kind.' },
)
