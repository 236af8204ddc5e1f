import type { FindAmbiguousName } from '../../../lib/json/names.ts'
import { readJson } from '../../../lib/json/read.ts'
import type { WorkQueue } from '../../../lib/scheduling/work-queue.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { LlmApi, LlmMessage } from '../../../pipeline/llm-message.ts'
import {
  findAmbiguousCohereName,
  findAmbiguousConverseName,
  findAmbiguousGeminiName,
  findAmbiguousInvokeName,
  findAmbiguousLlmName,
} from '../../../pipeline/llm-names.ts'
import type { Call } from './call.ts'
import type { Endpoint } from './endpoints.ts'

/** The client API of an endpoint with texts as requests and responses, else undefined. */
export function apiOf(endpoint: Endpoint | 'passthrough'): LlmApi | undefined {
  switch (endpoint) {
    case 'chat':
    case 'messages':
    case 'responses':
    case 'completions':
    case 'generate_content':
    case 'converse':
    case 'invoke':
    case 'cohere_chat':
    case 'embed':
    case 'moderations':
    case 'rerank':
    case 'images':
    case 'speech':
    case 'transcriptions':
      return endpoint
    case 'rerank_v2':
      return 'rerank'
    // Texts to count leave the gateway, too.
    case 'count_tokens':
      return 'messages'
    case 'gemini_count_tokens':
      return 'generate_content'
    case 'converse_count':
      return 'converse'
    case 'image_edits':
    case 'image_variations':
      return 'images'
    case 'translations':
      return 'transcriptions'
    default:
      return undefined
  }
}

/** Calls whose responses have texts of the model, complete or streamed. */
const answersText: ReadonlySet<Endpoint> = new Set([
  'converse',
  'invoke',
  'chat',
  'completions',
  'messages',
  'responses',
  'transcriptions',
  'translations',
  'generate_content',
  'cohere_chat',
])

/** The API of the responses of a call, if they have texts of the model. */
export function answerApiOf(endpoint: Endpoint): LlmApi | undefined {
  return answersText.has(endpoint) ? apiOf(endpoint) : undefined
}

/** Calls whose responses describe their images. */
const describesImages: ReadonlySet<Endpoint> = new Set(['images', 'image_edits', 'image_variations'])

/** The view of policies on the response of a call; undefined if the response has no texts. */
export function answerOf(
  exchange: Exchange,
  endpoint: Endpoint,
  form: 'whole' | 'stream',
): LlmMessage | undefined {
  const hasText = answersText.has(endpoint) || (describesImages.has(endpoint) && form === 'whole')
  return hasText ? exchange.llm?.message : undefined
}

/**
 * Whether a response consists of texts, which are counted if it has no usage. Those of `InvokeModel` may be
 * images or embeddings.
 */
export function generatesText(endpoint: Endpoint): boolean {
  return endpoint !== 'invoke' && answersText.has(endpoint)
}

/** Finds ambiguous names in requests and responses of a call. */
export function ambiguousNamesOf(endpoint: Endpoint | 'passthrough'): FindAmbiguousName {
  switch (endpoint) {
    case 'generate_content':
    case 'gemini_count_tokens':
    case 'embed_content':
    case 'batch_embed_contents':
      return findAmbiguousGeminiName
    case 'converse':
    case 'converse_count':
      return findAmbiguousConverseName
    case 'invoke':
      return findAmbiguousInvokeName
    case 'cohere_chat':
      return findAmbiguousCohereName
    default:
      return findAmbiguousLlmName
  }
}

/** The view of policies on a call; undefined for calls without text content. */
export function llmMessageOf(call: Call, workQueue: WorkQueue): LlmMessage | undefined {
  const api = apiOf(call.endpoint)
  if (api === undefined) return undefined
  const message: LlmMessage = {
    api,
    isAnswerOnly: call.stored !== undefined,
    request: () => call.json,
    async replaceRequest(bytes) {
      const json = await readJson(bytes, workQueue)
      if (json.kind !== 'object') throw new Error('the replacement of a request is not a JSON object')
      call.json = json
      call.bytes = bytes
      if (message.keepsReplaced) message.replaced = json
    },
    guardrailsOfModels: () => configuredOf(call, 'guardrails'),
    keepsReplaced: false,
    replaced: undefined,
    readsAnswer: false,
    answer: undefined,
  }
  return message
}

/** A policy of the candidate models, as configured; after a response, of its model. */
export function configuredOf(call: Call, policy: 'guardrails' | 'authorization'): readonly object[] {
  const candidates = call.attempt === undefined ? call.candidates : [call.attempt.candidate]
  const found = new Set<object>()
  for (const { target } of candidates) {
    const configured = target[policy]
    if (configured !== undefined) found.add(configured)
  }
  return [...found]
}
