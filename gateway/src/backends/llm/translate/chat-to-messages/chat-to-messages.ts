import type { Translation } from '../translate.ts'
import { readUpstreamError, toErrorBody } from '../upstream-error.ts'
import { messageToCompletion } from './reply.ts'
import { chatToMessagesRequest } from './request.ts'
import { messageStreamToChunks } from './stream.ts'

/** From a client with OpenAI's chat completions to an upstream with Anthropic's messages. */
export const chatToMessages: Translation = {
  upstream: 'messages',
  request: chatToMessagesRequest,
  reply: messageToCompletion,
  error: (status, body) => toErrorBody('openai', readUpstreamError(status, body)),
  stream: messageStreamToChunks,
}
