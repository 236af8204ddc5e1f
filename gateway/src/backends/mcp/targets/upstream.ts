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
  { doc: 'How the target is reached and asked. A named backend has its own, and a program none.' },
)

export type TargetPoliciesConfig = Infer<typeof targetPoliciesSchema>

/** Reports what a schema cannot see in the policies of a target. */
export function checkTargetPolicies(config: TargetPoliciesConfig, report: ReportIssue): void {
  checkBackendPolicies(config, report)
}

/** The named backend of a reference, as written (`/name`); undefined where there is none that targets can lead to. */
export type FindDestination = (reference: string) => Destination | undefined

/** What is to know about asking a target, besides its address. */
export type Upstream = Pick<
  Destination,
  'connection' | 'requestTimeoutMs' | 'authorize' | 'editRequestHeaders'
>

/** How `target`, with policies of its own, is asked. Throws when a file that they name cannot be read. */
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

/** `send` as all calls to one target use it, those of no client included. */
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

/** A target whose calls bear what `authorize` makes of the client's request: the client's credential, where that is passed on. */
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
    resume(state) {
      const session = target.resume(state)
      return session && bearing(session)
    },
  }
}

/** Whether the credential is the gateway's own: then there is one without any client. */
function hasOwnCredential(authorize: Destination['authorize']): boolean {
  const headers: Headers = {}
  authorize?.(headers, undefined)
  return Object.keys(headers).length > 0
}

/** The client's own credential is not at fault, and it must not go and look for another. */
function withoutChallenge(reply: Reply): Reply {
  if (reply.status !== 401) return reply
  const { 'www-authenticate': _, ...headers } = reply.headers
  return { ...reply, status: 502, headers }
}
