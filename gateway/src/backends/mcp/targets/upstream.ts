import { milliseconds } from '../../../lib/duration.ts'
import type { Headers } from '../../../net/http/headers.ts'
import type { Reply, Send } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { type Infer, object } from '../../../schema/dsl.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import { compileAuthorize } from '../../../upstream/auth.ts'
import { checkBackendPolicies } from '../../../upstream/check.ts'
import { backendPolicyFields } from '../../../upstream/config.ts'
import { compileConnection } from '../../../upstream/connection.ts'
import type { Destination } from '../../../upstream/destination.ts'
import { compileHeaderModifier } from '../../../upstream/header-modifier.ts'
import type { CallContext, Target, TargetSession } from './target.ts'

const { http, backendTLS, backendAuth, tcp, requestHeaderModifier } = backendPolicyFields

/** `mcp.targets[].policies`. */
export const targetPoliciesSchema = object(
  { http, backendTLS, backendAuth, tcp, requestHeaderModifier },
  {
    doc: 'Policies of requests to the target. Named backends have separate policies, and `stdio` targets have none.',
  },
)

export type TargetPoliciesConfig = Infer<typeof targetPoliciesSchema>

/** Reports problems of target policies that their schema cannot express. */
export function checkTargetPolicies(config: TargetPoliciesConfig, report: ReportIssue): void {
  checkBackendPolicies(config, report)
}

/**
 * Finds the named backend of a reference (`/name`); undefined if it does not exist or is not valid for
 * targets.
 */
export type FindDestination = (reference: string) => Destination | undefined

/** Request settings of a target, except its address. */
export type Upstream = Pick<
  Destination,
  'connection' | 'requestTimeoutMs' | 'authorize' | 'editRequestHeaders'
>

/** Compiles the request settings of a target with policies. Throws if a referenced file cannot be read. */
export function compileUpstream(
  policies: TargetPoliciesConfig,
  target: object,
  context: CompileContext,
): Upstream {
  const timeout = policies.http?.requestTimeout
  return {
    connection: compileConnection(policies, context.egress.of(target), context),
    requestTimeoutMs: milliseconds(timeout),
    authorize: compileAuthorize(policies.backendAuth, context),
    editRequestHeaders:
      policies.requestHeaderModifier && compileHeaderModifier(policies.requestHeaderModifier),
  }
}

/** Decorates `send` with the settings of one target, also for requests without a client. */
export function withUpstream(
  send: Send,
  { connection, requestTimeoutMs, authorize, editRequestHeaders }: Upstream,
): Send {
  const decorated: Send = (request) => {
    const headers = { ...request.headers }
    editRequestHeaders?.(headers)
    authorize?.(headers, undefined)
    const outgoing = { ...request, headers, connection }
    if (requestTimeoutMs !== undefined) {
      outgoing.firstByteTimeoutMs = Math.min(requestTimeoutMs, request.firstByteTimeoutMs ?? requestTimeoutMs)
    }
    return send(outgoing)
  }
  return hasOwnCredential(authorize)
    ? async (request) => withoutChallenge(await decorated(request))
    : decorated
}

/** Adds the client's credential to the calls of a target, if credentials are passed through. */
export function withClientCredential(target: Target, authorize: Destination['authorize']): Target {
  if (authorize === undefined || hasOwnCredential(authorize)) return target
  const authorized = (context: CallContext): CallContext => {
    const headers: Headers = { ...context.headers }
    authorize(headers, context.credential)
    return { ...context, headers }
  }
  const bearing = (session: TargetSession): TargetSession => ({
    ...session,
    request: (message, context, sink) => session.request(message, authorized(context), sink),
    deliver: (message, context) => session.deliver(message, authorized(context)),
    listen: (context, sink) => session.listen(authorized(context), sink),
  })
  return {
    ...target,
    open: () => bearing(target.open()),
    resume(state, remote) {
      const session = target.resume(state, remote)
      return session && bearing(session)
    },
  }
}

/** Whether the credential belongs to the gateway: it exists without a client. */
function hasOwnCredential(authorize: Destination['authorize']): boolean {
  const headers: Headers = {}
  authorize?.(headers, undefined)
  return Object.keys(headers).length > 0
}

/**
 * Hides the challenge: the client's credential is not the cause, so the client must not request another one.
 */
function withoutChallenge(reply: Reply): Reply {
  if (reply.status !== 401) return reply
  const { 'www-authenticate': _, ...headers } = reply.headers
  return { ...reply, status: 502, headers }
}
