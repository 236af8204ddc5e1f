import { GatewayError } from '../../lib/gateway-error.ts'
import { defaultJsonLimits, type JsonLimits } from '../../lib/json/limits.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { ErrorFormat, Exchange, RequestFacts, Usage } from '../../pipeline/exchange.ts'
import type { Backend, Policy } from '../../pipeline/policy.ts'
import { compileRequestBodyLimits } from '../../pipeline/request-body.ts'
import { type AttemptOptions, attempt } from './attempt/attempt.ts'
import { requestPath, type TimeLimits } from './attempt/provider-request.ts'
import { dollarsOf } from './catalog/money.ts'
import type { Prices } from './catalog/prices.ts'
import { type ModelList, modelListReply } from './models/model-list.ts'
import type { Models } from './models/models.ts'
import { estimateTokens, estimateUsage, withOutputTokens } from './reply/usage.ts'
import { type Call, callOf } from './request/call.ts'
import type { Endpoints } from './request/endpoints.ts'
import { isBackground, outputLimit } from './request/output-limit.ts'
import { readRequest } from './request/request.ts'

export type LlmLimits = {
  /** Bound on a request body: `frontendPolicies.http.maxBufferSize`. */
  maxBufferSize: number
  /** Bounds on the structure of a request body: `frontendPolicies.http.json`. */
  jsonLimits?: JsonLimits | undefined
  /** Bound on an answer that is read whole. */
  maxReplyBytes?: number
  /** What calls cost; undefined where no catalog says so. */
  prices?: Prices | undefined
}

/** What a route to LLM providers is made of. */
export type Llm = {
  /**
   * Reads the request; placed behind authentication and request limits, before rules on the body and token limits. Its
   * `onEnd` settles the usage, so it has to run before that of the token limits: in the order of entry it does.
   */
  llmRequest: Policy
  backend: Backend
  errorFormat(request: RequestFacts): ErrorFormat
}

const defaultMaxReplyBytes = 64 * 1024 * 1024

/** What LLM traffic of one place is served by. */
export type LlmParts = { models: Models; endpoints: Endpoints; timeLimits: TimeLimits }

/** Puts together the policy that reads requests and the backend that answers them. */
export function createLlm(
  { models, endpoints, timeLimits }: LlmParts,
  context: CompileContext,
  { maxBufferSize, jsonLimits = defaultJsonLimits, maxReplyBytes = defaultMaxReplyBytes, prices }: LlmLimits,
): Llm {
  const body = compileRequestBodyLimits(maxBufferSize, context)
  const rules = { ...body, models, endpoints, jsonLimits, workQueue: context.workQueue }
  const started = context.retained('llm/started', () => ({ at: Math.floor(context.clock.now() / 1000) }))
  const list: ModelList = { models, started }
  const options: AttemptOptions = { context, maxReplyBytes, timeLimits }
  return {
    llmRequest: {
      name: 'llm-request',
      onRequest: (exchange) => readRequest(exchange, rules),
      onEnd(exchange) {
        settleUsage(exchange, context)
        if (prices) recordCost(exchange, prices)
      },
    },
    backend(exchange) {
      const call = callOf(exchange)
      if (call) return countsLocally(call) ? tokenCountReply(call) : attempt(exchange, call, options)
      const match = endpoints.match(requestPath(exchange))
      if (match.kind === 'models') return modelListReply(exchange, match.id, list)
      throw new GatewayError('internal', 'the request was not read')
    },
    errorFormat: endpoints.errorFormat,
  }
}

/** Providers of OpenAI's API cannot count: the gateway estimates for them. */
function countsLocally({ endpoint, candidates }: Call): boolean {
  if (endpoint !== 'count_tokens') return false
  return candidates[0]?.target.provider.paths.count_tokens === undefined
}

function tokenCountReply({ json }: Call): Reply {
  const inputTokens = json ? estimateTokens(json.value) : 0
  return {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify({ input_tokens: inputTokens })),
  }
}

/** Makes the usage final when the answer is over, estimating where the provider did not say, and counts it. */
function settleUsage(exchange: Exchange, { clock }: CompileContext): void {
  const call = callOf(exchange)
  if (!call?.served) return
  const { meter } = call.served.target
  if (reportsUsage(call) && !call.usageFinal && mayHaveWorked(exchange, call)) {
    exchange.facts.usage = estimateCall(exchange, call)
  }
  const firstByteMs = call.firstByteAt === undefined ? undefined : call.firstByteAt - exchange.startedAt
  meter.done(clock.monotonic() - exchange.startedAt, firstByteMs)
  if (exchange.facts.usage) meter.tokens(exchange.facts.usage, exchange.auth.keyGroup)
}

/** Says what the call cost, once its usage is final. Prices go by the name the provider answered with, else by that it was asked for. */
function recordCost(exchange: Exchange, prices: Prices): void {
  const { llm, usage } = exchange.facts
  const served = callOf(exchange)?.served
  if (!llm || !usage || !served) return
  const { target, model } = served
  const cost = prices(target.provider.name, [llm.responseModel, model, target.configuredModel], usage)
  if (cost.kind !== 'cost') {
    llm.costStatus = cost.kind
    target.meter.unknownCost(cost.kind)
    return
  }
  llm.costStatus = usage.estimated ? 'estimated' : 'exact'
  llm.cost = dollarsOf(cost.amount)
  target.meter.cost(cost.amount, exchange.auth.keyGroup)
}

/**
 * The usage of a call whose provider did not report all of it: what was seen, or the most it may be where nothing can be
 * seen. That is a response in the background, and an unstreamed answer that the client did not wait for.
 */
function estimateCall(exchange: Exchange, call: Call): Usage {
  const { llmRequest = {}, llm } = exchange.facts
  const { endpoint, served } = call
  const seen = estimateUsage(call.usage, estimateTokens(llmRequest), call.generatedBytes)
  const isUnseen = !call.hasOutput && llm?.streaming !== true
  if (endpoint === 'passthrough' || served === undefined) return seen
  if (!isUnseen && !isBackground(endpoint, llmRequest)) return seen
  return withOutputTokens(seen, outputLimit(endpoint, llmRequest, served.target))
}

function reportsUsage({ endpoint }: Call): boolean {
  return endpoint !== 'count_tokens' && endpoint !== 'passthrough'
}

/** A client that left early pays for what was asked in its name; an upstream's failure costs nothing. */
function mayHaveWorked({ cancellation }: Exchange, { asked, answered }: Call): boolean {
  return answered || (asked && cancellation.cancelled)
}
