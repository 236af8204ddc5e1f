import { accessLogFilter } from '../../../config/telemetry/access-log-config.ts'
import { tracingFilter } from '../../../config/telemetry/tracing-config.ts'
import { connectionRuleSchema } from '../../../policies/network-authorization.ts'
import {
  cel,
  enumeration,
  type Infer,
  integer,
  list,
  name,
  object,
  optional,
  string,
} from '../../../schema/dsl.ts'
import { backendReferenceSchema } from '../references.ts'
import { authorizationSchema } from './authorization.ts'

const added = (doc: string) =>
  optional(
    list(
      object(
        { name: name({ doc: 'Name.' }, { max: 256 }), expression: cel({ doc: 'CEL expression.' }) },
        { doc: 'A name with its expression.' },
      ),
      { doc },
      { min: 1, max: 64 },
    ),
  )

const attributes = (doc: string) =>
  optional(
    object(
      {
        add: added('Values by name, evaluated at the end of a request.'),
        remove: optional(list(name({ doc: 'Name.' }, { max: 256 }), { doc: 'Names to omit.' })),
      },
      { doc },
    ),
  )

const collectorFields = {
  backendRef: backendReferenceSchema('OpenTelemetry collector.'),
  protocol: optional(
    enumeration(['GRPC', 'HTTP'], {
      doc: 'OTLP over gRPC, or over HTTP with protobuf bodies.',
      default: 'GRPC',
    }),
  ),
}

const path = (standard: string) =>
  optional(name({ doc: 'Path of requests over HTTP.', default: standard }, { max: 1024 }))

const accessLog = object(
  {
    filter: accessLogFilter,
    attributes: attributes('Changes of the fields of lines.'),
    otlp: optional(
      object(
        {
          ...collectorFields,
          path: path('/v1/logs'),
          filter: accessLogFilter,
          attributes: attributes('Changes of the fields of records, by default those of lines.'),
        },
        { doc: 'Exports records to an OpenTelemetry collector.' },
      ),
    ),
  },
  { doc: 'Selection and fields of access log lines, and their export.' },
)

const sampling = (doc: string, standard: string) =>
  optional(cel({ doc, default: standard, example: '0.1' }, ['now', 'request', 'source']))

const tracing = object(
  {
    ...collectorFields,
    path: path('/v1/traces'),
    randomSampling: sampling(
      'Requests without `traceparent` that are recorded: an expression whose value is a boolean or a share.',
      'false',
    ),
    clientSampling: sampling('Requests with `traceparent` that are recorded, in the same form.', 'true'),
    filter: tracingFilter,
    attributes: attributes('Changes of the attributes of spans.'),
    resources: added('Attributes of the process, by expressions without variables.'),
  },
  { doc: 'Exports traces of requests to an OpenTelemetry collector (OTLP).' },
)

const proxyProtocol = object(
  {
    version: optional(
      enumeration(['V1', 'V2', 'All'], { doc: 'Accepted versions of the header.', default: 'V2' }),
    ),
    mode: optional(
      enumeration(['Strict', 'Optional'], {
        doc: '`Strict` closes connections without a header.',
        default: 'Strict',
      }),
    ),
    trustedPeers: optional(
      list(
        string({ doc: 'An address, or a range such as `10.0.0.0/8`.' }, { max: 64 }),
        { doc: 'Peers whose headers are accepted.', default: 'private and loopback addresses' },
        { min: 1, max: 64 },
      ),
    ),
  },
  { doc: 'PROXY protocol headers of load balancers in front, on all listeners.' },
)

const http = object(
  {
    maxBufferSize: optional(
      integer(
        {
          doc: 'Largest request body that is read, in bytes; larger ones are answered with 413.',
          default: 33_554_432,
        },
        { min: 1, max: 1024 * 1024 * 1024 },
      ),
    ),
    trustedProxies: optional(
      list(
        string({ doc: 'An address, or a range such as `10.0.0.0/8`.', example: '10.0.0.0/8' }, { max: 64 }),
        {
          doc: 'Proxies in front of the Gateway whose `x-forwarded-*` and `forwarded` headers identify the client.',
        },
        { min: 1, max: 64 },
      ),
    ),
  },
  { doc: 'Settings of HTTP requests.' },
)

/** `spec.frontend`. */
export const frontendSchema = object(
  {
    networkAuthorization: optional(
      authorizationSchema(
        connectionRuleSchema,
        'Rules on connections by `source` and `destination`, before the first request. A denied connection is closed.',
      ),
    ),
    accessLog: optional(accessLog),
    tracing: optional(tracing),
    proxyProtocol: optional(proxyProtocol),
    http: optional(http),
  },
  { doc: 'Settings of all listeners of a Gateway. Targets must be Gateways without `sectionName`.' },
)

export type AccessLog = Infer<typeof accessLog>
export type Tracing = Infer<typeof tracing>
export type Attributes = NonNullable<AccessLog['attributes']>
