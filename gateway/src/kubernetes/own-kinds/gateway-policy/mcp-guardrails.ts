import { headerList, methodsDoc, processorMetadataSchema } from '../../../policies/guardrails/mcp/config.ts'
import { duration, type Infer, list, map, object, optional } from '../../../schema/dsl.ts'
import { clusterEnumeration } from '../enumerations.ts'
import { backendReferenceSchema } from '../references.ts'
import { guardsOfTools } from './guards.ts'

const maxProcessors = 16

const remote = object(
  {
    backendRef: backendReferenceSchema('The service.'),
    failureMode: optional(
      clusterEnumeration(['failClosed', 'failOpen'], {
        doc: 'Behaviour if the service fails: `FailClosed` refuses the message, `FailOpen` allows it. A broken `backendRef` always refuses.',
        default: 'FailClosed',
      }),
    ),
    metadata: optional(processorMetadataSchema),
    allowedRequestHeaders: headerList('Headers that the service receives; all by default.'),
    disallowedRequestHeaders: headerList('Headers that the service does not receive.'),
    timeout: optional(duration({ doc: 'Limit of a call.', default: 'that of the GatewayBackend, or 10s' })),
  },
  { doc: 'A gRPC service with the protocol `ExtMcp` of agentgateway.' },
)

const processor = object(
  {
    remote,
    methods: map(
      clusterEnumeration(['off', 'request', 'response', 'full'], {
        doc: '`Request` checks parameters before the call, `Response` checks results, `Full` both.',
      }),
      { doc: methodsDoc, example: { 'tools/call': 'Full', '*/list': 'Response' } },
    ),
  },
  { doc: 'A service that allows, changes or refuses messages.' },
)

/** `backend.mcp.guardrails`. */
export const mcpGuardrailsSchema = object(
  {
    processors: optional(
      list(
        processor,
        { doc: 'Services, in order. The first refusal applies.' },
        { min: 1, max: maxProcessors },
      ),
    ),
    request: guardsOfTools(
      'Guards of the texts in arguments of tools and prompts, in order, after `processors`.',
    ),
    response: guardsOfTools(
      'Guards of the texts in results of tools, prompts and resources, in order, after `processors`.',
    ),
  },
  { doc: 'Guards of MCP messages, after `mcpAuthorization` and limits, before the target.' },
)

export type McpGuardrails = Infer<typeof mcpGuardrailsSchema>
export type McpProcessor = Infer<typeof processor>
