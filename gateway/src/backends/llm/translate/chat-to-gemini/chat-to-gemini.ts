import type { Translation } from '../translate.ts'
import { readUpstreamError, toErrorBody } from '../upstream-error.ts'
import { contentToCompletion } from './reply.ts'
import { chatToGeminiRequest } from './request.ts'
import { contentStreamToChunks } from './stream.ts'

/** From a client with OpenAI's chat completions to an upstream with Google's `generateContent`. */
export const chatToGemini: Translation = {
  upstream: 'generate_content',
  request: chatToGeminiRequest,
  reply: contentToCompletion,
  error: (status, body) => toErrorBody('openai', readUpstreamError(status, body)),
  stream: contentStreamToChunks,
}
