import type { JsonText } from '../lib/json/text.ts'

/** Client APIs of conversations: requests and responses are texts, complete or streamed. */
export type ConversationApi =
  | 'chat'
  | 'messages'
  | 'responses'
  | 'completions'
  | 'generate_content'
  | 'converse'
  | 'cohere_chat'

/** Client APIs with texts in requests or responses. */
export type LlmApi =
  | ConversationApi
  | 'moderations'
  | 'rerank'
  | 'images'
  | 'speech'
  | 'transcriptions'
  | 'invoke'
  | 'embed'

/** A model response in the format of the client API: a complete object, or a stream of events. */
export type LlmAnswer =
  | {
      readonly kind: 'whole'
      readonly json: JsonText
      /** The body is the member `text` of `json` without JSON. */
      readonly isPlain?: boolean
    }
  | { readonly kind: 'stream' }

/**
 * A call from the perspective of policies, independent of the provider and its API. Written by
 * `backends/llm`, which forwards replaced texts.
 */
export type LlmMessage = {
  readonly api: LlmApi
  /** The request has no texts: it reads a stored response. */
  readonly isAnswerOnly: boolean
  /** The body to forward; undefined after a provider was called. */
  request(): JsonText | undefined
  /** Replaces the forwarded body: the bytes of a JSON object. */
  replaceRequest(bytes: Buffer): Promise<void>
  /** `guardrails` of the candidate models, as configured; after a response, of its model. */
  guardrailsOfModels(): readonly object[]
  /** Set by policies that need the replaced body at the end. */
  keepsReplaced: boolean
  /** The body of the last `replaceRequest`, if it is kept. */
  replaced: JsonText | undefined
  /** Set by policies that need the content of the response in `answer`. */
  readsAnswer: boolean
  /** Whether policies check responses that are streamed; written with `readsAnswer`. */
  checksStreams?: boolean
  /** Undefined before the response and after an error of the provider. */
  answer: LlmAnswer | undefined
}
