import type { Endpoint } from '../request/endpoints.ts'
import { chatToGemini } from './chat-to-gemini/chat-to-gemini.ts'
import { chatToMessages } from './chat-to-messages/chat-to-messages.ts'
import { composeTranslations } from './compose.ts'
import { embeddingsToPredict } from './embeddings-to-predict/embeddings-to-predict.ts'
import { messagesToChat } from './messages-to-chat/messages-to-chat.ts'
import { responsesToChat } from './responses-to-chat/responses-to-chat.ts'
import type { Translation } from './translate.ts'

const none: readonly Translation[] = []

/** Translations by the API of the client, best first. */
const translations: Readonly<Partial<Record<Endpoint, readonly Translation[]>>> = {
  chat: [chatToGemini, chatToMessages],
  messages: [composeTranslations(messagesToChat, chatToGemini), messagesToChat],
  responses: [
    composeTranslations(responsesToChat, chatToGemini),
    responsesToChat,
    composeTranslations(responsesToChat, chatToMessages),
  ],
  embeddings: [embeddingsToPredict],
}

/** The translations of a client's API, best first. */
export function translationsFrom(endpoint: Endpoint): readonly Translation[] {
  return translations[endpoint] ?? none
}
