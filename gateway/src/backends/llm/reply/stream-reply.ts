import { GatewayError, type GatewayErrorCode } from '../../../lib/gateway-error.ts'
import { sourceOf } from '../../../net/http/body.ts'
import { isPlain } from '../../../net/http/content-encoding.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import { createSseParser, formatSseEvent } from '../../../net/http/sse.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { type Refusal, terminalEvent } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Attempt } from '../request/call.ts'
import type { Endpoint } from '../request/endpoints.ts'
import { answerOf, apiOf } from '../request/llm-message.ts'
import { isFinalUsage } from '../request/output-limit.ts'
import { createIdSeal } from '../stored/seal-reply.ts'
import type { Translation, TranslationContext } from '../translate/translate.ts'
import { recordLatency, recordModel, recordOutcome, translationContext } from './record.ts'
import { cancelReply, filterDecodedHeaders, type ReplyOptions } from './reply-body.ts'
import { maxLineBytes, maxMediaLineBytes, relayStream, type StreamConversion } from './stream.ts'
import { createStreamWatch, type StreamWatch } from './stream-watch.ts'
import { mergeUsage, modelIn } from './usage.ts'

/**
 * Converts an event stream, and records usage and model as their events arrive, and its outcome for the
 * eviction of the target at its end. Throws `upstream_invalid`.
 */
export function convertStream(
  attempt: Attempt,
  endpoint: Endpoint,
  reply: Reply,
  { context, responseIds, objectIds }: Pick<ReplyOptions, 'context' | 'responseIds' | 'objectIds'>,
): Reply {
  const { translation, exchange, candidate } = attempt
  const { body } = reply
  if (!isPlain(firstHeader(reply.headers, 'content-encoding'))) {
    cancelReply(reply)
    throw new GatewayError(
      'upstream_invalid',
      'upstream sent a compressed event stream although the request does not accept it',
    )
  }
  const headers = filterDecodedHeaders(reply.headers)
  // Without these, a proxy in front of the gateway may buffer events.
  headers['x-accel-buffering'] ??= 'no'
  headers['cache-control'] ??= 'no-cache'
  const source = sourceOf(body)
  const limit = lineLimits[translation?.upstream ?? endpoint] ?? maxLineBytes
  const relayed = relayStream(source, {
    maxLineBytes: limit,
    watch: watchUsage(attempt, translation?.upstream ?? endpoint),
    conversion: translation
      ? createConversion(translation, translationContext(attempt, context), limit)
      : createIdSeal(attempt, { responseIds, objectIds }),
    errorEvent: (error) => errorEvent(exchange, endpoint, error),
    onFirstByte() {
      attempt.firstByteAt = context.clock.monotonic()
      recordLatency(attempt, 'streamed', attempt.firstByteAt)
    },
    onSuccess() {
      recordOutcome(attempt, reply)
    },
    onFailure(error) {
      exchange.log.failure ??= error
      exchange.log.errorCode ??= codeOf(error)
      candidate.target.meter.upstreamError(codeOf(error))
      candidate.target.eviction.failed()
    },
  })
  attempt.succeeded = true
  const message = answerOf(exchange, endpoint, 'stream')
  if (message) message.answer = { kind: 'stream' }
  return { status: reply.status, headers, body: relayed }
}

/** Images are one line of base64. */
const lineLimits: Partial<Record<Endpoint, number>> = {
  images: maxMediaLineBytes,
  image_edits: maxMediaLineBytes,
  generate_content: maxMediaLineBytes,
}

function watchUsage(attempt: Attempt, endpoint: Endpoint): StreamWatch {
  return createStreamWatch({
    endpoint,
    hideUsage: attempt.call.hideUsage,
    onUsage(usage, message) {
      attempt.usage = endpoint === 'messages' ? mergeUsage(attempt.usage, usage) : usage
      recordModel(attempt, modelIn(endpoint, message))
      // The first report in a stream of messages covers the input only.
      const isComplete = endpoint !== 'messages' || message['type'] === 'message_delta'
      attempt.usageFinal = isComplete && isFinalUsage(endpoint, message)
    },
    onGenerated(bytes) {
      attempt.generatedBytes += bytes
      // The last report does not cover these bytes, and the client may disconnect before the next one.
      attempt.usageFinal = false
    },
  })
}

function createConversion(
  translation: Translation,
  context: TranslationContext,
  maxEventBytes: number,
): StreamConversion {
  const translator = translation.stream(context)
  let out = ''
  const parser = createSseParser({
    maxEventBytes,
    onEvent(event) {
      for (const translated of translator.event(event)) out += formatSseEvent(translated)
    },
  })
  const end = () => {
    let closing = ''
    for (const event of translator.end()) closing += formatSseEvent(event)
    return closing
  }
  return {
    convert(lines) {
      out = ''
      parser.push(lines)
      return translator.state === 'ended' ? out + end() : out
    },
    end,
  }
}

function codeOf(error: Error): GatewayErrorCode {
  return error instanceof GatewayError ? error.code : 'internal'
}

/** The event that ends a failed stream. */
function errorEvent(exchange: Exchange, endpoint: Endpoint, error: Error): string {
  const code = codeOf(error)
  const message = error instanceof GatewayError ? error.message : 'internal error'
  const refusal: Refusal = { status: code === 'upstream_timeout' ? 504 : 502, code, message }
  // The empty line closes an event that the upstream left open.
  return `\n${terminalEvent(apiOf(endpoint), exchange.errorFormat, refusal)}`
}
