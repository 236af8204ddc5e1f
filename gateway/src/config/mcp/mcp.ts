import {
  checkForwardingPolicies,
  type ForwardingPolicies,
  forwardingPolicyFields,
} from '../../backends/http/config.ts'
import { compileMirrors } from '../../backends/http/http.ts'
import type { Mirror } from '../../backends/http/mirror.ts'
import { compileRetry, retrying } from '../../backends/http/retry.ts'
import type { McpBackendConfig } from '../../backends/mcp/config.ts'
import type { TargetPolicies } from '../../backends/mcp/targets/defaults.ts'
import { milliseconds } from '../../lib/duration.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { McpCheck } from '../../pipeline/mcp/mcp-check.ts'
import type { Backend } from '../../pipeline/policy.ts'
import { withRequestTimeout } from '../../pipeline/request-timeout.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkBackendPolicies, checkBackendTls } from '../../upstream/check.ts'
import {
  type BackendPolicies,
  backendPolicyFields,
  findBackend,
  type NamedBackend,
} from '../../upstream/config.ts'
import { checkBackendAuth } from '../../upstream/credentials/check.ts'
import { compileHeaderModifier } from '../../upstream/header-modifier.ts'

/** Policies of forwarding of an MCP endpoint: of the `mcp` section, or of a route with an `mcp` backend. */
export const mcpForwardingFields = {
  ...forwardingPolicyFields,
  backendTLS: backendPolicyFields.backendTLS,
  backendAuth: backendPolicyFields.backendAuth,
  backendTunnel: backendPolicyFields.backendTunnel,
}

export type McpForwarding = ForwardingPolicies &
  Pick<BackendPolicies, 'backendTLS' | 'backendAuth' | 'backendTunnel'>

/** Reports problems of these policies that their schema cannot express. */
export function checkMcpForwarding(
  policies: McpForwarding,
  named: readonly NamedBackend[],
  report: ReportIssue,
): void {
  checkForwardingPolicies(policies, named, report)
  for (const field of ['precondition', 'condition'] as const)
    if (policies.retry?.[field] !== undefined)
      report(['retry', field], 'is for HTTP backends: calls of MCP targets are retried by codes')
  const { backendTLS, backendAuth, backendTunnel } = policies
  checkBackendPolicies({ backendTunnel }, report)
  if (backendTLS) checkBackendTls(backendTLS, (path, message) => report(['backendTLS', ...path], message))
  if (backendAuth) checkBackendAuth(backendAuth, (path, message) => report(['backendAuth', ...path], message))
}

/** Places of policies of an MCP endpoint. */
export type McpPolicyPlaces = {
  /** Of the section or route. */
  readonly forwarding?: McpForwarding | undefined
  /** Of the entry of the route and the named backend, the most specific first. */
  readonly backend?: readonly (BackendPolicies | undefined)[] | undefined
  /** Targets of the endpoint. */
  readonly targets?: McpBackendConfig['targets'] | undefined
}

/** Policies of requests to targets, as defaults of the policies of targets. */
export function targetPolicies(
  { forwarding = {}, backend = [] }: McpPolicyPlaces,
  { random }: CompileContext,
): TargetPolicies {
  const { backendTLS, backendAuth, backendTunnel, retry, timeout } = forwarding
  const rule = compileRetry(retry)
  return {
    levels: [...backend, { backendTLS, backendAuth, backendTunnel }],
    // As in the Gateway API, 0 disables the limit.
    timeoutMs: milliseconds(timeout?.backendRequestTimeout) || undefined,
    retry: retry &&
      rule && { node: retry, decorate: (send, repeats) => retrying(send, rule, { repeats, random }) },
  }
}

/** Copies of requests to an endpoint (`requestMirror`), and the checks of its messages. */
export type EndpointCopies = {
  readonly checks: readonly McpCheck[] | undefined
  /** Copies HTTP requests; undefined if checks copy messages, or nothing is copied. */
  readonly mirror: Mirror | undefined
}

/**
 * Compiles the copies of requests. With guards a copy is made behind them, of each request to a target: it
 * has the content that guards permit.
 */
export function compileCopies(
  { forwarding = {}, backend = [], targets = [] }: McpPolicyPlaces,
  named: readonly NamedBackend[],
  context: CompileContext,
  checks: readonly McpCheck[] | undefined,
): EndpointCopies {
  const mirror = compileMirrors(forwarding.requestMirror, named, context, {
    withheld: sessionHeaders,
    backendAuths: [
      ...backend.map((level) => level?.backendAuth),
      forwarding.backendAuth,
      ...targets.flatMap((target) => authsOf(target, named)),
    ],
  })
  if (mirror === undefined || checks?.some(({ isGuard }) => isGuard === true) !== true)
    return { checks, mirror }
  const copy: McpCheck = {
    name: 'copies of messages',
    onRequest(exchange, { text }) {
      mirror(exchange, Buffer.from(text)).release()
      return undefined
    },
  }
  return { checks: [...checks, copy], mirror: undefined }
}

/** Authentication to a target: its own, and that of its named backend. */
function authsOf(
  { policies, mcp, sse, openapi }: McpBackendConfig['targets'][number],
  named: readonly NamedBackend[],
): BackendPolicies['backendAuth'][] {
  const reference = (mcp ?? sse ?? openapi)?.backend
  const found = reference === undefined ? undefined : findBackend(reference, named)
  return [policies?.backendAuth, found?.policies?.backendAuth]
}

/** Applies the policies of the HTTP endpoint: time limit, copies of requests, reply headers. */
export function withEndpointPolicies(
  backend: Backend,
  { forwarding = {}, backend: levels = [] }: McpPolicyPlaces,
  { mirror }: EndpointCopies,
  context: CompileContext,
): Backend {
  const limitMs = milliseconds(forwarding.timeout?.requestTimeout) ?? 0
  const limited = limitMs === 0 ? backend : withRequestTimeout(backend, limitMs, context.clock)
  const edited = withReplyHeaders(limited, levels)
  if (mirror === undefined) return edited
  return (exchange) => {
    // Streams and ends of sessions have no message.
    if (exchange.facts.request.method === 'POST') {
      const copies = mirror(exchange, exchange.body)
      exchange.body = copies.body
      copies.release()
    }
    return edited(exchange)
  }
}

/** The id of a session is a credential for it. */
const sessionHeaders = ['mcp-session-id']

function withReplyHeaders(backend: Backend, levels: readonly (BackendPolicies | undefined)[]): Backend {
  const config = levels.find((level) => level?.responseHeaderModifier !== undefined)?.responseHeaderModifier
  if (config === undefined) return backend
  const edit = compileHeaderModifier(config)
  const edited = (reply: Reply): Reply => {
    edit(reply.headers)
    return reply
  }
  return (exchange) => {
    const reply = backend(exchange)
    return reply instanceof Promise ? reply.then(edited) : edited(reply)
  }
}

const ofHttpTargets = ['backendTLS', 'backendAuth', 'backendTunnel', 'retry'] as const

/** Logs policies of requests to targets that are programs, because these receive no HTTP requests. */
export function warnAboutPrograms(
  scope: string,
  { targets }: McpBackendConfig,
  policies: McpForwarding | undefined,
  context: CompileContext,
): void {
  if (policies === undefined || context.memory.plane !== 0) return
  if (targets.length === 0 || targets.some(({ stdio }) => stdio === undefined)) return
  context.cached(policies, `warnings of programs of ${scope}`, () => {
    const names = [
      ...ofHttpTargets.filter((name) => policies[name] !== undefined),
      ...(policies.timeout?.backendRequestTimeout === undefined ? [] : ['timeout.backendRequestTimeout']),
    ]
    for (const path of names)
      context.log.warn({ place: scope, path }, 'policy without effect: all targets are stdio programs')
    return true
  })
}
