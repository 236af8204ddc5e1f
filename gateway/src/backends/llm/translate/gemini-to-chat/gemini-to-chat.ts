import { chatToConverse } from '../chat-to-converse.ts'
import { chatToMessages } from '../chat-to-messages/chat-to-messages.ts'
import { chatToResponses } from '../chat-to-responses/chat-to-responses.ts'
import { composeTranslations, withSignedThinking } from '../compose.ts'
import type { Translation } from '../translate.ts'
import { readUpstreamError, toErrorBody } from '../upstream-error.ts'
import {
  type ChatDialect,
  chatDialect,
  converseDialect,
  messagesDialect,
  responsesDialect,
} from './dialect.ts'
import { completionToContent } from './reply.ts'
import { geminiToChatRequest } from './request.ts'
import { chunkStreamToContent } from './stream.ts'

function inDialect(dialect: ChatDialect): Translation {
  return {
    upstream: 'chat',
    request: (body) => geminiToChatRequest(body, dialect),
    reply: completionToContent,
    error: (status, body) => toErrorBody('google', readUpstreamError(status, body)),
    stream: chunkStreamToContent,
  }
}

/** From a client with Google's `generateContent` to an upstream with chat completions. */
export const geminiToChat: Translation = inDialect(chatDialect)

/** To the messages API. Signed thinking is returned with the results of tools. */
export const geminiToMessages: Translation = composeTranslations(
  inDialect(messagesDialect),
  withSignedThinking(chatToMessages),
)

/** To the Converse API. */
export const geminiToConverse: Translation = composeTranslations(
  inDialect(converseDialect),
  withSignedThinking(chatToConverse),
)

/** To OpenAI's responses. Encrypted reasoning is returned with the results of tools. */
export const geminiToResponses: Translation = composeTranslations(
  inDialect(responsesDialect),
  withSignedThinking(chatToResponses),
)
