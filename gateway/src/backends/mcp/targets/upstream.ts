import { checkCel } from '../../../cel/checked.ts'
import { milliseconds } from '../../../lib/duration.ts'
import type { Reply, Send } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { type Infer, object, optional } from '../../../schema/dsl.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import { checkBackendPolicies } from '../../../upstream/check.ts'
import { type BackendPolicies, backendPolicyFields, healthSchemaOf } from '../../../upstream/config.ts'
import { compileConnection } from '../../../upstream/connection.ts'
import { noCaller } from '../../../upstream/credentials/caller.ts'
import {
  type Authorize,
  compileAuthorize,
  sendAuthorized,
} from '../../../upstream/credentials/credentials.ts'
import { compileReadPlaced } from '../../../upstream/credentials/placement.ts'
import type { Destination } from '../../../upstream/destination.ts'
import { compileHeaderModifier } from '../../../upstream/header-modifier.ts'
import { compileHealth } from '../../../upstream/health.ts'
import { checkLogin, loginSchema } from '../logins/config.ts'
import { withOutcomes } from './ejection/ejection.ts'

const { http, backendTLS, backendTunnel, backendAuth, tcp, requestHeaderModifier } = backendPolicyFields

/** Variables of `health.unhealthyExpression` of targets. */
const targetRoots: ReadonlySet<string> = new Set(['response'])

/** `mcp.targets[].policies`. */
export const targetPoliciesSchema = object(
  {
    ...{ http, backendTLS, backendTunnel, backendAuth, tcp, requestHeaderModifier },
    health: optional(healthSchemaOf([...targetRoots])),
    oauth: optional(loginSchema),
  },
  {
    doc: 'Policies of requests to the target. Named backends have separate policies, and `stdio` targets have none.',
  },
)

export type TargetPoliciesConfig = Infer<typeof targetPoliciesSchema>

/** Reports expressions of `health` whose variables requests to targets lack. */
export function checkTargetHealth(health: BackendPolicies['health'], report: ReportIssue): void {
  if (health?.unhealthyExpression === undefined) return
  checkCel(health.unhealthyExpression, targetRoots, (message) => report(['unhealthyExpression'], message))
}

/** Reports problems of target policies that their schema cannot express. */
export function checkTargetPolicies(config: TargetPoliciesConfig, report: ReportIssue): void {
  checkBackendPolicies(config, report)
  const { oauth, backendAuth: credentials } = config
  if (oauth === undefined) return
  checkLogin(oauth, (path, message) => report(['oauth', ...path], message))
  if (credentials !== undefined) report(['oauth'], 'must not be set together with backendAuth')
}

/**
 * Finds the named backend of a reference (`/name`); undefined if it does not exist or is not valid for
 * targets. Policies of `defaults` apply where the backend has none.
 */
export type FindDestination = (reference: string, defaults?: BackendPolicies) => Destination | undefined

/** Request settings of a target, except its address. */
export type Upstream = Pick<
  Destination,
  'connection' | 'requestTimeoutMs' | 'authorize' | 'editRequestHeaders' | 'health'
> & {
  /** Reads the token of a user, who has signed in at the target. */
  readonly ofUser?: Authorize['placed']
}

/**
 * Compiles the request settings of a target with policies. `place` is the key of its health across reloads.
 * Throws if a referenced file cannot be read.
 */
export function compileUpstream(
  policies: TargetPoliciesConfig,
  { target, place }: { target: object; place: string },
  context: CompileContext,
): Upstream {
  const timeout = policies.http?.requestTimeout
  return {
    connection: compileConnection(policies, context.egress.of(target), context),
    requestTimeoutMs: milliseconds(timeout),
    authorize: compileAuthorize(policies.backendAuth, context, { destination: target, connection: policies }),
    editRequestHeaders:
      policies.requestHeaderModifier && compileHeaderModifier(policies.requestHeaderModifier),
    health: policies.health && compileHealth(policies.health, place, context),
    ofUser: policies.oauth && ofLogin,
  }
}

/** Decorates `send` with the settings of one target, also for requests without a client. */
export function withUpstream(
  plainSend: Send,
  { connection, requestTimeoutMs, authorize, editRequestHeaders, health, ofUser }: Upstream,
): Send {
  const placed = authorize?.placed ?? ofUser
  const send = health === undefined ? plainSend : withOutcomes(plainSend, health)
  const own = authorize?.source === 'gateway' ? authorize : undefined
  const sendHidden: Send = placed === undefined ? send : withHidden(send, placed)
  const hidesChallenge = authorize !== undefined && authorize.isPassthrough !== true
  const decorated: Send = (request) => {
    const headers = { ...request.headers }
    editRequestHeaders?.(headers)
    const outgoing = { ...request, headers, connection }
    if (requestTimeoutMs !== undefined) {
      outgoing.firstByteTimeoutMs = Math.min(requestTimeoutMs, request.firstByteTimeoutMs ?? requestTimeoutMs)
    }
    // Those in the query are not part of the headers that clients' credentials are added to.
    if (own === undefined) authorize?.applyMore?.(outgoing)
    return sendAuthorized(own, { request: outgoing, caller: noCaller }, () => sendHidden(outgoing))
  }
  return hidesChallenge ? async (request) => withoutChallenge(await decorated(request)) : decorated
}

const readLogin = compileReadPlaced(undefined)

/** The token of a user who has signed in. */
function ofLogin(request: Parameters<typeof readLogin>[0]): readonly string[] {
  const token = readLogin(request)
  return token === undefined ? [] : [token]
}

/** Adds the credentials of a request to its error, whose readers hide it. */
function withHidden(send: Send, placed: NonNullable<Authorize['placed']>): Send {
  return async (request) => {
    const reply = await send(request)
    return reply.status < 300 ? reply : { ...reply, credentials: placed(request) }
  }
}

/**
 * Hides the challenge: the target has not received the client's credential, so the client must not request
 * another one.
 */
function withoutChallenge(reply: Reply): Reply {
  if (reply.status !== 401 && reply.status !== 403) return reply
  const { 'www-authenticate': _, ...headers } = reply.headers
  return { ...reply, status: reply.status === 401 ? 502 : 403, headers }
}
