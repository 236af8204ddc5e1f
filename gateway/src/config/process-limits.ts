import { mcpLimitFields } from '../backends/mcp/config.ts'
import { defaultMcpLimits, type McpLimits } from '../backends/mcp/sessions/admission.ts'
import { defaultUpstreamLimits } from '../net/http-client/limits.ts'
import { type AdmissionLimits, defaultAdmissionLimits } from '../net/listener/admission.ts'
import { type Infer, integer, object, optional } from '../schema/dsl.ts'

const defaults = defaultAdmissionLimits
const upstream = defaultUpstreamLimits

/** `config.limits`: bounds on resources that clients occupy, for the whole process. */
export const processLimitsSchema = object(
  {
    maxConnections: optional(
      integer(
        {
          doc: 'Most client connections on all listeners together. Further ones are closed. The admin, metrics and readiness addresses are counted apart.',
          default: defaults.maxConnections,
        },
        { min: 1 },
      ),
    ),
    maxConnectionsPerClient: optional(
      integer(
        {
          doc: 'Most connections of one client address; an IPv6 /64 counts as one address. Proxies of `frontendPolicies.http.trustedProxies` are exempt.',
          default: defaults.maxConnectionsPerClient,
        },
        { min: 1 },
      ),
    ),
    ...mcpLimitFields,
    maxPipelinedRequests: optional(
      integer(
        {
          doc: 'Most requests under way on one HTTP/1 connection, whose client sends requests without waiting for answers. Further ones wait, 112 at most; more close the connection.',
          default: defaults.maxPipelinedRequests,
        },
        { min: 1, max: 1_000 },
      ),
    ),
    maxConcurrentStreams: optional(
      integer(
        { doc: 'Most requests under way on one HTTP/2 connection.', default: defaults.maxConcurrentStreams },
        { min: 1, max: 10_000 },
      ),
    ),
    maxBufferedBytes: optional(
      integer(
        {
          doc: 'Most bytes of request bodies that are collected in memory at once, until their requests are over; one client address can occupy half of them. Further requests are answered with 503. By default a quarter of the memory limit of the container or machine, but no less than 64 MiB.',
          example: 268_435_456,
        },
        { min: 1 },
      ),
    ),
    maxUpstreamConnections: optional(
      integer(
        {
          doc: 'Most connections to one origin, such as a model provider, an MCP server or a backend. A stream occupies one until its end.',
          default: upstream.maxUpstreamConnections,
        },
        { min: 1 },
      ),
    ),
    maxUpstreamQueue: optional(
      integer(
        {
          doc: 'Most calls that wait for a connection to one origin; further ones fail at once, as if it could not be reached.',
          default: upstream.maxUpstreamQueue,
        },
        { min: 0 },
      ),
    ),
  },
  {
    doc: 'Bounds on resources that clients occupy, for the whole process. `tollgate_admission_in_use` and `tollgate_admission_refusals_total` report each of them.',
  },
)

type ProcessLimitsConfig = Infer<typeof processLimitsSchema>

/** The bounds of `backends/mcp/sessions/admission.ts`, with their defaults. */
export function mcpLimitsOf(config: ProcessLimitsConfig): McpLimits {
  return {
    maxMcpSessions: config.maxMcpSessions ?? defaultMcpLimits.maxMcpSessions,
    maxMcpSessionsPerClient: config.maxMcpSessionsPerClient ?? defaultMcpLimits.maxMcpSessionsPerClient,
    maxMcpPrograms: config.maxMcpPrograms ?? defaultMcpLimits.maxMcpPrograms,
    maxMcpProgramsPerClient: config.maxMcpProgramsPerClient ?? defaultMcpLimits.maxMcpProgramsPerClient,
  }
}

/** The bounds of `net/listener/admission.ts`, with their defaults. */
export function admissionLimitsOf(config: ProcessLimitsConfig): AdmissionLimits {
  return {
    maxConnections: config.maxConnections ?? defaults.maxConnections,
    maxConnectionsPerClient: config.maxConnectionsPerClient ?? defaults.maxConnectionsPerClient,
    maxPipelinedRequests: config.maxPipelinedRequests ?? defaults.maxPipelinedRequests,
    maxConcurrentStreams: config.maxConcurrentStreams ?? defaults.maxConcurrentStreams,
    maxBufferedBytes: config.maxBufferedBytes ?? defaults.maxBufferedBytes,
  }
}

/** Bounds on calls to one origin, with their defaults. */
export function upstreamLimitsOf(config: ProcessLimitsConfig): { maxConnections: number; maxQueue: number } {
  return {
    maxConnections: config.maxUpstreamConnections ?? upstream.maxUpstreamConnections,
    maxQueue: config.maxUpstreamQueue ?? upstream.maxUpstreamQueue,
  }
}
