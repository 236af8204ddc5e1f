import {
  llmAddressFields,
  llmPolicyMeta,
  llmProviderSchema,
} from '../../backends/llm/config/backend-config.ts'
import { initializeTimeoutSchema, mcpModes } from '../../backends/mcp/config.ts'
import {
  enumeration,
  exactlyOne,
  type Infer,
  integer,
  list,
  map,
  name,
  object,
  optional,
  string,
} from '../../schema/dsl.ts'
import { backendPolicyFields, endpointWeightSchema } from '../../upstream/config.ts'
import type { ConditionsStatus } from '../objects/gateway-api.ts'
import type { ObjectOf } from '../objects/meta.ts'
import { authSchema, llmFields, tlsSchema } from './backend-settings.ts'
import { clusterEnumeration } from './enumerations.ts'

const { http, tcp, health, requestHeaderModifier, responseHeaderModifier } = backendPolicyFields

const tls = optional(tlsSchema('TLS to the servers. `{}` trusts the well-known authorities.'))
const auth = optional(authSchema)

const maxProviders = 16
const maxGroups = 8
const maxTargets = 64
const maxHosts = 64

const hostname = name({
  doc: 'DNS name or IP address. Names of Services count as references to them.',
  example: 'api.example.com',
})
const portNumber = integer({ doc: 'Port.', example: 443 }, { min: 1, max: 65_535 })

const serviceRef = object(
  {
    name: name({ doc: 'Name of the Service.' }),
    namespace: optional(
      name({
        doc: 'Namespace; another one requires a ReferenceGrant.',
        default: 'that of the GatewayBackend',
      }),
    ),
    port: portNumber,
  },
  { doc: 'A Service.' },
)

const providerFields = {
  ...llmAddressFields,
  backendRef: optional(serviceRef),
  policies: optional(
    object(
      { ai: optional(object(llmFields, llmPolicyMeta)), auth, tls, requestHeaderModifier },
      {
        doc: 'Policies of this provider. They take precedence over those of the backend and of GatewayPolicies.',
      },
    ),
  ),
}

const ai = exactlyOne(
  {
    provider: llmProviderSchema,
    groups: list(
      object(
        {
          providers: list(
            object({ ...providerFields, provider: llmProviderSchema }, { doc: 'A provider.' }),
            { doc: 'Providers that share the load.' },
            { min: 1, max: maxProviders },
          ),
        },
        { doc: 'Providers of the same priority.' },
      ),
      { doc: 'Groups of providers by priority, highest first. Failed requests go to the next group.' },
      { min: 1, max: maxGroups },
    ),
  },
  providerFields,
  { doc: 'LLM providers: credentials, translation between APIs, token counts.' },
)

const mcpTarget = exactlyOne(
  {
    static: object({ host: hostname, port: portNumber }, { doc: 'A server by its address.' }),
    backendRef: serviceRef,
    selector: object(
      {
        matchLabels: map(string({ doc: 'Value of the label.' }), {
          doc: 'Labels that a Service must have.',
          example: { team: 'search' },
        }),
      },
      {
        doc: 'Services of the namespace by labels. Each port with the appProtocol `tollgate.dev/mcp` or `tollgate.dev/mcp-sse` is a target, or the only port.',
      },
    ),
  },
  {
    name: name({
      doc: 'Name of the target: lower-case letters, digits, `-` and `.`. With several targets it prefixes the names of tools, prompts and resources. The name of a selected Service follows that of its selector: `<name>-<Service>`.',
      example: 'search',
    }),
    path: optional(
      string({ doc: 'Path of the endpoint.', default: '/mcp, or /sse for SSE', example: '/mcp' }),
    ),
    protocol: optional(
      enumeration(['StreamableHTTP', 'SSE', 'OpenAPI'], {
        doc: '`StreamableHTTP`: MCP over HTTP. `SSE`: HTTP+SSE of MCP 2024-11-05. `OpenAPI`: an HTTP API whose operations become tools; needs `schemaRef`.',
        default: 'StreamableHTTP',
      }),
    ),
    schemaRef: optional(
      object(
        {
          name: name({ doc: 'Name of the ConfigMap, in the namespace of the GatewayBackend.' }),
          key: optional(name({ doc: 'Entry of the ConfigMap.', default: 'openapi.yaml' })),
        },
        { doc: 'ConfigMap with the OpenAPI 3.0 or 3.1 document: JSON, or YAML of at most 128 KiB.' },
      ),
    ),
    policies: optional(
      object({ http, tls, auth, tcp, requestHeaderModifier }, { doc: 'Policies of requests to the target.' }),
    ),
  },
  { doc: 'An MCP server, or an HTTP API as tools.' },
)

const mcp = object(
  {
    targets: list(mcpTarget, { doc: 'MCP servers behind the endpoint.' }, { min: 1, max: maxTargets }),
    statefulMode: optional(
      clusterEnumeration(mcpModes.stateful, {
        doc: '`Stateful`: clients have sessions. `Stateless`: each request opens a separate session at the targets, and clients receive no session id.',
        default: 'Stateful',
      }),
    ),
    prefixMode: optional(
      clusterEnumeration(mcpModes.prefix, {
        doc: 'Target prefix of tool and prompt names (`<target>_<name>`): `Conditional` adds it if there are several targets.',
        default: 'Conditional',
      }),
    ),
    initializeTimeout: optional(initializeTimeoutSchema),
    failureMode: optional(
      clusterEnumeration(mcpModes.failure, {
        doc: 'Effect of a failing target with several targets: `FailClosed` fails requests to all targets, `FailOpen` skips the target.',
        default: 'FailClosed',
      }),
    ),
  },
  { doc: 'MCP servers as one endpoint, which serves every path of the route.' },
)

const staticHosts = object(
  {
    hosts: list(
      object(
        { host: hostname, port: portNumber, weight: optional(endpointWeightSchema) },
        { doc: 'A server.' },
      ),
      { doc: 'Servers that share the requests.' },
      { min: 1, max: maxHosts },
    ),
  },
  { doc: 'HTTP servers by address, for example outside the cluster.' },
)

/** `spec` of a GatewayBackend. */
export const gatewayBackendSpec = exactlyOne(
  { ai, mcp, static: staticHosts },
  {
    policies: optional(
      object(
        { http, tls, auth, tcp, health, requestHeaderModifier, responseHeaderModifier },
        {
          doc: 'Policies of connections and requests to the servers of `ai` and `static`. `health` is for `static` only; targets of `mcp` have policies of their own.',
        },
      ),
    ),
  },
  { doc: 'A destination that is not a Service: models, MCP servers, external hosts.' },
)

export type GatewayBackendSpec = Infer<typeof gatewayBackendSpec>
export type GatewayBackend = ObjectOf<'GatewayBackend', GatewayBackendSpec, ConditionsStatus>

export type AiSpec = NonNullable<GatewayBackendSpec['ai']>
export type ProviderSpec = NonNullable<AiSpec['groups']>[number]['providers'][number]
export type McpSpec = NonNullable<GatewayBackendSpec['mcp']>
export type TargetSpec = McpSpec['targets'][number]
export type ServiceRef = Infer<typeof serviceRef>
