import { hash } from 'node:crypto'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { estimateTokens } from '../../reply/usage.ts'

/** A fixed moment, so that equal requests get equal answers. */
export const created = 1_700_000_000

export const serviceTier = 'default'
export const systemFingerprint = 'fp_echo'

const hashes = new WeakMap<JsonObject, string>()

/** Notes the bytes that a request was read from: its ids are made of them. */
export function recordRequestHash(request: JsonObject, bytes: string | Uint8Array): void {
  hashes.set(request, hash('sha256', bytes, 'hex').slice(0, 24))
}

/** The same id for the same request. */
export function idOf(prefix: string, request: JsonObject): string {
  return `${prefix}${hashes.get(request) ?? ''}`
}

export function modelOf({ model }: JsonObject): string {
  return typeof model === 'string' ? model : 'echo'
}

/** The text of a message's or item's content: a string, or parts of which some hold text. */
function textOf(content: JsonValue | undefined): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part) => (isJsonObject(part) && typeof part['text'] === 'string' ? part['text'] : ''))
    .join('')
}

/** What the last of these messages that is the user's, or a tool's answer, says. */
export function lastInputText(messages: JsonValue | undefined): string {
  if (!Array.isArray(messages)) return ''
  for (const message of messages.toReversed()) {
    if (!isJsonObject(message)) continue
    if (message['type'] === 'function_call_output') return textOf(message['output'])
    if (message['role'] === 'user' || message['role'] === 'tool') return textOf(message['content'])
  }
  return ''
}

/** A text cut short, and whether it was. */
export type TruncatedText = { text: string; cut: boolean }

/** At most `maxTokens` tokens of four characters each. */
export function truncateText(text: string, maxTokens: JsonValue | undefined): TruncatedText {
  if (typeof maxTokens !== 'number' || !(maxTokens >= 1) || text.length <= maxTokens * 4)
    return { text, cut: false }
  return { text: text.slice(0, characterEnd(text, Math.floor(maxTokens) * 4)), cut: true }
}

const maxPieces = 256

/** The text in pieces for a stream, of four characters each or, for a long text, as many as keep their number bounded. */
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

/** `index`, or one more where it would cut a character in two. */
function characterEnd(text: string, index: number): number {
  const code = text.charCodeAt(index)
  return code >= 0xdc00 && code <= 0xdfff ? index + 1 : index
}

export type EchoTokens = { input: number; output: number }

export function countTokens(request: JsonObject, answered: string): EchoTokens {
  return { input: estimateTokens(request), output: Math.max(1, Math.ceil(Buffer.byteLength(answered) / 4)) }
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

/** Whether a chat stream's client is told the usage. */
export function includesUsage({ stream_options: options }: JsonObject): boolean {
  return isJsonObject(options) && options['include_usage'] === true
}
