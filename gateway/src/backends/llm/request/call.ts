import type { JsonText } from '../../../lib/json/text.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange, Usage } from '../../../pipeline/exchange.ts'
import type { Candidate } from '../models/models.ts'
import type { Translation } from '../translate/translate.ts'
import type { Endpoint } from './endpoints.ts'

/** State of one LLM call, from the parsed request to the last byte of the response. */
export type Call = {
  readonly endpoint: Endpoint | 'passthrough'
  /**
   * The authorized body, without content coding; empty after the request to the last candidate is prepared.
   */
  bytes: Buffer
  /** Undefined for a passthrough body that is not a JSON object, and after the last request is prepared. */
  json: JsonText | undefined
  readonly candidates: readonly Candidate[]
  /** The client sent `include_usage: false`, so the usage chunk that the gateway requests is removed. */
  readonly hideUsage: boolean
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
  /** The attempt before a failover. */
  readonly previous: Attempt | undefined
  /** A response with a success status was read completely, or its stream started. */
  succeeded: boolean
  /** Bytes of generated text, counted for estimates. */
  generatedBytes: number
  /** The latest reported usage. */
  usage: Usage | undefined
  /** `usage` covers the complete response. */
  usageFinal: boolean
  /** The model name reported by the provider. */
  responseModel: string | undefined
  /** Response of a failed attempt whose body is read for usage, in parallel with the next attempt. */
  unread: Reply | undefined
  /** `Clock.monotonic()` at the first byte of streamed content. */
  firstByteAt: number | undefined
}

declare module '../../../pipeline/exchange.ts' {
  interface LlmState {
    /** Private to `backends/llm`. */
    call?: Call | undefined
  }
}

export type CallRequest = Pick<Call, 'endpoint' | 'bytes' | 'json' | 'candidates' | 'hideUsage'>

export function createCall({ endpoint, bytes, json, candidates, hideUsage }: CallRequest): Call {
  return {
    endpoint,
    bytes,
    json,
    candidates,
    hideUsage,
    attempt: undefined,
  }
}

/** Its parameters are single values, because an object for them would be one more allocation per request. */
export function createAttempt(
  exchange: Exchange,
  call: Call,
  candidate: Candidate,
  translation: Translation | undefined,
): Attempt {
  return {
    exchange,
    call,
    candidate,
    translation,
    previous: call.attempt,
    succeeded: false,
    generatedBytes: 0,
    usage: undefined,
    usageFinal: false,
    responseModel: undefined,
    unread: undefined,
    firstByteAt: undefined,
  }
}

const emptyBuffer = Buffer.alloc(0)

/**
 * Releases the request's bytes and text before the last attempt: responses may take minutes, and prompts are
 * large.
 */
export function releaseRequest(call: Call): void {
  call.json = undefined
  call.bytes = emptyBuffer
}

/** The call of an exchange with a parsed LLM request, else undefined. */
export function callOf({ llm }: Exchange): Call | undefined {
  return llm?.call
}
