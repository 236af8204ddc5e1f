import { allowanceSchema } from '../../../pipeline/keys/allowance.ts'
import {
  descriptorFields,
  descriptorKeySchema,
  descriptorValueSchema,
  limiterFields,
} from '../../../policies/rate-limit/global/config.ts'
import { limitFields } from '../../../policies/rate-limit/local-config.ts'
import { list, object, optional } from '../../../schema/dsl.ts'
import { clusterEnumeration } from '../enumerations.ts'
import { backendReferenceSchema } from '../references.ts'

const maxLimits = 16

const descriptor = object(
  {
    entries: list(
      object({ name: descriptorKeySchema, expression: descriptorValueSchema }, { doc: 'Descriptor entry.' }),
      { doc: 'Descriptor entries. A request with a missing or empty value is not counted.' },
      { min: 1, max: 16 },
    ),
    unit: optional(
      clusterEnumeration(['requests', 'tokens'], {
        doc: 'Counted unit: requests on arrival, or tokens after the response ends.',
        default: 'Requests',
      }),
    ),
    ...descriptorFields,
  },
  { doc: 'Rate limit descriptor.' },
)

const global = object(
  {
    backendRef: backendReferenceSchema('Rate limit service.'),
    domain: limiterFields.domain,
    descriptors: list(descriptor, { doc: 'Descriptors to count.' }, { min: 1, max: maxLimits }),
    failureMode: optional(
      clusterEnumeration(['failClosed', 'failOpen'], {
        doc: 'Behaviour if the service is unavailable: `FailClosed` refuses requests with 500, `FailOpen` allows them.',
        default: 'FailClosed',
      }),
    ),
    protocol: optional(
      clusterEnumeration(['envoy', 'kuadrant'], {
        doc: "Methods for token checks and reports: Envoy's, or Limitador's (`Kuadrant`).",
        default: 'Envoy',
      }),
    ),
    timeout: limiterFields.timeout,
  },
  { doc: "Limits counted by a service with Envoy's rate limit protocol, for all proxies." },
)

/** `traffic.rateLimit`. */
export const rateLimitSchema = object(
  {
    local: optional(
      list(
        allowanceSchema(limitFields),
        { doc: 'Limits counted by each proxy. A request must pass all of them.' },
        { min: 1, max: maxLimits },
      ),
    ),
    global: optional(global),
  },
  { doc: 'Limits of requests and LLM tokens.' },
)
