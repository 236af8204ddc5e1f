import { chatToResponses } from '../chat-to-responses/chat-to-responses.ts'
import { composeTranslations, withSignedThinking } from '../compose.ts'
import type { Translation, TranslationContext } from '../translate.ts'
import { readUpstreamError, toErrorBody } from '../upstream-error.ts'
import { type ChatForm, plainForm, responsesForm } from './chat-form.ts'
import { completionToMessage } from './reply.ts'
import { messagesToChatRequest } from './request.ts'
import { chunkStreamToMessages } from './stream.ts'

function inForm(form: ChatForm): Translation {
  const withForm = (context: TranslationContext) => ({ ...context, signedThinking: form.signedThinking })
  return {
    upstream: 'chat',
    request: (body) => messagesToChatRequest(body, form),
    reply: (body, context) => completionToMessage(body, withForm(context)),
    error: (status, body) => toErrorBody('anthropic', readUpstreamError(status, body)),
    stream: (context) => chunkStreamToMessages(withForm(context)),
  }
}

/** From a client with Anthropic's messages to an upstream with OpenAI's chat completions. */
export const messagesToChat: Translation = inForm(plainForm)

/** To OpenAI's responses. Encrypted reasoning is the signature of thinking. */
export const messagesToResponses: Translation = composeTranslations(
  inForm(responsesForm),
  withSignedThinking(chatToResponses),
)
