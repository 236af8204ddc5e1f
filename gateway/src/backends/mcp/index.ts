import { randomBytes } from 'node:crypto'
import { parseDuration } from '../../lib/duration.ts'
import type { Reply } from '../../net/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Backend } from '../../pipeline/policy.ts'
import type { McpRules } from './client.ts'
import type { McpConfig, TargetConfig } from './config.ts'
import { createEndpoint } from './endpoint.ts'
import { federate } from './federation.ts'
import { refuseMcp } from './replies.ts'
import { createSessionIds, readSessionKey } from './session-id.ts'
import { createSessions, type Sessions } from './sessions.ts'
import { compileOpenApi } from './targets/openapi.ts'
import { compileSse } from './targets/sse.ts'
import { compileStdio } from './targets/stdio.ts'
import { compileStreamableHttp } from './targets/streamable-http.ts'
import type { Target } from './targets/target.ts'

export type McpOptions = {
  /** Bound on a request body: `frontendPolicies.http.maxBufferSize`. */
  maxBufferSize: number
  /** `config.session.key`, or the environment's `SESSION_KEY`. */
  sessionKey?: string | undefined
  /** `config.mcp.sessionTtl`. */
  sessionTtl?: string | undefined
  rules?: McpRules | undefined
  /** Version the gateway introduces itself with to clients and targets. */
  version: string
  /** Names where this is configured; sessions belong to it. */
  place?: string
}

/** What a route to MCP servers is made of. */
export type Mcp = {
  backend: Backend
  /** Ends all streams, and all sessions that no other process can go on with. To be called when the gateway stops. */
  stop(): Promise<void>
}

const defaultSessionTtlMs = 30 * 60_000
const maxSessions = 10_000
const maxRemembered = 100_000
const sweepEveryMs = 30_000

/** Compiles the `mcp` section. Throws on what `checkMcp` reports. */
export function compileMcp(config: McpConfig, context: CompileContext, options: McpOptions): Mcp {
  const { rules, version, place = 'mcp' } = options
  const sessions = context.keep(`${place}/sessions`, () => keepSessions(context, options, place))
  const federation = context.memo(
    config.targets,
    `${place}/federation ${config.prefixMode} ${config.failureMode}`,
    () =>
      federate(
        config.targets.map((target) =>
          context.memo(target, 'mcp/target', () => compileTarget(target, context)),
        ),
        {
          prefixMode: config.prefixMode ?? 'conditional',
          failOpen: config.failureMode === 'failOpen',
          version,
        },
      ),
  )
  const backend = federation
    ? createEndpoint({
        federation,
        sessions,
        clock: context.clock,
        stateless: config.statefulMode === 'stateless',
        rules,
        maxBodyBytes: options.maxBufferSize,
        version,
      })
    : refuseAll
  return { backend, stop: () => sessions.stop() }
}

function refuseAll(exchange: Exchange): Reply {
  return refuseMcp(exchange, { status: 503, reason: 'no targets', message: 'no targets are configured' })
}

function compileTarget(target: TargetConfig, context: CompileContext): Target {
  const { name } = target
  if (target.stdio !== undefined) return compileStdio(name, target.stdio, context)
  if (target.mcp !== undefined) return compileStreamableHttp(name, target.mcp, context)
  if (target.sse !== undefined) return compileSse(name, target.sse, context)
  if (target.openapi !== undefined) return compileOpenApi(name, target.openapi, context)
  throw new Error(`mcp.targets "${name}": unknown kind of target`)
}

/** Sessions outlive reloads; they are looked through as long as the process runs. */
function keepSessions(
  { clock }: CompileContext,
  { sessionKey, sessionTtl }: McpOptions,
  place: string,
): Sessions {
  const key = sessionKey === undefined ? undefined : readSessionKey(sessionKey)
  if (sessionKey !== undefined && key === undefined) {
    throw new Error('the session key must be 64 hexadecimal digits (32 bytes)')
  }
  const sessions = createSessions({
    clock,
    ids: createSessionIds(key ?? randomBytes(32), place),
    sharedKey: key !== undefined,
    ttlMs: (sessionTtl === undefined ? undefined : parseDuration(sessionTtl)) ?? defaultSessionTtlMs,
    maxSessions,
    maxRemembered,
  })
  const timer = setInterval(() => sessions.sweep(), sweepEveryMs)
  timer.unref()
  return sessions
}
