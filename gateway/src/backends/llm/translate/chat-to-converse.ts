import { isJsonObject } from '../../../lib/json/json.ts'
import { chatToMediaMessages } from './chat-to-messages/chat-to-messages.ts'
import { composeTranslations } from './compose.ts'
import { messagesToConverse } from './messages-to-converse/messages-to-converse.ts'
import { isAbsent } from './refusals.ts'
import type { Translation } from './translate.ts'

const composed = composeTranslations(chatToMediaMessages, messagesToConverse)

/**
 * From a client with chat completions to the Converse API. Without a limit of the client, the limit of the
 * model applies: messages require one, and models of other vendors accept less than its default.
 */
export const chatToConverse: Translation = {
  ...composed,
  request(body) {
    const translated = composed.request(body)
    if (translated.kind === 'unsupported' || !isAbsent(body['max_completion_tokens'] ?? body['max_tokens']))
      return translated
    const { inferenceConfig, ...rest } = translated.body
    const { maxTokens: _, ...others } = isJsonObject(inferenceConfig) ? inferenceConfig : {}
    const hasOthers = Object.keys(others).length > 0
    return { ...translated, body: hasOthers ? { ...rest, inferenceConfig: others } : rest }
  },
}
