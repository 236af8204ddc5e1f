import { isJsonObject, type JsonObject } from '../../../../lib/json/json.ts'
import { composeTranslations } from '../compose.ts'
import { isAbsent } from '../refusals.ts'
import type { Translation } from '../translate.ts'
import { readUpstreamError } from '../upstream-error.ts'
import { messageToConverse } from './reply.ts'
import { converseToMessagesRequest } from './request.ts'
import { messagesStreamToConverse } from './stream.ts'

/** From a client with the Converse API of Amazon Bedrock to Anthropic's messages. */
export const converseToMessages: Translation = {
  upstream: 'messages',
  request: (body) => converseToMessagesRequest(body, { audio: false }),
  reply: messageToConverse,
  error: (status, body) => ({ message: readUpstreamError(status, body).message }),
  stream: messagesStreamToConverse,
}

/** To messages as the step before an API with audio, which is in blocks of its own. */
const converseToMediaMessages: Translation = {
  ...converseToMessages,
  request: (body) => converseToMessagesRequest(body, { audio: true }),
}

/**
 * From a client with the Converse API to another API. Without a limit of the client, the limit of the model
 * applies: only messages require one.
 */
export function converseOver(inner: Translation): Translation {
  const composed = composeTranslations(converseToMediaMessages, inner)
  return {
    ...composed,
    request(body) {
      const translated = composed.request(body)
      if (translated.kind === 'unsupported' || hasLimit(body)) return translated
      const { max_tokens: _, max_output_tokens: __, ...rest } = translated.body
      return { ...translated, body: rest }
    },
  }
}

function hasLimit({ inferenceConfig }: JsonObject): boolean {
  return isJsonObject(inferenceConfig) && !isAbsent(inferenceConfig['maxTokens'])
}
