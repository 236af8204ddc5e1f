import { isJsonObject, type JsonObject } from '../../../../lib/json/json.ts'
import { composeTranslations } from '../compose.ts'
import { countTokensToBedrock } from '../count-tokens-to-bedrock.ts'
import type { Translation } from '../translate.ts'
import { invalidResponse } from '../upstream-error.ts'
import { camelCased } from './fields.ts'
import { geminiToMessages } from './gemini-to-chat.ts'

/** Fields of messages that are counted. */
const countedFields = ['model', 'messages', 'system', 'tools', 'tool_choice', 'thinking'] as const

/** From a client of Google's `countTokens` to an upstream that counts the tokens of messages. */
export const geminiCountToMessages: Translation = {
  upstream: 'count_tokens',
  request(body) {
    const translated = geminiToMessages.request(counted(body))
    if (translated.kind === 'unsupported') return translated
    const fields: JsonObject = {}
    for (const name of countedFields) {
      const value = translated.body[name]
      if (value !== undefined) fields[name] = value
    }
    return { kind: 'body', body: fields }
  },
  reply({ input_tokens: tokens }) {
    if (typeof tokens !== 'number') throw invalidResponse('it has no token count')
    return { totalTokens: tokens }
  },
  error: geminiToMessages.error,
  stream() {
    throw invalidResponse('a token count is not a stream')
  },
}

/** To `CountTokens` of Amazon Bedrock. */
export const geminiCountToBedrock: Translation = composeTranslations(
  geminiCountToMessages,
  countTokensToBedrock,
)

/** The request whose tokens are counted: a whole one, or the fields of the count. */
function counted(given: JsonObject): JsonObject {
  const { generateContentRequest: whole, model = '', stream: _, ...own } = camelCased(given)
  return { ...(isJsonObject(whole) ? camelCased(whole) : own), model, stream: false }
}
