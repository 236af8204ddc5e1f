import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import { errorCodeOf, type Outcome } from '../message/gateway-request.ts'
import { messageOf, paramsOf, unsupportedVersion } from '../message/json-rpc.ts'
import type { Message, TargetFailure } from '../message/message.ts'
import { encodeHeader, sessionlessRevisions } from '../message/protocol.ts'
import type { CallContext } from '../targets/target.ts'
import {
  type FanOutRequest,
  forwardOutcome,
  type MemberOutcome,
  requestEach,
  respondWithResult,
  resultOf,
} from './fan-out.ts'
import { mergeInitializeResults } from './initialize-result.ts'
import { type MemberSessions, memberName } from './member-sessions.ts'

/** Methods of older revisions, which `subscriptions/listen` replaces. */
export const removedMethods: ReadonlySet<string> = new Set(['resources/subscribe', 'resources/unsubscribe'])

/** Refusal of a method that has no meaning for several targets. */
export function unknownMethod(method: string): TargetFailure {
  return { kind: 'refused', status: 404, code: -32601, message: `Method not found: ${method}` }
}

/** Responds to `server/discover` with the merged result of all targets. */
export async function discoverAll(memberSessions: MemberSessions, request: FanOutRequest): Promise<void> {
  const { message, merged } = request
  const outcomes = await requestEach(memberSessions, request)
  const results: { target: string; result: JsonObject }[] = []
  const failed: MemberOutcome[] = []
  for (const member of outcomes) {
    const result = resultOf(member.outcome)
    if (result) results.push({ target: memberName(memberSessions, member.index), result })
    else failed.push(member)
  }
  // A server without this revision is used in a session, to which the client returns after this error.
  const older = failed.find(({ outcome }) => isOlder(outcome))
  const blocking = older ?? (memberSessions.failOpen && results.length > 0 ? undefined : failed[0])
  if (blocking !== undefined) {
    forwardOutcome(blocking.outcome, merged.sink)
    return
  }
  const supportedVersions = commonVersions(results.map(({ result }) => result))
  if (supportedVersions.length === 0) {
    const reason = 'the targets have no common protocol version'
    const data = { requested: sessionlessRevisions[0] ?? null, supported: [] }
    merged.sink.fail({ kind: 'refused', status: 400, code: unsupportedVersion, message: reason, data })
    return
  }
  const { capabilities, instructions, serverInfo } = mergeInitializeResults(results, memberSessions.version)
  const result = {
    resultType: 'complete',
    supportedVersions,
    capabilities,
    ...(instructions === undefined ? {} : { instructions }),
    ...cacheOf([...results.map(({ result: { ttlMs } }) => ttlMs), ...failed.map(() => 0)]),
    _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
  }
  respondWithResult(message, merged.sink, JSON.stringify(result))
}

/** Whether a failed target has responded as a server without the revision. */
function isOlder(outcome: Outcome): boolean {
  if (outcome.kind === 'response') return errorCodeOf(outcome.message) !== undefined
  const { failure } = outcome
  if (failure.kind === 'reply') return isStatusOfOlder(failure.reply.status)
  return failure.kind === 'refused' && isStatusOfOlder(failure.status)
}

/** Missing credentials, permissions and quota do not depend on the revision. */
function isStatusOfOlder(status: number): boolean {
  return status >= 400 && status < 500 && status !== 401 && status !== 403 && status !== 429
}

function commonVersions(results: readonly JsonObject[]): string[] {
  const lists = results.map(({ supportedVersions }) =>
    Array.isArray(supportedVersions) ? supportedVersions : [],
  )
  const [first = [], ...others] = lists
  return first.filter(
    (version): version is string =>
      typeof version === 'string' && others.every((list) => list.includes(version)),
  )
}

/**
 * Cache settings of a merged result: the shortest lifetime. It is private, because rules may depend on the
 * user.
 */
export function cacheOf(lifetimes: readonly unknown[]): { ttlMs: number; cacheScope: 'private' } {
  const known = lifetimes.map((ms) => (typeof ms === 'number' && Number.isSafeInteger(ms) && ms > 0 ? ms : 0))
  return { ttlMs: known.length === 0 ? 0 : Math.min(...known), cacheScope: 'private' }
}

/** The context of a call with the name of the item at its target, which `mcp-name` repeats. */
export function withItemName(context: CallContext, name: string): CallContext {
  if (firstHeader(context.headers, 'mcp-name') === undefined) return context
  return { ...context, headers: { ...context.headers, 'mcp-name': encodeHeader(name) } }
}

/** A list request of the gateway on behalf of a request without a session. */
export function listRequestFor(
  request: Message,
  context: CallContext,
  { id, method }: { id: string; method: string },
): { message: Message; context: CallContext } {
  const { _meta: meta } = paramsOf(request.value)
  const params = isJsonObject(meta) ? { params: { _meta: meta } } : {}
  const { 'mcp-name': _, ...headers } = context.headers
  return {
    message: messageOf({ jsonrpc: '2.0', id, method, ...params }),
    context: { ...context, headers: { ...headers, 'mcp-method': method } },
  }
}
