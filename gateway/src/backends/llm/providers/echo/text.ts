import { hash } from 'node:crypto'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { estimateTokens } from '../../reply/usage.ts'

/** A fixed time, so that equal requests receive equal responses. */
export const created = 1_700_000_000

export const serviceTier = 'default'
export const systemFingerprint = 'fp_echo'

const hashes = new WeakMap<JsonObject, string>()

/** Stores the hash of a request's bytes, from which its ids are derived. */
export function recordRequestHash(request: JsonObject, bytes: string | Uint8Array): void {
  hashes.set(request, hash('sha256', bytes, 'hex').slice(0, 24))
}

/** An id derived from the request. */
export function idOf(prefix: string, request: JsonObject): string {
  return `${prefix}${hashes.get(request) ?? ''}`
}

export function modelOf({ model }: JsonObject): string {
  return typeof model === 'string' ? model : 'echo'
}

/** Text of the content of a message or item: a string, or the texts of its parts. */
function textOf(content: JsonValue | undefined): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part) => (isJsonObject(part) && typeof part['text'] === 'string' ? part['text'] : ''))
    .join('')
}

/** Text of the last user message or tool result. */
export function lastInputText(messages: JsonValue | undefined): string {
  if (!Array.isArray(messages)) return ''
  for (const message of messages.toReversed()) {
    if (!isJsonObject(message)) continue
    if (message['type'] === 'function_call_output') return textOf(message['output'])
    if (message['role'] === 'user' || message['role'] === 'tool') return textOf(message['content'])
  }
  return ''
}

/** A text after truncation. */
export type TruncatedText = { text: string; truncated: boolean }

/** At most `maxTokens` tokens of four characters each. */
export function truncateText(text: string, maxTokens: JsonValue | undefined): TruncatedText {
  if (typeof maxTokens !== 'number' || !(maxTokens >= 1) || text.length <= maxTokens * 4)
    return { text, truncated: false }
  return { text: text.slice(0, characterEnd(text, Math.floor(maxTokens) * 4)), truncated: true }
}

const maxPieces = 256

/**
 * Splits a text for a stream, into pieces of four characters or, for long texts, into at most `maxPieces`.
 */
export function splitText(text: string): string[] {
  const size = Math.max(4, Math.ceil(text.length / maxPieces))
  const pieces: string[] = []
  for (let start = 0; start < text.length; ) {
    const end = characterEnd(text, start + size)
    pieces.push(text.slice(start, end))
    start = end
  }
  return pieces
}

/** `index`, or the next one if it is inside a surrogate pair. */
function characterEnd(text: string, index: number): number {
  const code = text.charCodeAt(index)
  return code >= 0xdc00 && code <= 0xdfff ? index + 1 : index
}

export type EchoTokens = { input: number; output: number }

export function countTokens(request: JsonObject, output: string): EchoTokens {
  return { input: estimateTokens(request), output: Math.max(1, Math.ceil(Buffer.byteLength(output) / 4)) }
}

/** Usage as OpenAI's chat completions and completions report it, all fields present. */
export function usageOf({ input, output }: EchoTokens): JsonObject {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: 0,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}

export function dataEvent(value: JsonObject): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

export const doneEvent = 'data: [DONE]\n\n'

/** The request demands a usage chunk in the stream. */
export function includesUsage({ stream_options: options }: JsonObject): boolean {
  return isJsonObject(options) && options['include_usage'] === true
}
