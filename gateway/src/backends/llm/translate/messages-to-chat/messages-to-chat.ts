import type { Translation } from '../translate.ts'
import { readUpstreamError, toErrorBody } from '../upstream-error.ts'
import { completionToMessage } from './reply.ts'
import { messagesToChatRequest } from './request.ts'
import { chunkStreamToMessages } from './stream.ts'

/** From a client with Anthropic's messages to an upstream with OpenAI's chat completions. */
export const messagesToChat: Translation = {
  upstream: 'chat',
  request: messagesToChatRequest,
  reply: completionToMessage,
  error: (status, body) => toErrorBody('anthropic', readUpstreamError(status, body)),
  stream: chunkStreamToMessages,
}
