import type { Endpoint } from '../request/endpoints.ts'
import { chatToConverse } from './chat-to-converse.ts'
import { chatToGemini } from './chat-to-gemini/chat-to-gemini.ts'
import { chatToMessages } from './chat-to-messages/chat-to-messages.ts'
import { chatToResponses } from './chat-to-responses/chat-to-responses.ts'
import {
  cohereToChat,
  cohereToConverse,
  cohereToGemini,
  cohereToMessages,
  cohereToResponses,
} from './cohere-to-chat/cohere-to-chat.ts'
import { composeTranslations, withSignedThinking } from './compose.ts'
import { converseOver, converseToMessages } from './converse-to-messages/converse-to-messages.ts'
import { countTokensToBedrock } from './count-tokens-to-bedrock.ts'
import { embeddingsToCohere, embeddingsToNova, embeddingsToTitan } from './embeddings/embeddings.ts'
import { embeddingsToPredict } from './embeddings-to-predict/embeddings-to-predict.ts'
import { batchEmbedContents, embedContent } from './gemini-embeddings/gemini-embeddings.ts'
import { geminiCountToBedrock, geminiCountToMessages } from './gemini-to-chat/count-tokens.ts'
import {
  geminiToChat,
  geminiToConverse,
  geminiToMessages,
  geminiToResponses,
} from './gemini-to-chat/gemini-to-chat.ts'
import { messagesToChat, messagesToResponses } from './messages-to-chat/messages-to-chat.ts'
import { messagesToConverse } from './messages-to-converse/messages-to-converse.ts'
import { messagesToGemini } from './messages-to-gemini.ts'
import { rerankToBedrock } from './rerank-to-bedrock/rerank-to-bedrock.ts'
import { responsesToChat, responsesToSignedChat } from './responses-to-chat/responses-to-chat.ts'
import type { Translation } from './translate.ts'

const none: readonly Translation[] = []

/** Translations by the API of the client, best first. */
const translations: Readonly<Partial<Record<Endpoint, readonly Translation[]>>> = {
  chat: [
    chatToGemini,
    withSignedThinking(chatToMessages),
    withSignedThinking(chatToConverse),
    chatToResponses,
  ],
  messages: [messagesToGemini, messagesToConverse, messagesToChat, messagesToResponses],
  responses: [
    composeTranslations(responsesToChat, chatToGemini),
    responsesToChat,
    composeTranslations(responsesToSignedChat, withSignedThinking(chatToMessages)),
    composeTranslations(responsesToSignedChat, withSignedThinking(chatToConverse)),
  ],
  generate_content: [geminiToChat, geminiToMessages, geminiToConverse, geminiToResponses],
  cohere_chat: [cohereToGemini, cohereToChat, cohereToMessages, cohereToConverse, cohereToResponses],
  gemini_count_tokens: [geminiCountToMessages, geminiCountToBedrock],
  converse: [
    converseToMessages,
    converseOver(composeTranslations(messagesToChat, chatToGemini)),
    converseOver(messagesToChat),
    converseOver(messagesToResponses),
  ],
  count_tokens: [countTokensToBedrock],
  embed_content: embedContent,
  batch_embed_contents: batchEmbedContents,
  rerank: [rerankToBedrock],
  rerank_v2: [rerankToBedrock],
  embeddings: [embeddingsToPredict, embeddingsToTitan, embeddingsToCohere, embeddingsToNova],
}

/** The translations of a client's API, best first. */
export function translationsFrom(endpoint: Endpoint): readonly Translation[] {
  return translations[endpoint] ?? none
}
