import { forwardingPolicyFields, timeoutFields } from '../../../backends/http/config.ts'
import { ruleSchema } from '../../../policies/authorization.ts'
import { corsSchema } from '../../../policies/cors.ts'
import { csrfSchema } from '../../../policies/csrf.ts'
import { delaySchema } from '../../../policies/delay.ts'
import {
  requestHeaderModifierSchema,
  responseHeaderModifierSchema,
} from '../../../policies/header-modifier.ts'
import { object, optional } from '../../../schema/dsl.ts'
import {
  apiKeyAuthenticationSchema,
  basicAuthenticationSchema,
  jwtAuthenticationSchema,
} from './authentication.ts'
import { authorizationSchema } from './authorization.ts'
import { bufferSchema } from './buffer.ts'
import { directResponseSchema } from './direct-response.ts'
import { extAuthSchema } from './ext-auth.ts'
import { extProcSchema } from './ext-proc.ts'
import { rateLimitSchema } from './rate-limits.ts'
import { transformationSchema } from './transformation.ts'

const { requestTimeout, backendRequestTimeout } = timeoutFields

/** `spec.traffic`. */
export const trafficSchema = object(
  {
    rateLimit: optional(rateLimitSchema),
    cors: optional(corsSchema),
    csrf: optional(csrfSchema),
    jwtAuthentication: optional(jwtAuthenticationSchema),
    apiKeyAuthentication: optional(apiKeyAuthenticationSchema),
    basicAuthentication: optional(basicAuthenticationSchema),
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
    extAuth: optional(extAuthSchema),
    extProc: optional(extProcSchema),
    transformation: optional(transformationSchema),
    delay: optional(delaySchema),
    buffer: optional(bufferSchema),
  },
  { doc: 'Policies of requests of every kind.' },
)
