import type { Translation } from '../translate.ts'
import { toErrorBody } from '../upstream-error.ts'
import { readBedrockError } from './errors.ts'
import { converseToMessage } from './reply.ts'
import { messagesToConverseRequest } from './request.ts'
import { converseStreamToMessages } from './stream.ts'

/** From a client with Anthropic's messages to the Converse API of Amazon Bedrock. */
export const messagesToConverse: Translation = {
  upstream: 'converse',
  request: messagesToConverseRequest,
  reply: converseToMessage,
  error: (status, body) => toErrorBody('anthropic', readBedrockError(status, body)),
  stream: converseStreamToMessages,
}
