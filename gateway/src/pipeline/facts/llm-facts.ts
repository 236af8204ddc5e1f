import type { CostStatus } from '../../ledger/cost-status.ts'

/**
 * Counts of one LLM call, in tokens. Input includes cached reads and cache writes, output includes reasoning.
 */
export type Usage = {
  inputTokens: number
  outputTokens: number
  totalTokens: number
  cachedInputTokens: number
  cacheCreationInputTokens: number
  reasoningTokens: number
  /** Part of the input, if the provider reports it separately. */
  inputAudioTokens?: number | undefined
  /** Part of the cached input and of the input audio, if the provider reports it. */
  cachedInputAudioTokens?: number | undefined
  /** Part of the output, if the provider reports it separately. */
  outputAudioTokens?: number | undefined
  /** Part of the input, if the provider reports it separately and prices it as images. */
  inputImageTokens?: number | undefined
  /** Part of the output, if the provider reports it separately. */
  outputImageTokens?: number | undefined
  /** Amounts besides tokens, by which some models are priced. */
  units?: UsageUnits | undefined
  /** Usage of one request of a batch, or of several; undefined for single calls. */
  batch?: 'request' | 'sum' | undefined
  /** True if the response ended without usage and the counts are bytes / 4. */
  estimated: boolean
}

/** Amounts of one call besides tokens. */
export type UsageUnits = {
  /** Generated images of one size and quality, which are undefined if neither side names them. */
  readonly images?: {
    readonly count: number
    readonly size: string | undefined
    readonly quality: string | undefined
    /** By the request, without a response that has them. */
    readonly isAssumed?: boolean
  }
  /** Seconds of transcribed audio. */
  readonly seconds?: number | undefined
  /** Characters of the text of speech. */
  readonly characters?: number | undefined
  /** Searches of a reranker. */
  readonly searches?: number | undefined
  /** Searches of the web by the provider, in addition to tokens. */
  readonly webSearches?: number | undefined
}

/**
 * The operation of an LLM request, independent of its path. `operation` is `gen_ai.operation.name` of
 * OpenTelemetry's semantic conventions, extended by names of our own; `api` is the client API.
 */
export type LlmOperation = {
  readonly operation:
    | 'chat'
    | 'text_completion'
    | 'embeddings'
    | 'count_tokens'
    | 'moderation'
    | 'rerank'
    | 'image_generation'
    | 'image_edit'
    | 'image_variation'
    | 'speech'
    | 'transcription'
    | 'translation'
    | 'realtime'
    | 'invoke_model'
    | 'stored_response'
    | 'file'
    | 'batch'
    | 'list_models'
    | 'passthrough'
  readonly api:
    | 'chat_completions'
    | 'completions'
    | 'embeddings'
    | 'responses'
    | 'messages'
    | 'count_tokens'
    | 'moderations'
    | 'rerank'
    | 'images_generations'
    | 'images_edits'
    | 'images_variations'
    | 'audio_speech'
    | 'audio_transcriptions'
    | 'generate_content'
    | 'gemini_count_tokens'
    | 'embed_content'
    | 'batch_embed_contents'
    | 'converse'
    | 'bedrock_count_tokens'
    | 'cohere_chat'
    | 'embed'
    | 'invoke_model'
    | 'audio_translations'
    | 'realtime'
    | 'files'
    | 'batches'
    | 'message_batches'
    | 'anthropic_files'
    | 'uploads'
    | 'models'
    | 'passthrough'
}

/** Properties of an LLM call. Names marked `configured` come from the configuration. */
export type LlmFacts = LlmOperation & {
  /** The model name the client sent. */
  requestModel: string
  /** Name of the `llm.models[]` entry that serves the call; unset until one is chosen. */
  configuredModel: string | undefined
  /** Provider kind, for example `openai`. */
  provider: string | undefined
  streaming: boolean
  /** Whether the response cache had the response; undefined for calls that do not use it. */
  cache?: 'hit' | 'miss' | undefined
  /** The model name reported by the provider. */
  responseModel?: string | undefined
  /** US dollars, over all attempts; set after the response if the model catalog has a price. */
  cost?: number | undefined
  /** The same in picodollars (10^-12 US dollars): a safe integer, hence exact. */
  costPicodollars?: number | undefined
  /** Request id of the call whose estimate is corrected: usage and cost are differences. */
  settles?: string | undefined
  /** Undefined before the end of the response and without a model catalog. */
  costStatus?: CostStatus | undefined
}

/** Texts of an LLM call: masked by the guards, and cut off beyond a limit. */
export type LlmTexts = {
  readonly prompt: readonly { readonly role: string; readonly content: string }[]
  /** One text per choice, content block or output item. */
  readonly completion: readonly string[]
}

/** Members of `llm` in expressions that have a value only after the response, token counts after its end. */
export const llmResponseMembers: readonly string[] = [
  ...[
    'configuredModel',
    'provider',
    'responseModel',
    'cache',
    'cost',
    'inputTokens',
    'outputTokens',
    'totalTokens',
  ],
  ...['cachedInputTokens', 'cacheCreationInputTokens', 'reasoningTokens'],
  ...['inputAudioTokens', 'outputAudioTokens'],
].map((name) => `llm.${name}`)
