import type { Refusals } from '../refusals.ts'

/**
 * Differences between chat completions as the API of the upstream, and as the step before the Responses API,
 * which has counterparts of more fields.
 */
export type ChatForm = {
  /** Name of the upstream's API in refusals. */
  readonly upstream: string
  /** Thinking is requested, and returned with its signature in `reasoning_details`. */
  readonly signedThinking: boolean
  /** Results of tools contain images and documents. Otherwise these are in the user message that follows. */
  readonly mediaInResults: boolean
  /** Documents have addresses. */
  readonly linkedDocuments: boolean
  readonly stopSequences: boolean
}

export const plainForm: ChatForm = {
  upstream: 'chat completions',
  signedThinking: false,
  mediaInResults: false,
  linkedDocuments: false,
  stopSequences: true,
}

export const responsesForm: ChatForm = {
  upstream: 'the Responses API',
  signedThinking: true,
  mediaInResults: true,
  linkedDocuments: true,
  stopSequences: false,
}

/** Refusals of a translation, with the form of its result. */
export type FormRefusals = Refusals & { readonly form: ChatForm }
