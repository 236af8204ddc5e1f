import type { JsonObject } from '../../lib/json/json.ts'
import { isSource } from '../../net/http/body.ts'
import type { HeaderEdit } from '../../net/http/header-edits.ts'
import { peekBody } from '../../net/http/peek-body.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { refuse } from '../../pipeline/errors.ts'
import { type Exchange, type ExtAuthzOutcome, sentPath } from '../../pipeline/exchange.ts'
import type { Policy } from '../../pipeline/policy.ts'
import {
  editRequestHeaders,
  forwardingOf,
  isRequestPseudoHeader,
  setRequestPseudoHeader,
} from '../../pipeline/request-edits.ts'
import { compileCache, type DecisionCache, type Outcome } from './cache.ts'
import { defaultBodyBytes, type ExtAuthzConfig } from './config.ts'
import {
  applyFieldEdits,
  type Decision,
  editedQuery,
  type FieldEdit,
  InvalidDecision,
  type QueryEdits,
} from './decision.ts'
import { compileGrpcCheck } from './grpc-check.ts'
import { compileHttpCheck } from './http-check.ts'
import type { IncludedBody, RequestView } from './request-view.ts'
import { type ExtAuthzState, extAuthzState, guardCalls, guardedService, RequestFailure } from './service.ts'

export type ExtAuthzOptions = {
  /** CEL variables of request heads. */
  variables: ReadonlySet<string>
  /** Name of the scope: the label of metrics and logs. */
  scope: string
}

/** The compiled policy of one scope. */
type Authorizer = {
  readonly label: string
  readonly ask: ReturnType<typeof guardCalls>
  readonly cache: DecisionCache | undefined
  readonly body: { readonly maxBytes: number; readonly allowsPartial: boolean } | undefined
  /** Status of a refusal without a decision; undefined if such requests are forwarded. */
  readonly failureStatus: number | undefined
  /** Edits of requests that are forwarded without a decision: fields that the service sets. */
  readonly withoutDecision: readonly HeaderEdit[]
  readonly state: ExtAuthzState
}

/**
 * Compiles `extAuthz`. Throws on errors that `checkExtAuthz` and `checkExtAuthzBackend` report, and if a file
 * of its policies is not readable.
 */
export function compileExtAuthz(
  config: ExtAuthzConfig,
  context: CompileContext,
  { variables, scope }: ExtAuthzOptions,
): Policy {
  const compile = config.protocol?.http === undefined ? compileGrpcCheck : compileHttpCheck
  const service = compile(config, context, variables)
  const { includeRequestBody, cache, failureMode = 'deny' } = config
  const authorizer: Authorizer = {
    label: scope,
    ask: guardCalls(guardedService(service.key, context), service.timeoutMs, service.ask),
    cache: cache && compileCache(cache, variables, context.clock),
    body: includeRequestBody && {
      maxBytes: includeRequestBody.maxRequestBytes ?? defaultBodyBytes,
      allowsPartial: includeRequestBody.allowPartialMessage === true,
    },
    failureStatus: failureStatusOf(failureMode),
    withoutDecision: (config.protocol?.http?.includeResponseHeaders ?? []).map((name) => ({
      kind: 'remove',
      name: name.toLowerCase(),
    })),
    state: extAuthzState(scope, context),
  }
  return {
    name: 'external authorization',
    onRequest: (exchange) => authorize(authorizer, exchange),
    onReply(exchange, reply) {
      outcomeOf(authorizer, exchange)?.editReply?.(reply.headers)
      return reply
    },
    explain(exchange) {
      const outcome = outcomeOf(authorizer, exchange)
      return outcome && { policy: outcome.policy, outcome: outcome.outcome, from: outcome.from ?? null }
    },
  }
}

function failureStatusOf(mode: NonNullable<ExtAuthzConfig['failureMode']>): number | undefined {
  if (mode === 'allow') return undefined
  return mode === 'deny' ? 403 : mode.denyWithStatus
}

function outcomeOf({ label }: Authorizer, { extAuthz }: Exchange): ExtAuthzOutcome | undefined {
  // A backend may be asked again by a retry.
  return extAuthz?.findLast(({ policy }) => policy === label)
}

async function authorize(authorizer: Authorizer, exchange: Exchange): Promise<Reply | undefined> {
  const { body } = authorizer
  // An upgrade has no body: later bytes belong to another protocol.
  if (body === undefined || exchange.upgrade !== undefined) return decide(authorizer, exchange, undefined)
  const included = await includeBody(exchange, body.maxBytes)
  if (!included.isComplete && !body.allowsPartial) return refuseBody(authorizer, exchange, body.maxBytes)
  return decide(authorizer, exchange, included)
}

/** Reads the beginning of the body, which is still forwarded as a whole. */
async function includeBody(exchange: Exchange, maxBytes: number): Promise<IncludedBody> {
  const { body } = exchange
  if (!isSource(body)) {
    const bytes = bufferOf(body ?? noBytes)
    return { bytes: bytes.subarray(0, maxBytes), isComplete: bytes.byteLength <= maxBytes }
  }
  const peeked = await peekBody(body, maxBytes)
  exchange.body = peeked.body
  if (peeked.kind === 'partial') return { bytes: bufferOf(peeked.start), isComplete: false }
  return { bytes: bufferOf(peeked.bytes), isComplete: true }
}

const noBytes = new Uint8Array(0)

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

function refuseBody({ label }: Authorizer, exchange: Exchange, maxBytes: number): Reply {
  if (isSource(exchange.body)) exchange.body.cancel()
  exchange.log.refusedBy = `ext-authz: ${label}: request body`
  const message = `request body is larger than ${maxBytes} bytes`
  return refuse(exchange, { status: 413, code: 'request_body_too_large', message })
}

/** Decides on every path that servers may derive from the path of the request, on its own path last. */
async function decide(
  authorizer: Authorizer,
  exchange: Exchange,
  body: RequestView['body'],
): Promise<Reply | undefined> {
  const { facts, pathVariants } = exchange
  try {
    for (const path of pathVariants ?? noPaths) {
      const variant = { ...facts, request: { ...facts.request, path, trailingSlash: false } }
      const outcome = await outcomeFor(authorizer, { exchange, facts: variant, body })
      if (outcome.decision.kind === 'denied') return denied(authorizer, exchange, outcome)
    }
    const outcome = await outcomeFor(authorizer, { exchange, facts, body })
    if (outcome.decision.kind === 'denied') return denied(authorizer, exchange, outcome)
    allow(authorizer, exchange, { ...outcome, decision: outcome.decision })
    return undefined
  } catch (error) {
    return failed(authorizer, exchange, error)
  }
}

const noPaths: readonly string[] = []

function outcomeFor({ cache, ask }: Authorizer, view: RequestView): Outcome | Promise<Outcome> {
  if (cache !== undefined) return cache.decide(view, () => ask(view))
  return ask(view).then(({ decision }) => ({ decision, from: 'service' }))
}

type Allowed = Outcome & { readonly decision: Extract<Decision, { kind: 'allowed' }> }

function allow({ label, state }: Authorizer, exchange: Exchange, { decision, from }: Allowed): void {
  const { request, query, reply, metadata } = decision
  const before = copyOf(exchange.forwarding)
  let fields: FieldEdit[]
  try {
    if (query !== undefined) editQuery(exchange, query)
    fields = request.filter((edit) => !setPseudoHeader(exchange, edit))
  } catch (error) {
    // An invalid decision has no effect at all.
    exchange.forwarding = before
    throw error
  }
  if (fields.length > 0) {
    forwardingOf(exchange).headerEdits.push((headers) => applyFieldEdits(headers, fields))
  }
  state.meter.checked('allowed', from)
  record(exchange, {
    policy: label,
    outcome: 'allowed',
    from,
    editReply: reply.length === 0 ? undefined : (headers) => applyFieldEdits(headers, reply),
  })
  addMetadata(exchange, metadata)
}

function copyOf(forwarding: Exchange['forwarding']): Exchange['forwarding'] {
  return forwarding && { ...forwarding, headerEdits: [...forwarding.headerEdits] }
}

function editQuery(exchange: Exchange, edits: QueryEdits): void {
  const { path, query } = forwardingOf(exchange)
  const { request } = exchange.facts
  const target = (path ?? sentPath(request)) + editedQuery(query ?? request.query, edits)
  if (!setRequestPseudoHeader(exchange, ':path', target))
    throw new InvalidDecision('the response has an invalid query')
}

/** Returns false for other fields. An invalid value would forward another request than was decided on. */
function setPseudoHeader(exchange: Exchange, edit: FieldEdit): boolean {
  if (!isRequestPseudoHeader(edit.name) || edit.kind === 'remove') return false
  if (setRequestPseudoHeader(exchange, edit.name, edit.value)) return true
  throw new InvalidDecision(`the response has an invalid ${edit.name}`)
}

function record(exchange: Exchange, outcome: ExtAuthzOutcome): void {
  exchange.extAuthz ??= []
  exchange.extAuthz.push(outcome)
}

function addMetadata({ facts }: Exchange, metadata: JsonObject | undefined): void {
  if (metadata !== undefined) facts.extAuthz = { ...facts.extAuthz, ...metadata }
}

const refusalMessage = 'external authorization failed'

function denied({ label, state }: Authorizer, exchange: Exchange, { decision, from }: Outcome): Reply {
  state.meter.checked('denied', from)
  record(exchange, { policy: label, outcome: 'denied', from, editReply: undefined })
  addMetadata(exchange, decision.metadata)
  exchange.log.refusedBy = `ext-authz: ${label}`
  exchange.log.errorCode ??= 'ext_authz_denied'
  const reply = decision.kind === 'denied' ? decision.reply : undefined
  if (reply === undefined)
    return refuse(exchange, { status: 403, code: 'ext_authz_denied', message: refusalMessage })
  const { status, headers, body } = reply
  // Other policies change the headers in place.
  return { status, headers: { ...headers }, body: body.byteLength === 0 ? undefined : body }
}

function failed(authorizer: Authorizer, exchange: Exchange, error: unknown): Reply | undefined {
  const { label, state, failureStatus } = authorizer
  // A client could otherwise pass with a request that the expressions have no value for.
  const status = error instanceof RequestFailure ? 403 : failureStatus
  state.recordFailure(error)
  const outcome = status === undefined ? 'failed_open' : 'failed_closed'
  state.meter.checked(outcome, 'service')
  record(exchange, { policy: label, outcome, from: undefined, editReply: undefined })
  if (status === undefined) {
    // A client that provokes the failure could otherwise set them itself.
    editRequestHeaders(exchange, authorizer.withoutDecision)
    return undefined
  }
  exchange.log.failure ??= error
  exchange.log.refusedBy = `ext-authz: ${label} failed`
  return refuse(exchange, { status, code: 'ext_authz_failed', message: refusalMessage })
}
