import {
  boolean,
  duration,
  enumeration,
  exactlyOne,
  type Infer,
  integer,
  list,
  name,
  object,
  optional,
  port,
  secret,
} from '../../schema/dsl.ts'
import { gatewayReferences } from '../../schema/gateway-references.ts'
import { defaultMcpLimits } from './sessions/admission.ts'
import { openApiSchema } from './targets/openapi/openapi.ts'
import { sseSchema } from './targets/sse.ts'
import { stdioSchema } from './targets/stdio.ts'
import { streamableHttpSchema } from './targets/streamable-http/streamable-http.ts'
import { targetPoliciesSchema } from './targets/upstream.ts'

const target = exactlyOne(
  {
    stdio: stdioSchema,
    mcp: streamableHttpSchema,
    sse: sseSchema,
    openapi: openApiSchema,
  },
  {
    name: name({
      doc: 'Name of the target: lower-case letters, digits, `-` and `.`. With several targets it prefixes the names of tools, prompts and resources.',
      example: 'everything',
    }),
    policies: optional(targetPoliciesSchema),
  },
  {
    doc: 'An MCP server: a local program (`stdio`), a remote server (`mcp`, `sse`), or an HTTP API exposed as tools (`openapi`).',
  },
)

/** Values of `statefulMode`, `prefixMode` and `failureMode`. */
export const mcpModes = {
  stateful: ['stateful', 'stateless'],
  prefix: ['conditional', 'always', 'never'],
  failure: ['failClosed', 'failOpen'],
} as const

/** `initializeTimeout` of an MCP backend. */
export const initializeTimeoutSchema = duration({
  doc: 'Time limit of a target for the response to `initialize`, including the start of its program. The official clients wait for 60 s. Under `failOpen`, a slower target is skipped.',
  default: '45s',
})

/** Fields of an MCP backend in each location of the configuration. */
const backendFields = {
  targets: list(target, { doc: 'MCP servers behind the endpoint.' }),
  statefulMode: optional(
    enumeration(mcpModes.stateful, {
      doc: '`stateful`: clients have sessions. `stateless`: each request opens a separate session at the targets, and clients receive no session id.',
      default: 'stateful',
    }),
  ),
  prefixMode: optional(
    enumeration(mcpModes.prefix, {
      doc: 'Target prefix of tool and prompt names (`<target>_<name>`): `conditional` adds it if there are several targets.',
      default: 'conditional',
    }),
  ),
  initializeTimeout: optional(initializeTimeoutSchema),
  dnsRebindingProtection: optional(
    boolean({
      doc: 'Refuses requests whose `host` or `origin` is not `localhost`, `127.0.0.1` or `[::1]` with 403, for endpoints that serve this machine only.',
      default: false,
      advanced: true,
    }),
  ),
  failureMode: optional(
    enumeration(mcpModes.failure, {
      doc: 'Effect of a failing target with several targets: `failClosed` fails requests to all targets, `failOpen` skips the target.',
      default: 'failClosed',
    }),
  ),
}

/** `mcp` of a backend of a route, or of a named one. */
export const mcpBackendSchema = object(backendFields, {
  doc: 'MCP servers as one endpoint, which serves every path of the route.',
})

/** Fields of the `mcp` section; the section adds `policies`. */
export const mcpFields = {
  port: optional(
    port({
      doc: 'Port of a separate MCP endpoint, which serves every path.',
      default: '3000 where there is neither gateways nor a gateway named default',
    }),
  ),
  gateways: optional(gatewayReferences),
  ...backendFields,
}

const fields = object(mcpFields, { doc: 'The MCP endpoint.' })

export type McpBackendConfig = Infer<typeof mcpBackendSchema>
export type McpConfig = Infer<typeof fields>
export type TargetConfig = McpBackendConfig['targets'][number]

/** MCP fields of `config.limits`. */
export const mcpLimitFields = {
  maxMcpSessions: optional(
    integer(
      {
        doc: 'Maximum number of MCP sessions in memory. At the limit, resumable sessions leave memory, and other sessions end after a minute without use; otherwise new sessions are rejected with 503.',
        default: defaultMcpLimits.maxMcpSessions,
      },
      { min: 1 },
    ),
  ),
  maxMcpSessionsPerClient: optional(
    integer(
      {
        doc: 'Maximum number of MCP sessions per client: per subject or virtual key, without authentication per address (IPv6: /64). At the limit, a new session ends a session without use for a minute, or is rejected with 429.',
        default: defaultMcpLimits.maxMcpSessionsPerClient,
      },
      { min: 1 },
    ),
  ),
  maxMcpPrograms: optional(
    integer(
      {
        doc: 'Maximum number of concurrent programs of `stdio` targets. At the limit, `initialize` is rejected with 503.',
        default: defaultMcpLimits.maxMcpPrograms,
      },
      { min: 1, max: 5_000 },
    ),
  ),
  maxMcpProgramsPerClient: optional(
    integer(
      {
        doc: 'Maximum number of concurrent programs of `stdio` targets per client. At the limit, `initialize` is rejected with 429.',
        default: defaultMcpLimits.maxMcpProgramsPerClient,
      },
      { min: 1 },
    ),
  ),
}

/** `config.mcp`. */
export const mcpSettingsSchema = object(
  {
    sessionTtl: optional(
      duration({ doc: 'Time without use after which an MCP session ends.', default: '30m' }),
    ),
  },
  { doc: 'Settings of MCP sessions.' },
)

/** `config.session`. */
export const sessionSettingsSchema = object(
  {
    key: optional(
      secret({
        doc: 'Encryption key of session ids: 32 bytes as 64 hexadecimal digits. Replicas with the same key can resume the sessions of each other, also after a restart. Without it, each process generates a key.',
        example: '$SESSION_KEY',
        default: 'the environment variable SESSION_KEY, else a random key',
      }),
    ),
  },
  { doc: 'Session ids.' },
)
