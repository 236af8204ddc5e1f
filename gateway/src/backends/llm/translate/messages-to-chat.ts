import { completionToMessage } from './messages-to-chat/reply.ts'
import { messagesToChatRequest } from './messages-to-chat/request.ts'
import { chunkStreamToMessages } from './messages-to-chat/stream.ts'
import type { Translation } from './translation.ts'
import { readUpstreamError, toErrorBody } from './upstream-error.ts'

/** The client speaks Anthropic's messages, the upstream OpenAI's chat completions. */
export const messagesToChat: Translation = {
  request: messagesToChatRequest,
  reply: completionToMessage,
  error: (status, body) => toErrorBody('anthropic', readUpstreamError(status, body)),
  stream: chunkStreamToMessages,
}
