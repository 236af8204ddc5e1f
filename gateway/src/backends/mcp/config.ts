import {
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
import { streamableHttpSchema } from './targets/streamable-http.ts'
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
      doc: 'Name of the target: lower-case letters, digits, `-` and `.`. It prefixes names where there are several targets.',
      example: 'everything',
    }),
    policies: optional(targetPoliciesSchema),
  },
  { doc: 'An MCP server: a program, a server reached over HTTP, or an HTTP API offered as tools.' },
)

/** What an MCP backend is, wherever it is configured. */
const backendFields = {
  targets: list(target, { doc: 'The MCP servers behind the endpoint.' }),
  statefulMode: optional(
    enumeration(['stateful', 'stateless'], {
      doc: '`stateless` opens a session at the targets for every single request and gives clients none.',
      default: 'stateful',
    }),
  ),
  prefixMode: optional(
    enumeration(['conditional', 'always', 'never'], {
      doc: 'Whether names of tools and prompts carry their target (`<target>_<name>`): `conditional` with several targets.',
      default: 'conditional',
    }),
  ),
  initializeTimeout: optional(
    duration({
      doc: 'How long a target may take to answer `initialize`, the start of its program included. The official clients wait for 60 s, and under `failOpen` a target that is slower is left out.',
      default: '45s',
    }),
  ),
  failureMode: optional(
    enumeration(['failClosed', 'failOpen'], {
      doc: 'With several targets: whether one that fails fails what all are asked, or is left out.',
      default: 'failClosed',
    }),
  ),
}

/** `mcp` of a backend of a route, or of a named one. */
export const mcpBackendSchema = object(backendFields, {
  doc: 'MCP servers as one endpoint: every path of the route is the endpoint.',
})

/** Fields of the `mcp` section; the section adds `policies`. */
export const mcpFields = {
  port: optional(
    port({
      doc: 'Port of an MCP endpoint of its own, where every path is the endpoint.',
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

/** Fields of `config.limits` about MCP. */
export const mcpLimitFields = {
  maxMcpSessions: optional(
    integer(
      {
        doc: 'Most MCP sessions in memory. Beyond it, sessions that go on from their id are put out of memory, others are ended once they were unused for a minute; else new ones are refused with 503.',
        default: defaultMcpLimits.maxMcpSessions,
      },
      { min: 1 },
    ),
  ),
  maxMcpSessionsPerClient: optional(
    integer(
      {
        doc: 'Most MCP sessions of one client: of one subject or virtual key, without authentication of one address (IPv6: /64). A new session ends one that was unused for a minute, else it is refused with 429.',
        default: defaultMcpLimits.maxMcpSessionsPerClient,
      },
      { min: 1 },
    ),
  ),
  maxMcpPrograms: optional(
    integer(
      {
        doc: 'Most programs of `stdio` targets that run at a time. Beyond it, `initialize` is refused with 503.',
        default: defaultMcpLimits.maxMcpPrograms,
      },
      { min: 1, max: 5_000 },
    ),
  ),
  maxMcpProgramsPerClient: optional(
    integer(
      {
        doc: 'Most programs of `stdio` targets that run for one client. Beyond it, `initialize` is refused with 429.',
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
      duration({ doc: 'How long an MCP session may be unused before it ends.', default: '30m' }),
    ),
  },
  { doc: 'Settings of MCP sessions.' },
)

/** `config.session`. */
export const sessionSettingsSchema = object(
  {
    key: optional(
      secret({
        doc: 'Key that session ids are sealed with: 32 bytes as 64 hexadecimal digits. Replicas share it, so that a session can go on at another one or after a restart. Without it every process makes its own.',
        example: '$SESSION_KEY',
        default: 'the environment variable SESSION_KEY, else a random key',
      }),
    ),
  },
  { doc: 'Session ids.' },
)
