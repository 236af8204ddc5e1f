import type { SecretText } from '../cel/secret-text.ts'
import type { BudgetCharge } from '../ledger/entry.ts'
import type { Cancellation } from '../lib/cancellation.ts'
import type { Clock } from '../lib/clock.ts'
import type { ExactJsonObject, JsonObject } from '../lib/json/json.ts'
import type { Body } from '../net/http/body.ts'
import type { Headers } from '../net/http/headers.ts'
import type { Delivery } from '../net/http/incoming-request.ts'
import type { Reply } from '../net/http-client/send.ts'
import type { Connection, Destination, Source } from '../net/listener/connection.ts'
import type { KeyBudget } from '../schema/budget.ts'
import type { Client } from './client-address.ts'
import type { A2aFacts } from './facts/a2a-facts.ts'
import type { LlmFacts, LlmOperation, LlmTexts, Usage } from './facts/llm-facts.ts'
import type { McpFacts } from './facts/mcp-facts.ts'
import type { Metadata } from './facts/metadata.ts'
import type { ResponseFacts } from './facts/response-facts.ts'
import type { RetainedFacts } from './facts/retained-facts.ts'
import type { Forwarding } from './forwarding/forwarding.ts'
import type { KeyLimit } from './keys/key-limits.ts'
import type { BudgetStatus, RequestLimits, Settlement } from './limits/limits.ts'
import type { LlmApi, LlmMessage } from './llm-message.ts'
import type { LoginSession, UiFacts } from './login/login.ts'
import type { GuardDecision, Recording } from './recording/recording.ts'
import type { RequestTrace } from './tracing/trace.ts'

/**
 * The client's request. `scheme` and `host` are those of the client, reported by a trusted proxy if there is
 * one; `path` is normalised: no dot segments, duplicate slashes or trailing slash.
 */
export type RequestFacts = {
  readonly method: string
  readonly scheme: 'http' | 'https'
  readonly host: string
  readonly path: string
  /** The path ended with a slash, which `path` omits. Rules ignore it; exact paths of routes do not. */
  readonly trailingSlash?: boolean | undefined
  /** Includes the question mark; empty without a query. */
  readonly query: string
  readonly version: string
  readonly headers: Headers
  /** Milliseconds since the epoch; `startTime` of expressions. */
  readonly arrivedAt?: number | undefined
}

/** The path with its trailing slash, as it is forwarded. */
export function sentPath({ path, trailingSlash }: Pick<RequestFacts, 'path' | 'trailingSlash'>): string {
  return trailingSlash === true && path !== '/' ? `${path}/` : path
}

/**
 * The client address, resolved through trusted proxies, and the TLS facts of the connection, which are those
 * of the last proxy. The port is 0 if only a proxy saw it.
 */
export type SourceFacts = Source

/**
 * Facts about one request: the variables of CEL expressions `request`, `source`, `jwt`, `apiKey`,
 * `basicAuth`, `ui`, `llmRequest`, `llm`. Each slot has exactly one writer.
 */
export type Facts = {
  /** Clock for `now` of expressions, computed on demand. */
  readonly clock?: Clock | undefined
  readonly request: RequestFacts
  readonly source: SourceFacts
  readonly destination?: Destination | undefined
  /** Validated claims; written by JWT authentication and by `policies/oidc`. */
  jwt: ExactJsonObject | undefined
  /** Metadata of the virtual key, with its `id`; written by `policies/api-key`. */
  apiKey: JsonObject | undefined
  /** The token of `jwt` and the key of `apiKey`, as received; written where those are. */
  token?: SecretText | undefined
  key?: SecretText | undefined
  /** User of a verified password; written by `policies/basic-auth`. */
  basicAuth?: { readonly username: string } | undefined
  /** Call of the admin API on a `ui` gateway; written by `config/ui-call.ts`. */
  ui?: UiFacts | undefined
  /**
   * The bytes of the body without content coding: `request.body` of expressions. Written by
   * `policies/request-body` and `backends/llm`, which read bodies before rules run.
   */
  body?: Uint8Array | undefined
  /** The client's original body; written by `backends/llm`. */
  llmRequest: ExactJsonObject | undefined
  /** Written by `backends/llm`. */
  llm: LlmFacts | undefined
  /**
   * Sum over all attempts. Written by `backends/llm` at the end of the response, before other policies end.
   */
  usage: Usage | undefined
  /** The matched route, for `proxy` and `backend` of expressions; written by the pipeline. */
  route?: RouteProperties | undefined
  /** Written by `recordResponse` on routes with expressions over it; undefined elsewhere. */
  response?: ResponseFacts | undefined
  /**
   * Texts of prompt and completion for expressions of telemetry, as they passed the guards. Written by
   * `policies/guardrails/payloads` at the end of the request.
   */
  llmTexts?: LlmTexts | undefined
  /** The last request to an MCP target; written by `backends/mcp` where checks of messages read it. */
  mcp?: McpFacts | undefined
  /** Metadata of an authorization service; written by `policies/ext-authz`. */
  extAuthz?: JsonObject | undefined
  /** Written by `policies/a2a`. */
  a2a?: A2aFacts | undefined
  /** Metadata of a processing service; written by `policies/ext-proc`. */
  extProc?: JsonObject | undefined
  /** Values of expressions and services, merged by `pipeline/facts/metadata.ts`. */
  metadata?: Metadata | undefined
}

/** The call of an MCP message, for the access log. All texts but `target` come from the client. */
export type McpCall = {
  readonly method: string
  /** Name of the tool or prompt, or URI of the resource, as sent by the client. */
  readonly item: string | undefined
  /** Name of the target as configured; undefined for calls to all targets. */
  target: string | undefined
  /** Arguments of a tool call; retained for expressions of telemetry only. */
  readonly arguments?: JsonObject | undefined
  /** JSON-RPC response; retained for expressions of telemetry only, cut off if it is large. */
  response?: string | undefined
}

/** Texts of prompt and response, redacted and truncated. */
export type PayloadTexts = {
  readonly request: string | undefined
  readonly response: string | undefined
}

/** The client API that determines the error shape of a refusal. */
export type ErrorFormat = 'text' | 'openai' | 'anthropic' | 'cohere' | 'google' | 'aws'

/** A route that matched a request. */
export type MatchedRoute<T> = {
  readonly target: T
  /** The matched path prefix, normalised; `/` if the match is not by prefix. */
  readonly prefix: string
}

/** Properties of a route that policies and backends read. */
export type RouteProperties = {
  readonly name: string
  /** Client headers that are forwarded although they are withheld by default, in lower case. */
  readonly allowedClientHeaders?: readonly string[] | undefined
  /** Traffic with request ids and entries in the ledger. */
  readonly traffic?: 'llm' | 'mcp' | undefined
  /** The admin API on a gateway. */
  readonly isConsole?: boolean | undefined
  /** Name of the listener: `default`, `default/public`; `llm` and `mcp` for sections with a port. */
  readonly listener?: string | undefined
}

/** Models that virtual keys permit; written by `policies/api-key`. */
export type ModelAccess = {
  allows(model: string): boolean
  /** Patterns as configured: names, `prefix*` and `*suffix`. */
  readonly patterns: readonly string[]
}

/** MCP targets that virtual keys permit; written by `policies/api-key`. */
export type TargetAccess = ModelAccess

/** State of authentication. Slots without another writer are written by `policies/api-key`. */
export type AuthState = {
  /** The last accepted credential, removed from the request; written by `identity/authentication`. */
  credential: string | undefined
  /** The token (JWT) whose claims are `facts.jwt`; written by `identity/jwt`. */
  token?: string | undefined
  /** Undefined permits all models. */
  models: ModelAccess | undefined
  /** Undefined permits all MCP targets. */
  targets: TargetAccess | undefined
  /** Limits of the virtual keys of the request. */
  limits: readonly KeyLimit[] | undefined
  /** Earliest end of the virtual keys of the request, in milliseconds since the epoch. */
  expiresAt: number | undefined
  /** Group of the virtual key as configured, a metric label. */
  keyGroup: string
  /** Login session of a browser; written by `policies/oidc`. */
  session?: LoginSession | undefined
  /**
   * Budgets of the accepted virtual keys; written by `policies/api-key`. The objects are those of the key
   * index, so that they identify compiled budgets.
   */
  budgets: readonly KeyBudgets[] | undefined
}

/** Budgets of one virtual key. */
export type KeyBudgets = {
  readonly keyId: string
  readonly budgets: readonly KeyBudget[]
}

/** Expected amounts of an LLM call: of its input, and of the output that the request permits. */
export type CallEstimate = {
  readonly tokens: number
  /** Undefined without a price. */
  readonly picodollars: number | undefined
  /** These amounts are charged, because the requests are served later. */
  readonly isCharge?: boolean
}

/** State of a request before authentication. */
export function createAuthState(): AuthState {
  return {
    credential: undefined,
    models: undefined,
    targets: undefined,
    limits: undefined,
    expiresAt: undefined,
    keyGroup: '',
    budgets: undefined,
  }
}

/** Results of a batch that a call reads. Each has the response of a request of the batch. */
export type BatchResults = {
  readonly api: LlmApi
  /** `guardrails` of the model, as configured. */
  guardrailsOfModels(): readonly object[]
  /**
   * Checks one response, as the answer of an exchange of its own. Set by policies that check responses of the
   * model; results are forwarded without a check otherwise.
   */
  check?: ((exchange: Exchange, reply: Reply) => Reply | Promise<Reply>) | undefined
}

/**
 * State of an LLM request; written by `backends/llm`, which adds its private slots by declaration merging.
 * The slots of the backend are typed there, because this folder does not depend on backends.
 */
export interface LlmState {
  /** By the path, then by the body too. */
  operation: LlmOperation
  /** Estimates the amounts of the call before it; undefined for requests without a call. */
  readonly estimate: ((exchange: Exchange) => CallEstimate) | undefined
  /** The exchange of texts between client and model; undefined for other requests. */
  message: LlmMessage | undefined
  /** Results of a batch that the call reads; undefined for other calls. */
  results?: BatchResults | undefined
  /** The call costs nothing, so that an exhausted budget admits it. */
  isFree?: boolean
  /** The provider has started the call by itself: limits and budgets charge it, and do not refuse it. */
  isCommitted?: boolean
  /** Set at the end of a call that corrects charges of an earlier one; `policies/budgets` applies it. */
  settlement?: Settlement | undefined
  /** Runs a check for each request of a batch, up to the first refusal; undefined for other calls. */
  eachRequest?:
    | ((
        check: (exchange: Exchange) => Reply | undefined | Promise<Reply | undefined>,
      ) => Promise<Reply | undefined>)
    | undefined
  /** Returns `authorization` of the models that may serve the request, as configured. */
  rulesOfModels?: ((exchange: Exchange) => readonly object[]) | undefined
}

/** State of an MCP request; written by `backends/mcp`. */
export type McpState = {
  call: McpCall | undefined
  /** Receives the delivery result of the reply, once. */
  onDelivered: ((delivery: Delivery) => void) | undefined
  /** Bytes of the result that the ledger stores; undefined if it stores none. */
  resultBytes?: number | undefined
}

/** Fields of the access log line that any stage may set. */
export type LogState = {
  /**
   * Policy and reason of a refusal: `rate-limit`, `api-key: invalid credentials`. Never content, never
   * secrets.
   */
  refusedBy: string | undefined
  /** Stable code of a refusal or of the failure that ended a stream, for example `model_not_found`. */
  errorCode: string | undefined
  /** Cause of a failure. */
  failure: unknown
  /** Requests to LLM providers, if there was more than one; written by `backends/llm`. */
  attempts?: number | undefined
}

/** Outcome of an authorization service for one scope. */
export type ExtAuthzOutcome = {
  /** Name of the scope. */
  readonly policy: string
  readonly outcome: 'allowed' | 'denied' | 'failed_open' | 'failed_closed'
  /** Undefined without a decision. */
  readonly from: 'service' | 'cache' | undefined
  /** Changes of the reply that the service requires. */
  readonly editReply: ((headers: Headers) => void) | undefined
}

/**
 * Calls inside a connection that stays open after its request: the responses of realtime. Each has an
 * exchange, a log line and an entry in the ledger of its own, and the rules, limits and budgets of the route.
 */
export type ConnectionCalls = {
  /** Starts a call. `prepare` describes it before the policies run. */
  start(prepare: (exchange: Exchange) => void): Promise<StartedCall>
  /**
   * Checks the credential and the rules again, if the configuration has changed or `isExpired`. Later calls
   * have the current policies. Returns the reply of a refusal.
   */
  recheck(isExpired: boolean): Promise<Reply | undefined>
  /** Whether a later configuration has policies of single models, which do not know the connection. */
  readonly isOutdated: boolean
  /** Whether the route has guards. */
  readonly isGuarded: boolean
  /** Runs the guards on content of the client; the reply of a refusal. */
  checkRequest(exchange: Exchange): Promise<Reply | undefined>
  /** Runs the guards on content for the client. */
  checkReply(exchange: Exchange, reply: Reply): Promise<Reply>
  /** The exchange with the current credential. */
  readonly current: Exchange
}

/** A call of a connection; `end` is called once, at its end. */
export type StartedCall =
  | { readonly kind: 'admitted'; readonly exchange: Exchange; end(delivery: Delivery): void }
  /** The call has ended. */
  | { readonly kind: 'refused'; readonly exchange: Exchange; readonly reply: Reply }

/**
 * One request on its way through the gateway. State is grouped by owner; a group that only some requests need
 * is undefined until its owner creates it.
 */
export type Exchange = {
  readonly facts: Facts
  /** Replaced by the read bytes if rules read the body; written by `policies/request-body`. */
  body: Body
  /** The client connection of the request. */
  readonly connection: Connection
  /** Other paths that lenient servers derive from the request path. Rules must permit each of them, too. */
  pathVariants: readonly string[] | undefined
  /** The trusted proxy that sent the request; undefined on a direct connection of the client. */
  readonly peer: Client | undefined
  /**
   * Cancelled if the client disconnects before the response is complete. `pipeline/request-timeout.ts`
   * replaces it by a linked one that ends earlier, so read it at the time of use.
   */
  cancellation: Cancellation
  /** `Clock.monotonic()` at the arrival of the request head. */
  readonly startedAt: number
  /** The protocol of a permitted upgrade request. */
  readonly upgrade: string | undefined
  /** Sends an informational response (1xx). */
  readonly informational: ((status: number, headers: Headers) => void) | undefined
  /** The matched route; written by the pipeline. */
  route: MatchedRoute<RouteProperties> | undefined
  /**
   * UUID of an LLM or MCP request, in `x-request-id` of its reply; undefined for other requests. Written by
   * the pipeline.
   */
  requestId: string | undefined
  /** Error shape of refusals on the matched route, written by the pipeline; plain text before routing. */
  errorFormat: ErrorFormat
  /** Written by the policies that modify the forwarded request; read by backends. */
  forwarding: Forwarding | undefined
  readonly auth: AuthState
  /** Written by `policies/rate-limit`. */
  limits: RequestLimits | undefined
  /** Written by `backends/llm`. */
  llm: LlmState | undefined
  /** Written by `backends/mcp`. */
  mcp: McpState | undefined
  /** Decisions of guards, without those that were neutral; written by `policies/guardrails`. */
  guards: GuardDecision[] | undefined
  /** Budgets that apply to the request; written by `policies/budgets`. */
  budgets: BudgetStatus[] | undefined
  /** Amounts charged to budgets at the end; written by `policies/budgets`. */
  charges: BudgetCharge[] | undefined
  /** Values of the labels of `config.metrics.fields`, evaluated once. Written by the pipeline. */
  metricLabels?: (() => readonly string[]) | undefined
  /** Undefined without expressions of telemetry. Written by the pipeline. */
  retains?: RetainedFacts | undefined
  /** Undefined without tracing, and for most requests that are not sampled. Written by the pipeline. */
  trace?: RequestTrace | undefined
  /** Decisions and times for the entry in the ledger; undefined without an entry. Written by the pipeline. */
  recording: Recording | undefined
  /** Texts for the ledger; written by `policies/guardrails` for LLM requests, and by `backends/mcp`. */
  payload: PayloadTexts | undefined
  /** Undefined except for upgrades on LLM routes. Written by the pipeline. */
  calls?: ConnectionCalls | undefined
  /** Outcomes of `policies/ext-authz`, one for each scope with the policy. */
  extAuthz?: ExtAuthzOutcome[] | undefined
  /** A processing service receives the request; written by `policies/ext-proc`. */
  isProcessed?: boolean
  readonly log: LogState
}
