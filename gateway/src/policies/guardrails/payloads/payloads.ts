import { type JsonObject, parseJsonObject } from '../../../lib/json/json.ts'
import { isLarge } from '../../../lib/json/read.ts'
import { isSource, withTransform } from '../../../net/http/body.ts'
import { isEventStream } from '../../../net/http/sse.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { LlmMessage } from '../../../pipeline/llm-message.ts'
import type { Policy } from '../../../pipeline/policy.ts'
import { contentReaders } from '../content/content.ts'
import { type GuardedText, joinedText } from '../content/content-reader.ts'
import { createReading } from '../content/reading.ts'
import type { GuardText, Phase } from '../guard.ts'
import type { GuardrailsOptions } from '../guardrails.ts'
import { compileSearch, type Search } from '../kinds/regex/search.ts'
import { type AnswerTexts, collectAnswer } from './answer-texts.ts'
import { maskedTexts, payloadText, redactionMargin } from './payload-text.ts'

export type PayloadsOptions = Pick<GuardrailsOptions, 'shared' | 'ofModels'> & {
  /** Bytes of a prompt, and of a response, in the ledger; undefined if it stores none. */
  maxPayloadSize: number | undefined
}

/** Bytes of a prompt, and of a completion, for expressions of telemetry. */
const maxTelemetryBytes = 64 * 1024

/** Content of a request until its end. */
type PayloadState = {
  readonly prompt: JsonObject | undefined
  answer: { kind: 'whole'; body: Uint8Array } | { kind: 'stream'; texts: AnswerTexts } | undefined
}

declare module '../../../pipeline/exchange.ts' {
  interface LlmState {
    /** Private to `policies/guardrails/payloads`. */
    payload?: PayloadState | undefined
  }
}

/**
 * Stores prompts and responses in the ledger and for expressions of telemetry, as they passed the guards.
 * Matches of all regex guards are
 * masked, also of those that reject or audit. Enters before the guards, so that it sees their replies.
 */
export function compilePayloads({ shared, ofModels, maxPayloadSize }: PayloadsOptions): Policy {
  const sharedSearches = shared.flatMap(({ config }) => searchesOf(config))
  const byModel = new Map<object, readonly Search[]>(
    ofModels.map(({ config }) => [config, searchesOf(config)]),
  )

  function store(exchange: Exchange, message: LlmMessage, { prompt, answer }: PayloadState): void {
    const ofModel = message.guardrailsOfModels().flatMap((config) => byModel.get(config) ?? [])
    const searches = [...sharedSearches, ...ofModel]
    const request = textsIn(message, 'request', message.replaced?.value ?? prompt)
    const response = answerTexts(message, answer)
    if (maxPayloadSize !== undefined && exchange.recording !== undefined) {
      const limits = { searches, maxBytes: maxPayloadSize }
      exchange.payload = { request: payloadText(request, limits), response: payloadText(response, limits) }
    }
    if (exchange.retains?.llmTexts === true) {
      const limits = { searches, maxBytes: maxTelemetryBytes }
      exchange.facts.llmTexts = {
        prompt: maskedTexts(request, limits),
        completion: maskedTexts(response, limits).map(({ content }) => content),
      }
    }
  }

  /** Bytes to collect of a request; 0 if nothing is stored. */
  function bytesOf({ recording, retains }: Exchange): number {
    const ofLedger = recording === undefined ? 0 : (maxPayloadSize ?? 0)
    return Math.max(ofLedger, retains?.llmTexts === true ? maxTelemetryBytes : 0)
  }

  return {
    name: 'payloads',
    onRequest(exchange) {
      const { llm, facts } = exchange
      if (llm?.message === undefined || bytesOf(exchange) === 0) return undefined
      // The same texts follow in a request.
      if (facts.llm?.operation === 'count_tokens') return undefined
      llm.message.keepsReplaced = true
      llm.payload = { prompt: llm.message.request()?.value, answer: undefined }
      return undefined
    },
    onReply(exchange, reply) {
      const { llm, log } = exchange
      if (llm?.payload === undefined || llm.message === undefined) return reply
      if (log.refusedBy !== undefined || reply.status > 299) return reply
      return collect(llm.payload, llm.message, reply, bytesOf(exchange))
    },
    onEnd(exchange) {
      const { llm } = exchange
      if (llm?.payload === undefined || llm.message === undefined) return
      store(exchange, llm.message, llm.payload)
      llm.payload = undefined
    },
  }
}

function searchesOf(config: PayloadsOptions['shared'][number]['config']): Search[] {
  const guards = [...(config.request ?? []), ...(config.response ?? [])]
  return guards.flatMap(({ regex }) => (regex === undefined ? [] : compileSearch(regex.rules)))
}

function collect(state: PayloadState, { api }: LlmMessage, reply: Reply, maxBytes: number): Reply {
  const { body } = reply
  if (!isSource(body)) {
    if (body !== undefined) state.answer = { kind: 'whole', body }
    return reply
  }
  if (!isEventStream(reply.headers)) return reply
  const texts = collectAnswer(contentReaders[api], maxBytes + redactionMargin)
  state.answer = { kind: 'stream', texts }
  const observed = withTransform(body, (sink) => ({
    ...sink,
    write(chunk) {
      texts.push(chunk)
      return sink.write(chunk)
    },
    end: (...trailers) => sink.end(...trailers),
    fail: (error) => sink.fail(error),
  }))
  return { ...reply, body: observed }
}

function answerTexts(message: LlmMessage, answer: PayloadState['answer']): GuardText[] {
  if (answer === undefined) return []
  if (answer.kind === 'stream') return answer.texts.contents()
  const { body } = answer
  if (isLarge(body)) return []
  const text = Buffer.from(body).toString()
  const object = parseJsonObject(text)
  // Transcripts may be plain text.
  if (object === undefined && message.api === 'transcriptions') return [{ role: 'assistant', content: text }]
  return textsIn(message, 'response', object)
}

/** The texts of a body; none if it is unreadable. */
function textsIn({ api }: LlmMessage, phase: Phase, body: JsonObject | undefined): GuardText[] {
  if (body === undefined) return []
  const reader = contentReaders[api]
  const reading = createReading(phase)
  try {
    const texts = phase === 'request' ? reader.request(body, reading) : reader.reply(body, reading)
    return texts.map(textOf)
  } catch {
    return []
  }
}

function textOf(text: GuardedText): GuardText {
  return { role: text.role, content: joinedText(text) }
}
