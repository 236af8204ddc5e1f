import { createHash } from 'node:crypto'
import { milliseconds } from '../../lib/duration.ts'
import type { JsonLimits } from '../../lib/json/limits.ts'
import { readSessionKey } from '../../lib/session-key.ts'
import type { Reply, Send } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { McpCheck } from '../../pipeline/mcp/mcp-check.ts'
import type { Backend, Policy } from '../../pipeline/policy.ts'
import type { BackendPolicies } from '../../upstream/config.ts'
import { type Destination, mergePolicies } from '../../upstream/destination.ts'
import { sendFrom } from '../../upstream/egress.ts'
import type { EndpointServers } from '../../upstream/endpoints.ts'
import type { McpBackendConfig, TargetConfig } from './config.ts'
import type { McpRules } from './endpoint/call-context.ts'
import { localOnly } from './endpoint/dns-rebinding.ts'
import { createEndpoint } from './endpoint/endpoint.ts'
import { refuseMcp } from './endpoint/error-responses.ts'
import { federate } from './federation/federation.ts'
import { compileLogin, loginPolicy } from './logins/logins.ts'
import type { TargetFailure } from './message/message.ts'
import { createSessionHub, type SessionLinks } from './planes/session-links.ts'
import {
  createProgramSlots,
  createSessionSlots,
  defaultMcpLimits,
  type McpLimits,
  type Slots,
} from './sessions/admission.ts'
import { createOpenStreams } from './sessions/open-streams.ts'
import { createSessionIds } from './sessions/session-id.ts'
import { createSessions, type Sessions } from './sessions/sessions.ts'
import { readAddress } from './targets/address.ts'
import {
  compileDefaults,
  nodesOfDefaults,
  type TargetDefaults,
  type TargetPolicies,
  withRetries,
} from './targets/defaults.ts'
import { withEjection } from './targets/ejection/ejection.ts'
import { compileOpenApi, type OpenApiContext } from './targets/openapi/openapi.ts'
import { compileSpreadTarget } from './targets/spread.ts'
import { compileSse } from './targets/sse.ts'
import { compileStdio } from './targets/stdio.ts'
import { compileMcpAddress, compileStreamableHttp } from './targets/streamable-http/streamable-http.ts'
import type { Target } from './targets/target.ts'
import { compileUpstream, type FindDestination, withUpstream } from './targets/upstream.ts'

export type McpOptions = {
  /** Maximum request body size in bytes: `frontendPolicies.http.maxBufferSize`. */
  maxBufferSize: number
  /**
   * Maximum message size in bytes, in addition to `maxBufferSize`: `frontendPolicies.http.maxMcpMessageSize`.
   */
  maxMessageSize?: number | undefined
  /** Bytes of arguments and results in the ledger; undefined if it stores none. */
  maxPayloadSize?: number | undefined
  /** Limits on the JSON structure of a request body: `frontendPolicies.http.json`. */
  jsonLimits?: JsonLimits | undefined
  /** `config.session.key`, or the environment's `SESSION_KEY`. */
  sessionKey?: string | undefined
  /** `config.mcp.sessionTtl`. */
  sessionTtl?: string | undefined
  /** Limits of `config.limits`; the values at process start apply until its end. */
  limits?: McpLimits | undefined
  rules?: McpRules | undefined
  /** Limits and guards of single messages, in order. */
  checks?: readonly McpCheck[] | undefined
  /** Gateway version in `clientInfo` and `serverInfo`. */
  version: string
  /** Identifies the configured endpoint; a session id is valid only at the endpoint that issued it. */
  scope?: string
  /** Resolves the named backend of a target. */
  destination?: FindDestination | undefined
  /** Resolves the named backend of a target to its endpoints; undefined if it has none. */
  endpoints?: ((reference: string, defaults?: BackendPolicies) => EndpointServers | undefined) | undefined
  /** Policies of the endpoint for requests to its targets. */
  policies?: TargetPolicies | undefined
}

/** Compiled MCP endpoint. */
export type Mcp = {
  backend: Backend
  /** Serves pages for browsers, before all other policies; undefined without any. */
  pages: Policy | undefined
  /** Ends all streams, and the sessions that other processes cannot resume; called at shutdown. */
  stop(): Promise<void>
}

/** Messages are decoded synchronously: 4 MiB take up to 10 ms, 32 MiB 80 ms. */
export const defaultMaxMessageBytes = 4 * 1024 * 1024

const defaultInitializeTimeoutMs = 45_000
const defaultSessionTtlMs = 30 * 60_000
const maxEndedIds = 100_000
const shortestSweepMs = 1_000
const longestSweepMs = 30_000

/**
 * Compiles the `mcp` section, or the `mcp` backend of a route. Throws for configurations that `checkMcp`
 * reports.
 */
export function compileMcp(config: McpBackendConfig, context: CompileContext, options: McpOptions): Mcp {
  const { rules, checks, version, scope = 'mcp' } = options
  const limits = options.limits ?? defaultMcpLimits
  const meterOf = context.metrics.admission
  const slots = context.retained('mcp-admission/sessions', () =>
    createSessionSlots(limits, meterOf, context.memory),
  )
  const hub = sessionHub(context)
  const sessions = context.retained(`${scope}/sessions`, () =>
    retainSessions(context, { ...options, slots, links: hub.join(scope) }, scope),
  )
  const streams = context.retained(`${scope}/streams`, createOpenStreams)
  const { prefixMode = 'conditional', failureMode, targets } = config
  const defaults = targetDefaults(config, context, options)
  const resolved = resolveTargets(config, defaults, options)
  const node = cacheNode(targets, [...resolved.map(({ server }) => server), defaults], context)
  const initializeTimeoutMs = milliseconds(config.initializeTimeout) ?? defaultInitializeTimeoutMs
  const settings = `${prefixMode} ${failureMode} ${initializeTimeoutMs}`
  const federation = context.cached(node, `${scope}/federation ${settings}`, () =>
    federate(compileResolved(resolved, { context, limits, defaults }), {
      prefixMode,
      failOpen: failureMode === 'failOpen',
      version,
      initializeTimeoutMs,
      onInitialized: failureReporter(context),
    }),
  )
  const backend = federation
    ? createEndpoint({
        federation,
        sessions,
        streams,
        clock: context.clock,
        stateless: config.statefulMode === 'stateless',
        rules,
        checks,
        maxBodyBytes: Math.min(options.maxBufferSize, options.maxMessageSize ?? defaultMaxMessageBytes),
        jsonLimits: options.jsonLimits,
        maxPayloadSize: options.maxPayloadSize,
        workQueue: context.workQueue,
        version,
      })
    : refuseAll
  const pages = federation && loginPolicy(federation.members, context)
  const served = config.dnsRebindingProtection === true ? localOnly(backend) : backend
  const stop = () => {
    streams.endAll()
    return sessions.stop()
  }
  return { backend: served, pages, stop }
}

/** Reports targets that fail new sessions, until a session starts or failures end. */
function failureReporter({ clock, metrics: { conditions } }: CompileContext) {
  const failures = new Map<string, number>()
  return (target: string, failure: TargetFailure | undefined): void => {
    if (failure === undefined) {
      failures.delete(target)
      return
    }
    // Refusals are decisions of the gateway or the server.
    if (failure.kind !== 'error' && failure.kind !== 'ended') return
    failures.set(target, clock.monotonic())
    conditions.report({
      kind: 'mcpTarget',
      subject: target,
      message: failure.kind === 'error' ? failure.error.message : failure.reason,
      isPresent: () => clock.monotonic() - (failures.get(target) ?? Number.NEGATIVE_INFINITY) < failingMs,
    })
  }
}

/** Time after its last failure for which a target counts as failing. */
const failingMs = 300_000

/**
 * The targets of an endpoint, without rules: the same objects that its traffic uses, as long as their
 * configuration is active.
 */
export function compileTargets(
  config: McpBackendConfig,
  context: CompileContext,
  options: Pick<McpOptions, 'limits' | 'destination' | 'endpoints' | 'policies'>,
): Target[] {
  const defaults = targetDefaults(config, context, options)
  const { limits = defaultMcpLimits } = options
  return compileResolved(resolveTargets(config, defaults, options), { context, limits, defaults })
}

/** The compiled defaults of an endpoint: the same object while its configuration is the same. */
function targetDefaults(
  { targets }: McpBackendConfig,
  context: CompileContext,
  { policies }: Pick<McpOptions, 'policies'>,
): TargetDefaults | undefined {
  const nodes = policies === undefined ? [] : nodesOfDefaults(policies)
  if (policies === undefined || (nodes.length === 0 && policies.timeoutMs === undefined)) return undefined
  return context.cached(cacheNode(targets, nodes, context), `mcp/defaults ${policies.timeoutMs}`, () =>
    compileDefaults(policies),
  )
}

type Resolved = { readonly target: TargetConfig; readonly server: Server | undefined }

function resolveTargets(
  { targets }: McpBackendConfig,
  defaults: TargetDefaults | undefined,
  options: Pick<McpOptions, 'destination' | 'endpoints'>,
): Resolved[] {
  return targets.map((target) => ({ target, server: serverOf(target, defaults, options) }))
}

type Compilation = { context: CompileContext; limits: McpLimits; defaults: TargetDefaults | undefined }

function compileResolved(
  resolved: readonly Resolved[],
  { context, limits, defaults }: Compilation,
): Target[] {
  const programs = context.retained('mcp-admission/programs', () =>
    createProgramSlots(limits, context.metrics.admission, context.memory),
  )
  const hub = sessionHub(context)
  return resolved.map(({ target, server }) =>
    context.cached(cacheNode(target, [server, defaults], context), 'mcp/target', () => ({
      ...compileServedTarget(target, server, { ...context, programs, defaults }),
      signature: hub.isShared ? digestOf(target, defaults) : undefined,
    })),
  )
}

function sessionHub(context: CompileContext) {
  return context.retained('mcp-session-hub', () => createSessionHub(context.peers))
}

function refuseAll(exchange: Exchange): Reply {
  return refuseMcp(exchange, { status: 503, reason: 'no targets', message: 'no targets are configured' })
}

/**
 * Cache key with the lifetime of the node and its other parts, such as named backends, which have separate
 * nodes.
 */
function cacheNode(node: object, parts: readonly (object | undefined)[], { cached }: CompileContext): object {
  return parts.reduce<object>((joint, part) => {
    if (part === undefined) return joint
    const joints = cached(part, 'mcp/joint', () => new WeakMap<object, object>())
    const known = joints.get(joint)
    if (known !== undefined) return known
    const made = {}
    joints.set(joint, made)
    return made
  }, node)
}

/** The named backend of a target: one server, or endpoints. */
type Server = Destination | EndpointServers

function serverOf(
  { name, mcp, sse, openapi }: TargetConfig,
  defaults: TargetDefaults | undefined,
  { destination: find, endpoints }: Pick<McpOptions, 'destination' | 'endpoints'>,
): Server | undefined {
  const reference = (mcp ?? sse ?? openapi)?.backend
  if (reference === undefined) return undefined
  const policies = defaults?.policies
  const server = endpoints?.(reference, policies) ?? find?.(reference, policies)
  if (server === undefined) throw new Error(`target "${name}": backend ${reference} does not exist`)
  return server
}

type TargetContext = CompileContext & { programs: Slots; defaults: TargetDefaults | undefined }

function compileServedTarget(
  target: TargetConfig,
  server: Server | undefined,
  context: TargetContext,
): Target {
  if (server === undefined || !('destinations' in server)) return compileTarget(target, server, context)
  return compileSpreadTarget({
    name: target.name,
    servers: server,
    compileAt: (destination) => compileTarget(target, destination, context),
    sessionless: target.mcp !== undefined,
    authorize: () => server.destinations()[0]?.destination.authorize,
    random: context.random,
  })
}

function compileTarget(
  target: TargetConfig,
  destination: Destination | undefined,
  context: TargetContext,
): Target {
  const { name, stdio } = target
  if (stdio !== undefined) return compileStdio(name, stdio, context)
  const { defaults } = context
  const policies = policiesOf(target, defaults)
  const secure = policies?.backendTLS !== undefined
  const place = placeOf(target, secure)
  const upstream = destination ?? (policies && compileUpstream(policies, { target, place }, context))
  const ownSend = sendFrom(target, context)
  if (upstream === undefined) return compileHttpTarget(target, { ...context, send: ownSend })
  const { requestTimeoutMs = defaults?.timeoutMs } = upstream
  const sends = withRetries(withUpstream(context.send, { ...upstream, requestTimeoutMs }), defaults?.retry)
  const asked = { ...context, ...sends, sendForDocument: ownSend, destination, secure }
  const compiled = { ...compileHttpTarget(target, asked), authorize: () => upstream.authorize }
  return withLogin(withEjection(compiled, upstream.health, context), target, context)
}

/** Key of the health of a target: targets with the same name and server share it. */
function placeOf({ name, mcp, sse, openapi }: TargetConfig, secure: boolean): string {
  const config = mcp ?? sse ?? openapi
  const reading = config && readAddress(config, '/', { secure })
  return reading?.kind === 'address' ? `mcp/${name} ${new URL(reading.address.origin).host}` : `mcp/${name}`
}

/** Policies of a target. With a login of users there, a default of `backendAuth` has no effect. */
function policiesOf({ policies }: TargetConfig, defaults: TargetDefaults | undefined) {
  if (defaults === undefined) return policies
  const { backendAuth: _, ...others } = defaults.policies
  return mergePolicies([policies, policies?.oauth === undefined ? defaults.policies : others])
}

/** The login of users at an `mcp` target. */
function withLogin(compiled: Target, target: TargetConfig, context: CompileContext): Target {
  const { name, mcp, policies } = target
  if (policies?.oauth === undefined || mcp === undefined) return compiled
  const address = compileMcpAddress(name, mcp, { secure: policies.backendTLS !== undefined })
  return { ...compiled, login: compileLogin(policies.oauth, { name, address, node: target }, context) }
}

function compileHttpTarget(target: TargetConfig, context: OpenApiContext & { sendAgain?: Send }): Target {
  const { name, mcp, sse, openapi } = target
  if (mcp !== undefined) return compileStreamableHttp(name, mcp, context)
  if (sse !== undefined) return compileSse(name, sse, context)
  if (openapi !== undefined) return compileOpenApi(name, openapi, context)
  throw new Error(`target "${name}": unsupported kind of target`)
}

/** Digest of the configuration of a target. */
function digestOf(target: TargetConfig, defaults: TargetDefaults | undefined): string {
  const parts = defaults === undefined ? target : [target, defaults.policies]
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 22)
}

/** Creates the sessions of an endpoint. They survive reloads, and the removal of the endpoint. */
function retainSessions(
  { clock, processKey }: CompileContext,
  { sessionKey, sessionTtl, slots, links }: McpOptions & { slots: Slots; links: SessionLinks | undefined },
  scope: string,
): Sessions {
  const key = sessionKey === undefined ? undefined : readSessionKey(sessionKey)
  if (sessionKey !== undefined && key === undefined) {
    throw new Error('the session key must be 64 hexadecimal digits (32 bytes)')
  }
  const ttlMs = milliseconds(sessionTtl) ?? defaultSessionTtlMs
  return createSessions({
    clock,
    ids: createSessionIds(key ?? Buffer.from(processKey), scope),
    sharedKey: key !== undefined,
    ttlMs,
    slots,
    maxEndedIds: maxEndedIds,
    // Sweeps at least once per TTL, so that no session lives longer than twice its TTL.
    sweepEveryMs: Math.max(shortestSweepMs, Math.min(longestSweepMs, ttlMs)),
    links,
  })
}
