import type { Translation } from '../translate.ts'
import { readUpstreamError, toErrorBody } from '../upstream-error.ts'
import { messageToCompletion } from './reply.ts'
import { chatToMessagesRequest } from './request.ts'
import { messageStreamToChunks } from './stream.ts'

/** From a client with OpenAI's chat completions to an upstream with Anthropic's messages. */
export const chatToMessages: Translation = {
  upstream: 'messages',
  request: (body) => chatToMessagesRequest(body, { audio: false }),
  reply: messageToCompletion,
  error: (status, body) => toErrorBody('openai', readUpstreamError(status, body)),
  stream: messageStreamToChunks,
}

/** To messages as the step before an API with audio, which is in blocks of its own. */
export const chatToMediaMessages: Translation = {
  ...chatToMessages,
  request: (body) => chatToMessagesRequest(body, { audio: true }),
}
