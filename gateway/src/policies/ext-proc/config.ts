import { checkCel } from '../../cel/checked.ts'
import { parseDuration } from '../../lib/duration.ts'
import { isMetadataName } from '../../net/grpc/metadata-name.ts'
import {
  boolean,
  cel,
  duration,
  enumeration,
  exactlyOne,
  type Infer,
  integer,
  map,
  name,
  object,
  optional,
} from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkBackendPolicies } from '../../upstream/check.ts'
import { backendPoliciesSchema, findBackend, hasServers, type NamedBackend } from '../../upstream/config.ts'
import { missingBackend } from '../../upstream/destination.ts'
import { checkServiceHost, serviceHostSchema } from '../../upstream/grpc-service/service-address.ts'
import { type Modes, withDuplexTrailers } from './stream/modes.ts'
import { bodyModes } from './wire/messages.ts'

/** Namespace of `metadataContext` whose values are gRPC metadata of the stream. */
export const initialMetadataNamespace = 'agentgateway.dev.grpc_initial_metadata'

const bodyMode = (part: string) =>
  optional(
    enumeration(bodyModes, {
      doc: `How ${part} bodies are sent. \`none\`: not at all; \`buffered\`: complete, up to \`maxBufferSize\`; \`bufferedPartial\`: the first \`maxBufferSize\` bytes; \`streamed\`: each chunk awaits its response; \`fullDuplexStreamed\`: chunks in both directions, independent of each other.`,
      default: 'fullDuplexStreamed',
    }),
  )

const sendMode = (part: string) =>
  optional(enumeration(['send', 'skip'], { doc: `Whether ${part} are sent.`, default: 'send' }))

/** Settings of `processingOptions` beside modes. */
export const processingFlags = {
  allowModeOverride: optional(
    boolean({
      doc: 'Permits the processor to change the modes of a request in its response to headers.',
      default: false,
    }),
  ),
}

const processingOptionsSchema = object(
  {
    requestHeaderMode: sendMode('request headers'),
    responseHeaderMode: sendMode('response headers'),
    requestBodyMode: bodyMode('request'),
    responseBodyMode: bodyMode('response'),
    requestTrailerMode: sendMode('request trailers'),
    responseTrailerMode: sendMode('response trailers'),
    ...processingFlags,
  },
  { doc: 'Parts of requests and responses that the processor receives.' },
)

const requestVariables = ['request', 'source', 'jwt', 'apiKey', 'basicAuth', 'now', 'extAuthz', 'metadata']
const variablesOf = {
  request: [...requestVariables, 'request.body'],
  response: [...requestVariables, 'response', 'extProc'],
}

const attributes = (of: 'request' | 'response') =>
  optional(
    map(cel({ doc: 'The value. Without one the attribute is omitted.', reveals: true }, variablesOf[of]), {
      doc: `Attributes in the first message about the ${of}, by name.`,
      example: of === 'request' ? { 'source.address': 'source.address' } : { code: 'response.code' },
      advanced: true,
    }),
  )

/** Settings of a processor that do not depend on its address. */
export const processorFields = {
  metadataContext: optional(
    map(
      map(cel({ doc: 'The value. Without one the name is omitted.', reveals: true }, variablesOf.request), {
        doc: 'Values by name.',
      }),
      {
        doc: `Values in each message by namespace: \`metadata_context.filter_metadata\`. Those of \`${initialMetadataNamespace}\` are gRPC metadata of the stream.`,
        example: { 'dev.tollgate': { key: 'apiKey.id' } },
        advanced: true,
      },
    ),
  ),
  requestAttributes: attributes('request'),
  responseAttributes: attributes('response'),
  messageTimeout: optional(
    duration({
      doc: 'Longest wait for a response of the processor. In full duplex it starts after the last message of the body.',
      default: '`policies.http.requestTimeout`, or 10s',
    }),
  ),
  maxBufferSize: optional(
    integer(
      {
        doc: 'Limit of buffered bodies in bytes. Larger requests receive 413, larger responses 502.',
        default: 2_097_152,
      },
      { min: 1024, max: 67_108_864 },
    ),
  ),
  maxStreams: optional(
    integer(
      {
        doc: 'Limit of concurrent streams to the processor. More is a failure.',
        default: 10_000,
        advanced: true,
      },
      { min: 1, max: 1_000_000 },
    ),
  ),
}

/** `extProc`. */
export const extProcSchema = exactlyOne(
  {
    host: serviceHostSchema,
    backend: name({ doc: 'Name of an entry of `backends`.', example: '/processor' }),
  },
  {
    policies: optional(backendPoliciesSchema),
    failureMode: optional(
      enumeration(['failClosed', 'failOpen'], {
        doc: 'Behaviour if the processor is unavailable or violates the protocol: `failClosed` refuses with 500, `failOpen` continues without it where the message is still complete.',
        default: 'failClosed',
      }),
    ),
    processingOptions: optional(processingOptionsSchema),
    ...processorFields,
  },
  {
    doc: 'Sends requests and responses to a service with the protocol `envoy.service.ext_proc.v3`, which may change, end or replace them.',
  },
)

export type ExtProcConfig = Infer<typeof extProcSchema>

const longestTimeoutMs = 600_000

/** Variables of expressions for requests and replies. */
export type ExtProcVariables = {
  readonly request: ReadonlySet<string>
  readonly reply: ReadonlySet<string>
}

/** Variables of `responseAttributes`: those that exist before the body of the response. */
export function replyVariablesOf({ reply }: ExtProcVariables): ReadonlySet<string> {
  return new Set(
    [...reply].filter((variable) => variable !== 'response.body' && !variable.startsWith('llm.')),
  )
}

/** Reports errors beyond the schema. */
export function checkExtProc(config: ExtProcConfig, variables: ExtProcVariables, report: ReportIssue): void {
  const { policies, messageTimeout } = config
  checkServiceHost(config, report)
  if (policies) checkBackendPolicies(policies, (path, message) => report(['policies', ...path], message))
  if (messageTimeout !== undefined) {
    const timeoutMs = parseDuration(messageTimeout) ?? 0
    if (timeoutMs === 0) report(['messageTimeout'], 'must be greater than 0')
    if (timeoutMs > longestTimeoutMs) report(['messageTimeout'], 'must be at most 10m')
  }
  for (const name of Object.keys(config.metadataContext?.[initialMetadataNamespace] ?? {})) {
    const field = name.toLowerCase()
    // Values of names with this suffix are bytes.
    if (!isMetadataName(field) || field.endsWith('-bin'))
      report(
        ['metadataContext', initialMetadataNamespace, name],
        'must be a name for text metadata of gRPC: letters, digits, "_", "." and "-", without the prefix grpc-, the suffix -bin and fields of the connection',
      )
  }
  for (const { source, path } of extProcExpressions(config)) {
    const isReply = path[0] === 'responseAttributes'
    const known = isReply ? replyVariablesOf(variables) : variables.request
    checkCel(source, known, (message) => report(path, message))
  }
}

/** Expressions of the policy with their paths. */
export function extProcExpressions({ metadataContext = {}, ...config }: ExtProcConfig) {
  const found: { source: string; path: string[] }[] = []
  for (const [namespace, values] of Object.entries(metadataContext)) {
    for (const [key, source] of Object.entries(values))
      found.push({ source, path: ['metadataContext', namespace, key] })
  }
  for (const field of ['requestAttributes', 'responseAttributes'] as const) {
    for (const [key, source] of Object.entries(config[field] ?? {}))
      found.push({ source, path: [field, key] })
  }
  return found
}

/** Reports a reference to an unknown backend or a backend without servers. */
export function checkExtProcBackend(
  { backend: reference }: ExtProcConfig,
  backends: readonly NamedBackend[],
  report: ReportIssue,
): void {
  if (reference === undefined) return
  const found = findBackend(reference, backends)
  if (found === undefined || !hasServers(found)) report(['backend'], missingBackend(reference, found))
}

/** The configured modes. */
export function configuredModes({ processingOptions: options = {} }: ExtProcConfig): Modes {
  return withDuplexTrailers({
    requestHeaders: options.requestHeaderMode !== 'skip',
    responseHeaders: options.responseHeaderMode !== 'skip',
    requestBody: options.requestBodyMode ?? 'fullDuplexStreamed',
    responseBody: options.responseBodyMode ?? 'fullDuplexStreamed',
    requestTrailers: options.requestTrailerMode !== 'skip',
    responseTrailers: options.responseTrailerMode !== 'skip',
  })
}
