import { chatToConverse } from '../chat-to-converse.ts'
import { chatToGemini } from '../chat-to-gemini/chat-to-gemini.ts'
import { chatToMessages } from '../chat-to-messages/chat-to-messages.ts'
import { chatToResponses } from '../chat-to-responses/chat-to-responses.ts'
import { composeTranslations } from '../compose.ts'
import {
  type ChatDialect,
  chatDialect,
  converseDialect,
  messagesDialect,
  responsesDialect,
} from '../gemini-to-chat/dialect.ts'
import type { Translation } from '../translate.ts'
import { readUpstreamError, toErrorBody } from '../upstream-error.ts'
import { completionToCohere } from './reply.ts'
import { cohereToChatRequest } from './request.ts'
import { chunkStreamToCohere } from './stream.ts'

function inDialect(dialect: ChatDialect): Translation {
  return {
    upstream: 'chat',
    request: (body) => cohereToChatRequest(body, dialect),
    reply: completionToCohere,
    error: (status, body) => toErrorBody('cohere', readUpstreamError(status, body)),
    stream: chunkStreamToCohere,
  }
}

/**
 * From a client with the second version of Cohere's chat to an upstream with chat completions.
 * https://docs.cohere.com/v2/reference/chat
 */
export const cohereToChat: Translation = inDialect(chatDialect)

/** To Google's `generateContent`. */
export const cohereToGemini: Translation = composeTranslations(cohereToChat, chatToGemini)

/** To the messages API. */
export const cohereToMessages: Translation = composeTranslations(inDialect(messagesDialect), chatToMessages)

/** To the Converse API. */
export const cohereToConverse: Translation = composeTranslations(inDialect(converseDialect), chatToConverse)

/** To OpenAI's responses. */
export const cohereToResponses: Translation = composeTranslations(
  inDialect(responsesDialect),
  chatToResponses,
)
