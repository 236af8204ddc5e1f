import { checkLlm } from '../backends/llm/check-config.ts'
import { llmFields } from '../backends/llm/config.ts'
import { checkMcp, checkSessionKey, checkSessionTtl } from '../backends/mcp/check-config.ts'
import { mcpFields, mcpSettingsSchema, sessionSettingsSchema } from '../backends/mcp/config.ts'
import { isLoopbackHost, parseHostPort } from '../lib/host-port.ts'
import { checkRoutePolicies } from '../policies/index/check.ts'
import { llmPoliciesSchema, mcpPoliciesSchema } from '../policies/index/schema.ts'
import {
  duration,
  enumeration,
  hostPort,
  type Infer,
  integer,
  object,
  optional,
  string,
} from '../schema/dsl.ts'
import { jsonSchemaOf } from '../schema/json-schema.ts'
import type { Report } from './load.ts'
import { portsOf } from './ports.ts'

const maxBufferBytes = 1024 * 1024 * 1024

const logging = object(
  {
    level: optional(
      enumeration(['debug', 'info', 'warn', 'error'], {
        doc: 'Least important lines that are written. The access log is `info`.',
        default: 'info',
      }),
    ),
  },
  { doc: 'The log on standard output: JSON lines.' },
)

const processSettings = object(
  {
    adminAddr: optional(
      hostPort({
        doc: 'Admin address. It has no authentication and must stay on loopback.',
        default: '127.0.0.1:15000',
      }),
    ),
    statsAddr: optional(hostPort({ doc: 'Serves Prometheus metrics on `/metrics`.', default: '[::]:15020' })),
    readinessAddr: optional(hostPort({ doc: 'Serves `/healthz/ready`.', default: '[::]:15021' })),
    bindAddress: optional(
      string({ doc: 'IP address that listeners bind to.', default: '::', example: '127.0.0.1' }),
    ),
    connectionTerminationDeadline: optional(
      duration({ doc: 'How long requests in flight may take after a stop signal.', default: '25s' }),
    ),
    logging: optional(logging),
    mcp: optional(mcpSettingsSchema),
    session: optional(sessionSettingsSchema),
  },
  { doc: 'Settings of the process, read once at start.' },
)

const frontendPolicies = object(
  {
    http: optional(
      object(
        {
          maxBufferSize: optional(
            integer(
              {
                doc: 'Largest request body that is read, in bytes; larger ones are answered with 413.',
                default: 33_554_432,
              },
              { min: 1, max: maxBufferBytes },
            ),
          ),
        },
        { doc: 'Limits of HTTP requests.' },
      ),
    ),
  },
  { doc: 'What holds for every listener.' },
)

/** The configuration file. */
export const configSchema = object(
  {
    config: optional(processSettings),
    frontendPolicies: optional(frontendPolicies),
    llm: optional(
      object(
        { ...llmFields, policies: optional(llmPoliciesSchema) },
        { doc: 'The LLM endpoint: models, keys, limits and rules.' },
      ),
    ),
    mcp: optional(
      object(
        { ...mcpFields, policies: optional(mcpPoliciesSchema) },
        { doc: 'The MCP endpoint: servers behind it, authentication and rules.' },
      ),
    ),
  },
  { doc: 'Configuration of Tollgate.' },
)

export type Config = Infer<typeof configSchema>

/** JSON Schema of the configuration file, for editors. */
export function configJsonSchema(): object {
  return jsonSchemaOf(configSchema, { title: 'Tollgate configuration' })
}

/** Rules about the whole file that a schema cannot say. */
export function checkConfig(config: Config, report: Report): void {
  const under =
    (...prefix: string[]) =>
    (path: (string | number)[], message: string) =>
      report([...prefix, ...path], message)
  const { adminAddr } = config.config ?? {}
  if (adminAddr !== undefined && !isLoopback(adminAddr)) {
    report(
      ['config', 'adminAddr'],
      'the admin address has no authentication and must stay on loopback (127.0.0.1, localhost or [::1]); ' +
        'serving it elsewhere, behind authentication, is what ui.gateways is for (not in this version yet)',
    )
  }
  const ports = portsOf(config)
  if (ports.mcp !== undefined && ports.mcp !== 0 && ports.mcp === ports.llm) {
    report(['mcp'], `listens on port ${ports.mcp}, which llm uses already`)
  }
  const { session, mcp: mcpSettings } = config.config ?? {}
  if (session?.key !== undefined) checkSessionKey(session.key, under('config', 'session', 'key'))
  if (mcpSettings?.sessionTtl !== undefined) {
    checkSessionTtl(mcpSettings.sessionTtl, under('config', 'mcp', 'sessionTtl'))
  }
  if (config.mcp) checkMcp(config.mcp, under('mcp'))
  if (config.mcp?.policies) checkRoutePolicies(config.mcp.policies, 'mcp', under('mcp', 'policies'))
  if (config.llm) checkLlm(config.llm, under('llm'))
  if (config.llm?.policies) checkRoutePolicies(config.llm.policies, 'llm', under('llm', 'policies'))
}

function isLoopback(address: string): boolean {
  return isLoopbackHost(parseHostPort(address)?.host ?? '')
}
