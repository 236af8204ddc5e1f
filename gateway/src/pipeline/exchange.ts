import type { Cancellation } from '../lib/cancellation.ts'
import type { Clock } from '../lib/clock.ts'
import type { ExactJsonObject, JsonObject } from '../lib/json/json.ts'
import type { Body } from '../net/http/body.ts'
import type { Headers } from '../net/http/headers.ts'
import type { Delivery } from '../net/http/incoming-request.ts'
import type { Connection } from '../net/listener/connection.ts'
import type { GuardOutcome } from '../telemetry/metrics.ts'
import type { Client } from './client-address.ts'
import type { LlmMessage } from './llm-message.ts'

/**
 * What the client asked for. `scheme` and `host` are what the client used, as a trusted proxy in front may say; `path` is normalised:
 * dot segments, duplicate and trailing slashes are gone.
 */
export type RequestFacts = {
  readonly method: string
  readonly scheme: 'http' | 'https'
  readonly host: string
  readonly path: string
  /** With its question mark; empty when there is none. */
  readonly query: string
  readonly version: string
  readonly headers: Headers
  /** Milliseconds since the epoch; `startTime` of expressions. */
  readonly arrivedAt?: number | undefined
}

/** The client, seen through trusted proxies. The port is 0 where only a proxy knows it. */
export type SourceFacts = { readonly address: string; readonly port: number }

/** Counts of one LLM call, in tokens. Input includes cached reads and cache writes, output includes reasoning. */
export type Usage = {
  inputTokens: number
  outputTokens: number
  totalTokens: number
  cachedInputTokens: number
  cacheCreationInputTokens: number
  reasoningTokens: number
  /** Part of the input, where the provider tells it apart. */
  inputAudioTokens?: number | undefined
  /** Part of the output, where the provider tells it apart. */
  outputAudioTokens?: number | undefined
  /** True where the answer ended without usage and the counts are bytes / 4. */
  estimated: boolean
}

/** Whether what a call cost is known: by counts of the provider, by estimated ones, or not for want of a price or of the model. */
export type CostStatus = 'exact' | 'estimated' | 'unpriced' | 'missing'

/**
 * What an LLM request asks for, whatever its path looks like. `operation` is `gen_ai.operation.name` of OpenTelemetry's
 * semantic conventions, with names of our own where these have none; `api` is the client API.
 */
export type LlmOperation = {
  readonly operation:
    | 'chat'
    | 'text_completion'
    | 'embeddings'
    | 'count_tokens'
    | 'list_models'
    | 'passthrough'
  readonly api:
    | 'chat_completions'
    | 'completions'
    | 'embeddings'
    | 'responses'
    | 'messages'
    | 'count_tokens'
    | 'models'
    | 'passthrough'
}

/** What is known of an LLM call. Names of models and providers come from the configuration where they say `configured`. */
export type LlmFacts = LlmOperation & {
  /** The model name the client sent. */
  requestModel: string
  /** Name of the `llm.models[]` entry that serves the call; unset until one is chosen. */
  configuredModel: string | undefined
  /** Provider kind, for example `openai`. */
  provider: string | undefined
  streaming: boolean
  /** The model the provider says has answered; its text, not the configuration's. */
  responseModel?: string | undefined
  /** US dollars, once the answer is over and where the catalog of models tells. */
  cost?: number | undefined
  /** Undefined before the end, and where no catalog is configured. */
  costStatus?: CostStatus | undefined
}

/**
 * What has been learnt about one request. Each slot has exactly one writer, and the slots are the variables of CEL
 * expressions: `request`, `source`, `jwt`, `apiKey`, `llmRequest`, `llm`.
 */
export type Facts = {
  /** For `now` of expressions, which is made only for those that read it. */
  readonly clock?: Clock | undefined
  readonly request: RequestFacts
  readonly source: SourceFacts
  /** Validated claims; written by JWT authentication. */
  jwt: ExactJsonObject | undefined
  /** Metadata of the virtual key, with its `id`; written by `policies/api-key`. */
  apiKey: JsonObject | undefined
  /**
   * The bytes of the body, without content coding: `request.body` of expressions. Written where a body is read before rules:
   * by `policies/request-body` and `backends/llm`.
   */
  body?: Uint8Array | undefined
  /** The client's original body; written by `backends/llm`. */
  llmRequest: ExactJsonObject | undefined
  /** Written by `backends/llm`. */
  llm: LlmFacts | undefined
  /** Written by `backends/llm` when the answer has ended, before `Policy.onEnd` runs. */
  usage: Usage | undefined
}

/** How far a limit is from refusing: the content of the `x-ratelimit-*` headers. */
export type LimitStatus = {
  readonly limit: number
  readonly remaining: number
  readonly resetSeconds: number
  /** Contents of the headers where they are not just these numbers: limit, remaining, reset. */
  readonly headerValues?: readonly [limit: string, remaining: string, reset: string] | undefined
  /** Further headers about the same limit (`ratelimit`, `ratelimit-policy`...), from the service that counts it. */
  readonly relatedHeaders?: Headers | undefined
}

/** What a request holds of the limits of one place. */
export type LimitReservation = {
  /** Takes back what was counted, because another limit refused the request. */
  release(): void
  /** Counts the tokens the request turned out to cost. */
  charge(tokens: number): void
}

/** Where a request stands with the limits it was held against, over all places that limit it. */
export type RequestLimits = {
  /** The limit closest to refusing, one for each unit that limits count in. */
  requests: LimitStatus | undefined
  tokens: LimitStatus | undefined
  refused: LimitStatus | undefined
  /** What services that count for several gateways want the reply to carry. */
  headers?: Headers | undefined
  /** The reply has its headers. */
  headersSent: boolean
  /** Time spent waiting for rate limit services. Their timeouts bound the sum, not each wait. */
  waitedMs?: number | undefined
  readonly reservations: LimitReservation[]
}

/** How a request differs from the client's when it is forwarded. */
export type Forwarding = {
  /** Path without query, where it is rewritten. */
  path: string | undefined
  /** Host header towards the upstream: a value, the client's own, or by default the upstream's. */
  host: string | 'client' | undefined
  /** Changes of headers, in order; applied to a copy. */
  readonly headerEdits: ((headers: Headers) => void)[]
}

/** What an MCP message asks for, for the access log. The texts are the client's, but for `target`. */
export type McpCall = {
  readonly method: string
  /** Name of the tool or prompt, or URI of the resource, as the client calls it. */
  readonly item: string | undefined
  /** Name of the target as configured; undefined for what all of them are asked. */
  target: string | undefined
}

/** What a guard came to, for the access log: never content. */
export type GuardDecision = {
  readonly guard: string
  readonly phase: 'request' | 'response'
  readonly outcome: GuardOutcome
  readonly reason: string | undefined
}

/** The client API whose error shape a refusal takes. */
export type ErrorFormat = 'text' | 'openai' | 'anthropic'

/** One request on its way through the gateway. */
export type Exchange = {
  readonly facts: Facts
  /** Replaced by the bytes that rules have seen where these read it; written by `policies/request-body`. */
  body: Body
  /** The connection that the request came on. */
  readonly connection: Connection
  /** The path was sent with a slash at its end, which `facts.request.path` does not show. */
  readonly trailingSlash: boolean
  /** Other paths that lenient servers read in the one of the request. Rules must permit each of them, too. */
  pathVariants?: readonly string[] | undefined
  /** Headers that the route forwards although clients' own are withheld by default, in lower case. */
  allowedClientHeaders?: readonly string[] | undefined
  /** The trusted proxy that the request came through; undefined where the connection is the client's own. */
  readonly peer: Client | undefined
  /**
   * Cancelled when the client goes away before the answer is complete. Replaced by one that is linked to it by what
   * ends the work earlier (`pipeline/request-timeout.ts`), so it is read when it is needed.
   */
  cancellation: Cancellation
  /** `Clock.monotonic()` at the arrival of the request's head. */
  readonly startedAt: number
  /** Shape of refusals on the matched route; plain text until a route is known. */
  errorFormat: ErrorFormat
  /** Name of the matched route; empty before. */
  routeName: string
  /** The path prefix that the matched route is for; `/` where it is for all paths or matches otherwise. */
  matchedPrefix: string
  /** Written by the policies that modify what is forwarded; read by backends. */
  forwarding: Forwarding | undefined
  /** The protocol the client wants to change to, where it may. */
  readonly upgrade: string | undefined
  /** Sends a 1xx answer ahead. */
  readonly informational: ((status: number, headers: Headers) => void) | undefined
  /** Whether the virtual key may use a model; written by `policies/api-key`, undefined allows all. */
  mayUseModel: ((model: string) => boolean) | undefined
  /** What `mayUseModel` allows, as configured: names, `prefix*` and `*suffix`. */
  allowedModels?: readonly string[] | undefined
  /** Group of the virtual key as configured, a metric label; written by `policies/api-key`. */
  keyGroup: string
  /** Written by `policies/rate-limit`. */
  limits?: RequestLimits | undefined
  /** Receives the delivery result of the reply, once; written by `backends/mcp`. */
  onDelivered?: ((delivery: Delivery) => void) | undefined
  /** Written by `backends/mcp`. */
  mcpCall?: McpCall | undefined
  /** Written by `backends/llm` for every request it knows, calls of models or not. */
  llmOperation?: LlmOperation | undefined
  /** What goes between the client and a model; written by `backends/llm`. */
  llmMessage?: LlmMessage | undefined
  /** What guards came to, those that had nothing to say left out; written by `policies/guardrails`. */
  guardDecisions?: GuardDecision[] | undefined
  /** Private to the backend of the route and its own policies, which alone know what it is. */
  backendState?: unknown
  /** What the client was authenticated with last, and what the request no longer holds; written by `pipeline/authentication`. */
  credential?: string | undefined
  /** Who ended the request and why, for the log: `rate-limit`, `api-key: invalid credentials`. Never content, never secrets. */
  refusedBy: string | undefined
  /** Cause of a failure, for the log only. */
  failure: unknown
}
