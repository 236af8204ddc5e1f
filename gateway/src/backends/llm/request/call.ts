import type { JsonObject } from '../../../lib/json/json.ts'
import type { JsonText } from '../../../lib/json/text.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Usage, UsageUnits } from '../../../pipeline/facts/llm-facts.ts'
import type { OwnFiles } from '../batches/file-references.ts'
import type { ObjectCall } from '../batches/object-call.ts'
import type { ReadUse } from '../batches/settlement/batch-use.ts'
import type { Candidate } from '../models/candidate.ts'
import type { FailoverRules } from '../models/routing/resolution.ts'
import type { Slots } from '../models/slots/slots.ts'
import type { RequestIds } from '../stored/provider-objects.ts'
import type { StoredResponse } from '../stored/response-ids.ts'
import type { StoredAction } from '../stored/stored-path.ts'
import type { Translation } from '../translate/translate.ts'
import type { AnthropicSettings } from './anthropic-settings.ts'
import type { ClientEndpoint } from './endpoints.ts'
import type { FormPart } from './form/scan.ts'

/** A stored response, and its id for clients. */
export type ResponseReference = { readonly text: string; readonly stored: StoredResponse }

/** State of one LLM call, from the parsed request to the last byte of the response. */
export type Call = {
  readonly endpoint: ClientEndpoint | 'passthrough'
  /** The call of the path, also if `endpoint` is `passthrough` because nothing is read of its responses. */
  readonly pathEndpoint: ClientEndpoint | 'passthrough'
  /**
   * The authorized body, without content coding; empty after the request to the last candidate is prepared.
   */
  bytes: Buffer
  /** Undefined for a passthrough body that is not a JSON object, and after the last request is prepared. */
  json: JsonText | undefined
  /** Files of a form, whose texts are `json`; undefined for other bodies, and after the last request. */
  files: readonly FormPart[] | undefined
  /** The stored response that the client names: the previous one, or that of the path. */
  readonly reference: ResponseReference | undefined
  /** Ids of objects in the request, which the provider receives as its own. */
  readonly objectIds: RequestIds | undefined
  /** Responses may have ids of objects, which the client receives with its owner. */
  readonly sealsIds: boolean
  /** Files of the client in the request. */
  readonly ownFiles: OwnFiles | undefined
  /** The call of the stored response; undefined for a new one. */
  readonly stored: StoredAction | undefined
  /** The call of a file or batch; undefined for other calls. */
  readonly object: ObjectCall | undefined
  readonly candidates: readonly Candidate[]
  readonly failover?: FailoverRules | undefined
  /** Streaming by the path; undefined if the body determines it. */
  readonly streaming: boolean | undefined
  /** The path of the client has the model, and the body has none. */
  readonly modelInPath: boolean
  /** Version and betas of a call of messages; undefined without any. */
  readonly anthropic: AnthropicSettings | undefined
  /** The client sent `include_usage: false`, so the usage chunk that the gateway requests is removed. */
  readonly hideUsage: boolean
  /** The request is forwarded in the API of the client, without changes but for the model. */
  readonly unchanged: boolean
  /** The latest attempt; undefined before the first request to a provider. */
  attempt: Attempt | undefined
}

/**
 * One request to one candidate, with the usage and the state of its response. The usage that a failed attempt
 * reported counts, because the provider charges it.
 */
export type Attempt = {
  readonly exchange: Exchange
  readonly call: Call
  readonly candidate: Candidate
  /** Undefined if client and provider use the same API. */
  readonly translation: Translation | undefined
  /** Settings that a translated response repeats. */
  readonly settings: JsonObject | undefined
  /** The attempt before a failover; of two at the same time, the one that lost. */
  previous: Attempt | undefined
  /** Lost against another attempt: what it has generated until its end is not reported. */
  isAbandoned: boolean
  /** Slots of the target, of which the reply occupies one until its end. */
  slots: Slots | undefined
  /** A response with a success status was read completely, or its stream started. */
  succeeded: boolean
  /** Bytes of generated text, counted for estimates. */
  generatedBytes: number
  /** The latest reported usage. */
  usage: Usage | undefined
  /** Amounts besides tokens in a response object. */
  units: UsageUnits | undefined
  /** `usage` covers the complete response. */
  usageFinal: boolean
  /** The model name reported by the provider. */
  responseModel: string | undefined
  /** Response of a failed attempt whose body is read for usage, in parallel with the next attempt. */
  unread: Reply | undefined
  /** Credentials of the gateway in the request, which relayed errors must not show. */
  credentials: readonly string[] | undefined
  /** `Clock.monotonic()` at the first byte of streamed content. */
  firstByteAt: number | undefined
  /** `Clock.monotonic()` before the request, if the time to the first byte is observed. */
  sentAt: number | undefined
}

declare module '../../../pipeline/exchange.ts' {
  interface LlmState {
    /** Private to `backends/llm`. */
    call?: Call | undefined
    /** Returns the use of the batch that the call has read so far. */
    batchUse?: (() => ReadUse | undefined) | undefined
  }
}

export type CallRequest = Omit<Call, 'attempt'>

export function createCall(request: CallRequest): Call {
  const {
    endpoint,
    pathEndpoint,
    bytes,
    json,
    files,
    reference,
    objectIds,
    sealsIds,
    ownFiles,
    stored,
    object,
    candidates,
    failover,
    streaming,
    modelInPath,
    anthropic,
    hideUsage,
    unchanged,
  } = request
  return {
    endpoint,
    pathEndpoint,
    bytes,
    json,
    files,
    reference,
    objectIds,
    sealsIds,
    ownFiles,
    stored,
    object,
    candidates,
    failover,
    streaming,
    modelInPath,
    anthropic,
    hideUsage,
    unchanged,
    attempt: undefined,
  }
}

/** Its parameters are single values, because an object for them would be one more allocation per request. */
export function createAttempt(
  exchange: Exchange,
  call: Call,
  candidate: Candidate,
  { translation, settings }: Pick<Attempt, 'translation' | 'settings'>,
): Attempt {
  return {
    exchange,
    call,
    candidate,
    translation,
    settings,
    previous: call.attempt,
    isAbandoned: false,
    slots: undefined,
    succeeded: false,
    generatedBytes: 0,
    usage: undefined,
    units: undefined,
    usageFinal: false,
    responseModel: undefined,
    unread: undefined,
    credentials: undefined,
    firstByteAt: undefined,
    sentAt: undefined,
  }
}

/** Makes one of the attempts of a call the latest, in front of the others. */
export function makeLatest(attempt: Attempt): void {
  const others: Attempt[] = []
  for (let other = attempt.call.attempt; other; other = other.previous) {
    if (other !== attempt) others.push(other)
  }
  let previous: Attempt | undefined
  for (const other of others.reverse()) {
    other.previous = previous
    previous = other
  }
  attempt.previous = previous
  attempt.call.attempt = attempt
}

const emptyBuffer = Buffer.alloc(0)

/**
 * Releases the request's bytes and text before the last attempt: responses may take minutes, and prompts are
 * large.
 */
export function releaseRequest(call: Call): void {
  call.json = undefined
  call.files = undefined
  call.bytes = emptyBuffer
}

/** Whether a call is a connection of realtime, whose responses are calls of their own. */
export function isConnection({ endpoint, json }: Call): boolean {
  return endpoint === 'realtime' && json === undefined
}

/** The call of an exchange with a parsed LLM request, else undefined. */
export function callOf({ llm }: Exchange): Call | undefined {
  return llm?.call
}
