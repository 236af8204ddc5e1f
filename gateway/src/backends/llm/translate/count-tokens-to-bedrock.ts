import { messagesToConverse } from './messages-to-converse/messages-to-converse.ts'
import { messagesToConverseRequest } from './messages-to-converse/request.ts'
import type { Translation } from './translate.ts'
import { invalidResponse } from './upstream-error.ts'

/** From a client that counts tokens of messages to `CountTokens` of Amazon Bedrock. */
export const countTokensToBedrock: Translation = {
  upstream: 'converse_count',
  request(body) {
    const translated = messagesToConverseRequest(body)
    if (translated.kind === 'unsupported') return translated
    const { messages = [], system, toolConfig } = translated.body
    return {
      kind: 'body',
      body: {
        input: {
          converse: {
            messages,
            ...(system === undefined ? undefined : { system }),
            ...(toolConfig === undefined ? undefined : { toolConfig }),
          },
        },
      },
    }
  },
  reply({ inputTokens }) {
    if (typeof inputTokens !== 'number') throw invalidResponse('it has no token count')
    return { input_tokens: inputTokens }
  },
  error: messagesToConverse.error,
  stream() {
    throw invalidResponse('a token count is not a stream')
  },
}
