import { GatewayError } from '../../lib/gateway-error.ts'
import { defaultJsonLimits, type JsonLimits } from '../../lib/json/limits.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { ErrorFormat, Exchange, RequestFacts } from '../../pipeline/exchange.ts'
import type { Backend, Policy } from '../../pipeline/policy.ts'
import { compileRequestBodyLimits } from '../../pipeline/request-body.ts'
import type { AttemptOptions } from './attempt/attempt.ts'
import { queryOf, requestPath, type TimeLimits } from './attempt/provider-request.ts'
import { serveCall } from './attempt/serve-call.ts'
import { toAwsReply } from './aws-client/aws-client.ts'
import { createObjectIds } from './batches/object-ids.ts'
import { createSettleBatch } from './batches/settlement/settle-batch.ts'
import { writeBatch } from './batches/write-batch.ts'
import { serveCached } from './cache/serve.ts'
import type { ModelCatalogConfig } from './catalog/config.ts'
import type { Prices } from './catalog/prices.ts'
import { settleCall } from './charge-usage.ts'
import { createOwnedObjects } from './lists/owned-objects.ts'
import { serveList } from './lists/serve-list.ts'
import { type ModelList, modelListReply } from './models/model-list.ts'
import type { Models } from './models/models.ts'
import { createStartTime } from './models/start-time.ts'
import { pathsOf } from './providers/provider.ts'
import { asJsonArray } from './reply/json-array.ts'
import { estimateTokens } from './reply/usage.ts'
import type { RequestRules } from './request/accept-call.ts'
import { type Call, callOf } from './request/call.ts'
import { type Endpoints, operations } from './request/endpoints.ts'
import { createEstimate } from './request/estimate.ts'
import { wantsJsonArray } from './request/gemini-path.ts'
import { readRequest } from './request/request.ts'
import { createResponseIds } from './stored/response-ids.ts'
import { translationsFrom } from './translate/translations.ts'

export type LlmLimits = {
  /** Limit of a request body: `frontendPolicies.http.maxBufferSize`. */
  maxBufferSize: number
  /** Limits on the structure of a request body: `frontendPolicies.http.json`. */
  jsonLimits?: JsonLimits | undefined
  /** Limit of a response body that is read completely. */
  maxReplyBytes?: number
  /** Price lookup; undefined without a model catalog. */
  prices?: Prices | undefined
  /** `config.modelCatalog`, for context windows. */
  modelCatalog?: ModelCatalogConfig | undefined
}

/** LLM traffic of one route: the policy that reads requests, and the backend. */
export type Llm = {
  /**
   * Reads the request. Its place is after authentication and request limits, before rules on the body and
   * token limits. Its `onEnd` settles the usage and precedes that of the token limits, because policies end
   * in the order of entry.
   */
  llmRequest: Policy
  backend: Backend
  errorFormat(request: RequestFacts): ErrorFormat
}

const defaultMaxReplyBytes = 64 * 1024 * 1024

export type LlmParts = {
  models: Models
  endpoints: Endpoints
  timeLimits: TimeLimits
  /** False if only models with `passthrough` serve paths of unknown calls. */
  passesUnknown?: boolean
}

/** Creates the request policy and the backend from compiled models and endpoints. */
export function createLlm(
  { models, endpoints, timeLimits, passesUnknown = true }: LlmParts,
  context: CompileContext,
  { maxBufferSize, jsonLimits = defaultJsonLimits, maxReplyBytes = defaultMaxReplyBytes, prices }: LlmLimits,
): Llm {
  const body = compileRequestBodyLimits(maxBufferSize, context)
  const estimate = createEstimate(prices)
  const { workQueue } = context
  const responseIds = createResponseIds(context)
  const objectIds = createObjectIds(context)
  const ids = { responseIds, objectIds, ownedObjects: createOwnedObjects(context) }
  const rules = { ...body, ...ids, models, endpoints, jsonLimits, estimate, workQueue, passesUnknown }
  const started = context.retained('llm/started', () => createStartTime(context))
  const modelList: ModelList = { models, started }
  const settleBatch = createSettleBatch(context)
  const settle = (exchange: Exchange) => settleCall(exchange, context, { prices, settleBatch })
  const options: AttemptOptions = {
    context,
    prices,
    ...ids,
    maxReplyBytes,
    timeLimits,
    clientLimits: { maxBytes: maxBufferSize, json: jsonLimits },
  }
  return {
    llmRequest: {
      name: 'llm-request',
      onRequest: (exchange) => readRequest(exchange, rules),
      // Guards have read the events by then.
      onReply(exchange, reply) {
        callOf(exchange)?.object?.upload?.release()
        if (exchange.errorFormat === 'aws') return toAwsReply(exchange, reply)
        const isArray = exchange.errorFormat === 'google' && callOf(exchange)?.streaming === true
        return isArray && wantsJsonArray(queryOf(exchange)) ? asJsonArray(reply) : reply
      },
      onEnd(exchange) {
        callOf(exchange)?.object?.upload?.release()
        settle(exchange)
      },
    },
    backend(exchange) {
      const list = exchange.llm?.list
      if (list !== undefined) return serveList(list, { ...options, settle })
      const call = callOf(exchange)
      if (call?.object?.batch) return serveBatch(exchange, call, { rules, options })
      if (call) return countsLocally(call) ? tokenCountReply(call) : serveCached(exchange, call, options)
      const match = endpoints.match(requestPath(exchange))
      if (match.kind === 'models') return modelListReply(exchange, match.id, modelList)
      throw new GatewayError('internal', 'the request was not read')
    },
    errorFormat: endpoints.errorFormat,
  }
}

/** Serves a call with the requests of a batch. */
async function serveBatch(
  exchange: Exchange,
  call: Call,
  { rules, options }: { rules: RequestRules; options: AttemptOptions },
): Promise<Reply> {
  return (await writeBatch(exchange, call, rules)) ?? serveCall(exchange, call, options)
}

/** Most providers have no token counting, so the gateway estimates. */
function countsLocally({ endpoint, candidates, unchanged }: Call): boolean {
  if (endpoint === 'passthrough' || unchanged) return false
  if (operations[endpoint].operation !== 'count_tokens') return false
  const [first] = candidates
  if (first === undefined) return true
  const { target, model } = first
  const paths = pathsOf(target.provider, { model, streaming: false })
  if (paths[endpoint] !== undefined) return false
  return !translationsFrom(endpoint).some(({ upstream }) => paths[upstream] !== undefined)
}

/** `estimated` and the header mark the count, because clients compare it with limits of the model. */
function tokenCountReply({ endpoint, json }: Call): Reply {
  const inputTokens = json ? estimateTokens(json.value) : 0
  return {
    status: 200,
    headers: { 'content-type': 'application/json', 'x-tollgate-estimated': 'true' },
    body: Buffer.from(JSON.stringify(countOf(endpoint, inputTokens))),
  }
}

function countOf(endpoint: Call['endpoint'], tokens: number): object {
  if (endpoint === 'gemini_count_tokens') return { totalTokens: tokens }
  return endpoint === 'converse_count' ? { inputTokens: tokens } : { input_tokens: tokens, estimated: true }
}
