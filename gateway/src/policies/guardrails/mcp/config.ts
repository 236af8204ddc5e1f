import { checkCel } from '../../../cel/checked.ts'
import { parseDuration } from '../../../lib/duration.ts'
import {
  cel,
  enumeration,
  exactlyOne,
  type Infer,
  list,
  map,
  name,
  object,
  optional,
} from '../../../schema/dsl.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import { checkBackendHost, checkBackendPolicies } from '../../../upstream/check.ts'
import {
  backendHostSchema,
  backendPolicyFields,
  findBackend,
  hasServers,
  type NamedBackend,
} from '../../../upstream/config.ts'
import { missingBackend } from '../../../upstream/destination.ts'
import { checkGuardrails, guardFields } from '../config.ts'
import { kindSchemas } from '../kinds/kinds.ts'
import { isMethodPattern } from './phases.ts'

const variableNames = ['now', 'request', 'source', 'jwt', 'basicAuth', 'apiKey', 'mcp']
/** Variables of `metadata`. */
export const metadataVariables: ReadonlySet<string> = new Set(variableNames)

/** Schema of a list of header names. */
export const headerList = (doc: string) =>
  optional(list(name({ doc: 'Name of a header, in any case.' }), { doc }))

/** Documentation of `methods`. */
export const methodsDoc =
  'MCP methods that are checked: a method, `prefix/*`, `*/suffix` or `*`. The most specific entry applies; other methods are not checked. `tasks/result` and `tasks/get` have the phases of `tools/call` unless another entry than `*` matches them.'

/** `metadata` of processors. */
export const processorMetadataSchema = map(
  cel({ doc: 'The value. Without one the name is omitted.', reveals: true }, variableNames),
  { doc: 'Values for the service by name: `metadata_context`.', example: { user: 'jwt.sub' } },
)

const processor = exactlyOne(
  {
    host: backendHostSchema,
    backend: name({ doc: 'Name of an entry of `backends`.', example: '/guard' }),
  },
  {
    kind: optional(enumeration(['remote'], { doc: 'Kind of the processor.', default: 'remote' })),
    methods: optional(
      map(
        enumeration(['off', 'request', 'response', 'full', 'Off', 'Request', 'Response', 'Full'], {
          doc: '`request` checks parameters before the call, `response` checks results, `full` both.',
        }),
        {
          doc: methodsDoc,
          example: { 'tools/call': 'full', '*/list': 'response' },
        },
      ),
    ),
    failureMode: optional(
      enumeration(['failClosed', 'failOpen', 'FailClosed', 'FailOpen'], {
        doc: 'Behaviour if the service fails: `failClosed` refuses the message, `failOpen` allows it.',
        default: 'failClosed',
      }),
    ),
    metadata: optional(processorMetadataSchema),
    requestHeaders: optional(
      object(
        {
          allowed: headerList('Headers that the service receives; all by default.'),
          disallowed: headerList('Headers that the service does not receive.'),
        },
        { doc: 'Headers of the client that the service receives, with pseudo-headers such as `:path`.' },
      ),
    ),
    policies: optional(
      object(
        {
          http: backendPolicyFields.http,
          backendTLS: backendPolicyFields.backendTLS,
          backendAuth: backendPolicyFields.backendAuth,
        },
        {
          doc: 'Policies of calls of the service. `http.requestTimeout` is the limit of a call, 10s by default.',
        },
      ),
    ),
    name: optional(name({ doc: 'Name in metrics and logs.', default: 'scope and number', advanced: true })),
  },
  { doc: 'A gRPC service with the protocol `ExtMcp` of agentgateway.' },
)

/** A guard of arguments and results, which have no other scopes. */
const guard = exactlyOne(kindSchemas, guardFields, { doc: 'Guard.' })

/** `mcpGuardrails`: checks of MCP messages. */
export const mcpGuardrailsSchema = object(
  {
    processors: optional(
      list(
        processor,
        { doc: 'Services that allow, change or refuse messages, in order. The first refusal applies.' },
        { max: 16 },
      ),
    ),
    request: optional(
      list(
        guard,
        { doc: 'Guards of the texts in arguments of tools and prompts, in order, after `processors`.' },
        { max: 64 },
      ),
    ),
    response: optional(
      list(
        guard,
        {
          doc: 'Guards of the texts in results of tools, prompts and resources, in order, after `processors`.',
        },
        { max: 64 },
      ),
    ),
  },
  { doc: 'Guards of MCP messages, after `mcpAuthorization` and limits, before the target.' },
)

export type McpGuardrailsConfig = Infer<typeof mcpGuardrailsSchema>
export type ProcessorConfig = NonNullable<McpGuardrailsConfig['processors']>[number]

const defaultTimeoutMs = 10_000

/** Reports errors beyond the schema. */
export function checkMcpGuardrails(
  { processors = [], request, response }: McpGuardrailsConfig,
  backends: readonly NamedBackend[],
  report: ReportIssue,
): void {
  checkGuardrails({ request, response }, backends, report)
  processors.forEach((config, index) => {
    checkProcessor(config, backends, (path, message) => report(['processors', index, ...path], message))
  })
}

function checkProcessor(
  { host, backend, methods = {}, metadata = {}, policies }: ProcessorConfig,
  backends: readonly NamedBackend[],
  report: ReportIssue,
): void {
  if (host !== undefined) checkBackendHost(host, (message) => report(['host'], message))
  const found = backend === undefined ? undefined : findBackend(backend, backends)
  if (backend !== undefined && (found === undefined || !hasServers(found)))
    report(['backend'], missingBackend(backend, found))
  for (const pattern of Object.keys(methods)) {
    if (!isMethodPattern(pattern))
      report(['methods', pattern], 'must be a method, "prefix/*", "*/suffix" or "*"')
  }
  for (const [name, source] of Object.entries(metadata))
    checkCel(source, metadataVariables, (message) => report(['metadata', name], message))
  if (policies) checkBackendPolicies(policies, (path, message) => report(['policies', ...path], message))
}

/** Time limit of a call in milliseconds. */
export function timeoutOf({ policies }: ProcessorConfig): number {
  return parseDuration(policies?.http?.requestTimeout ?? '0s') || defaultTimeoutMs
}
