import type { JsonText } from '../../../lib/json/text.ts'
import type { Exchange, Usage } from '../../../pipeline/exchange.ts'
import type { Candidate } from '../models/models.ts'
import type { Endpoint } from './endpoints.ts'

/** What is known of one LLM call between reading the request and the last byte of the answer. */
export type Call = {
  readonly endpoint: Endpoint | 'passthrough'
  /** The body as authorised, without content coding; empty once the last provider is asked. */
  bytes: Buffer
  /** Undefined for a passthrough that is no JSON object, and once the last provider is asked. */
  json: JsonText | undefined
  readonly candidates: readonly Candidate[]
  /** The client said `include_usage: false`: it does not get the usage chunk that is asked for all the same. */
  readonly hideUsage: boolean
  /** Whether a provider has been asked, so that it may have worked even if no answer was waited for. */
  asked: boolean
  /** Whether a provider answered with success. */
  answered: boolean
  /** Whether a whole answer was read or a stream began, so that `generatedBytes` counts what was generated. */
  hasOutput: boolean
  /** Bytes of generated text seen so far. */
  generatedBytes: number
  /** What has been reported so far; `final` once it counts the whole answer. */
  usage: Usage | undefined
  usageFinal: boolean
  served: Candidate | undefined
  /** `Clock.monotonic()` at the first byte of an answer's content. */
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
    asked: false,
    answered: false,
    hasOutput: false,
    generatedBytes: 0,
    usage: undefined,
    usageFinal: false,
    served: undefined,
    firstByteAt: undefined,
  }
}

const emptyBuffer = Buffer.alloc(0)

/** Lets go of the request's bytes and text once nobody is left to be asked: answers may take minutes, and prompts are large. */
export function releaseRequest(call: Call): void {
  call.json = undefined
  call.bytes = emptyBuffer
}

/** The call of an exchange whose request has been read, else undefined. */
export function callOf({ llm }: Exchange): Call | undefined {
  return llm?.call
}
