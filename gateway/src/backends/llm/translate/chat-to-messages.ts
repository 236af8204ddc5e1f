import { messageToCompletion } from './chat-to-messages/reply.ts'
import { chatToMessagesRequest } from './chat-to-messages/request.ts'
import { messageStreamToChunks } from './chat-to-messages/stream.ts'
import type { Translation } from './translation.ts'
import { readUpstreamError, toErrorBody } from './upstream-error.ts'

/** The client speaks OpenAI's chat completions, the upstream Anthropic's messages. */
export const chatToMessages: Translation = {
  request: chatToMessagesRequest,
  reply: messageToCompletion,
  error: (status, body) => toErrorBody('openai', readUpstreamError(status, body)),
  stream: messageStreamToChunks,
}
