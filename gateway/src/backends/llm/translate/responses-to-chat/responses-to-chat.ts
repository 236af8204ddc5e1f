import type { Translation } from '../translate.ts'
import { readUpstreamError, toErrorBody } from '../upstream-error.ts'
import { completionToResponse } from './reply.ts'
import { responsesToChatRequest } from './request.ts'
import { chunkStreamToResponse } from './stream.ts'

/** From a client with OpenAI's responses to an upstream with chat completions. */
export const responsesToChat: Translation = {
  upstream: 'chat',
  request: (body) => responsesToChatRequest(body, { signedThinking: false }),
  reply: completionToResponse,
  error: (status, body) => toErrorBody('openai', readUpstreamError(status, body)),
  stream: chunkStreamToResponse,
}

/** To chat completions as the step before an API with signed thinking, which clients return encrypted. */
export const responsesToSignedChat: Translation = {
  ...responsesToChat,
  request: (body) => responsesToChatRequest(body, { signedThinking: true }),
}
