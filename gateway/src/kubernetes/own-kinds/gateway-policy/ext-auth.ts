import { cacheSchema, grpcFields, httpFields } from '../../../policies/ext-authz/config.ts'
import {
  boolean,
  cel,
  duration,
  exactlyOne,
  type Infer,
  list,
  name,
  object,
  optional,
} from '../../../schema/dsl.ts'
import { byteSizeSchema } from '../byte-size.ts'
import { clusterEnumeration } from '../enumerations.ts'
import { backendReferenceSchema } from '../references.ts'
import { orConditional } from './conditional.ts'

const { path, redirect, addRequestHeaders, includeResponseHeaders, metadata } = httpFields

const extAuth = exactlyOne(
  {
    grpc: object(
      { contextExtensions: grpcFields.context, requestMetadata: grpcFields.metadata },
      { doc: 'Protocol `envoy.service.auth.v3.Authorization/Check` of Envoy.' },
    ),
    http: object(
      {
        path,
        redirect,
        body: optional(
          cel({
            doc: 'Body of the check: text or bytes; other values are sent as JSON.',
            default: 'none, or that of `forwardBody`',
            advanced: true,
          }),
        ),
        allowedRequestHeaders: optional(
          list(
            name({ doc: 'Name of a header, in any case, or pseudo-header.', example: 'cookie' }),
            { doc: 'Headers of the client that the service receives.', default: '`authorization`' },
            { max: 64 },
          ),
        ),
        addRequestHeaders,
        allowedResponseHeaders: includeResponseHeaders,
        responseMetadata: metadata,
      },
      { doc: 'An HTTP request. A response with 2xx permits.' },
    ),
  },
  {
    backendRef: backendReferenceSchema('Authorization service.'),
    failureMode: optional(
      clusterEnumeration(['failClosed', 'failOpen'], {
        doc: 'Behaviour without a decision: the service is unavailable or fails. `FailClosed` refuses with 403, `FailOpen` forwards. A broken `backendRef` always refuses.',
        default: 'FailClosed',
      }),
    ),
    forwardBody: optional(
      object(
        {
          maxSize: byteSizeSchema({ doc: 'Part of the body that the service receives.' }),
          allowPartialMessage: optional(
            boolean({
              doc: 'Sends the beginning of a larger body, which is otherwise refused with 413.',
              default: false,
            }),
          ),
        },
        { doc: 'Includes the body in the check.' },
      ),
    ),
    cache: optional(cacheSchema),
    timeout: optional(duration({ doc: 'Limit of a check.', default: 'that of the GatewayBackend, or 2s' })),
  },
  { doc: 'A service that permits or refuses requests.' },
)

/** `traffic.extAuth`. */
export const extAuthSchema = orConditional(extAuth, {
  doc: 'A service that permits or refuses requests, with the protocol of Envoy or HTTP.',
})

export type ExtAuth = Infer<typeof extAuth>
