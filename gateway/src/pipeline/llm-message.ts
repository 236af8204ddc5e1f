import type { JsonText } from '../lib/json/text.ts'

/** Client APIs whose requests and answers are texts between a client and a model. */
export type LlmApi = 'chat' | 'messages' | 'responses' | 'completions'

/** The answer of a model in the format of the client's API: an object that was read whole, or a stream of events. */
export type LlmAnswer = { readonly kind: 'whole'; readonly json: JsonText } | { readonly kind: 'stream' }

/**
 * A call as policies between the client and the model see it, who know neither the provider nor how it is asked. Written
 * by `backends/llm`, which is where replaced texts go.
 */
export type LlmMessage = {
  readonly api: LlmApi
  /** The body as it will be sent on; undefined once a provider is asked. */
  request(): JsonText | undefined
  /** Sends another body on: the bytes of a JSON object. */
  replaceRequest(bytes: Buffer): Promise<void>
  /** `guardrails` of the models that may be asked, as configured; once one has answered, of that one. */
  guardrailsOfModels(): readonly object[]
  /** Said by whoever wants `answer` to hold what an answer says. */
  readsAnswer: boolean
  /** Undefined before, and where the provider answered with an error. */
  answer: LlmAnswer | undefined
}
