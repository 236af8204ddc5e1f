import { isJsonObject } from '../../../lib/json/json.ts'
import { chatToGemini } from './chat-to-gemini/chat-to-gemini.ts'
import { composeTranslations } from './compose.ts'
import { messagesToChat } from './messages-to-chat/messages-to-chat.ts'
import { isAbsent } from './refusals.ts'
import type { Translation } from './translate.ts'

const composed = composeTranslations(messagesToChat, chatToGemini)

/** From a client with messages to Gemini. Both have `top_k`, which chat completions lack. */
export const messagesToGemini: Translation = {
  ...composed,
  request({ top_k: topK, ...body }) {
    const translated = composed.request(body)
    if (translated.kind === 'unsupported' || isAbsent(topK)) return translated
    const { generationConfig } = translated.body
    const others = isJsonObject(generationConfig) ? generationConfig : {}
    return { ...translated, body: { ...translated.body, generationConfig: { ...others, topK } } }
  },
}
