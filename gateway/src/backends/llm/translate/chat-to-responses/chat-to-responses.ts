import type { Translation } from '../translate.ts'
import { readUpstreamError, toErrorBody } from '../upstream-error.ts'
import { responseToCompletion } from './reply.ts'
import { chatToResponsesRequest } from './request.ts'
import { responseStreamToChunks } from './stream.ts'

/** From a client with OpenAI's chat completions to an upstream with its responses. */
export const chatToResponses: Translation = {
  upstream: 'responses',
  request: chatToResponsesRequest,
  reply: responseToCompletion,
  error: (status, body) => toErrorBody('openai', readUpstreamError(status, body)),
  stream: responseStreamToChunks,
}
