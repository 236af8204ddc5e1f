import { isJsonObject } from '../../../../lib/json/json.ts'
import { isAbsent } from '../refusals.ts'
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

/**
 * The translation with encrypted reasoning in `reasoning_details`, for clients that receive a summary of the
 * reasoning, and return it with results of tools.
 */
export const chatToReasonedResponses: Translation = {
  ...chatToResponses,
  request(body) {
    const translated = chatToResponsesRequest(body)
    if (translated.kind === 'unsupported') return translated
    const { reasoning, include } = translated.body
    if (!isJsonObject(reasoning) || isAbsent(reasoning.summary)) return translated
    const all = [...(Array.isArray(include) ? include : []), 'reasoning.encrypted_content']
    return { ...translated, body: { ...translated.body, include: all } }
  },
  reply: (body, context) => responseToCompletion(body, { ...context, signedThinking: true }),
  stream: (context) => responseStreamToChunks({ ...context, signedThinking: true }),
}
