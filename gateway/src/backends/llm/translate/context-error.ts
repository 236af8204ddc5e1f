import { isJsonObject, type JsonObject, parseJsonObject } from '../../../lib/json/json.ts'

/** Errors of longer bodies are not examined. */
const maxErrorBytes = 16 * 1024

/** Whether a status may be that of a prompt that is too long. */
export function mayBeTooLong(status: number): boolean {
  return status === 400 || status === 413 || status === 422
}

/**
 * Codes of prompts that are longer than the context window: OpenAI and Azure, llama.cpp; and 413 of
 * Anthropic.
 */
const codes: ReadonlySet<unknown> = new Set([
  'context_length_exceeded',
  'exceed_context_size_error',
  'request_too_large',
])

/**
 * Messages of providers without a code for it: Anthropic ("prompt is too long: 9 tokens > 8 maximum"), vLLM
 * and Mistral ("maximum context length"), Bedrock ("Input is too long for requested model"), Gemini ("input
 * token count (9) exceeds the maximum number of tokens"), Cohere ("too many tokens: ...").
 */
const message =
  /prompt is too long|(?:maximum|model'?s) context length|context (?:length|window|size) (?:is )?exceeded|exceeds? (?:the )?(?:available |maximum |model'?s )?context|input is too long|input token count .{0,40}exceeds|too large for model with \d+ maximum context|too many tokens:/i

/** Whether an error of a provider states that the prompt is too long for the model. */
export function isTooLong(body: Buffer): boolean {
  if (body.length > maxErrorBytes) return false
  const object = parseJsonObject(body.toString())
  if (object === undefined) return false
  const error = isJsonObject(object['error']) ? object['error'] : object
  return codes.has(error['type']) || statesTooLong(error['code'], messageOf(error, object))
}

/** Likewise, of an error that is read. */
export function statesTooLong(code: unknown, text: string): boolean {
  return codes.has(code) || message.test(text)
}

function messageOf(error: JsonObject, object: JsonObject): string {
  for (const text of [error['message'], object['error'], object['message'], object['detail']])
    if (typeof text === 'string') return text
  return ''
}
