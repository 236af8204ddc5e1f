import type { JsonObject } from '../../../../lib/json/json.ts'
import type { EchoReply } from './echo-reply.ts'
import {
  countTokens,
  created,
  dataEvent,
  doneEvent,
  idOf,
  includesUsage,
  modelOf,
  splitText,
  systemFingerprint,
  truncateText,
  usageOf,
} from './text.ts'

/** https://platform.openai.com/docs/api-reference/completions */
export function echoCompletion(request: JsonObject): EchoReply {
  const { prompt, max_tokens: maxTokens, stream } = request
  const first = Array.isArray(prompt) ? prompt[0] : prompt
  const { text, truncated } = truncateText(typeof first === 'string' ? first : '', maxTokens)
  const finish = truncated ? 'length' : 'stop'
  const usage = usageOf(countTokens(request, text))
  const head = {
    id: idOf('cmpl-', request),
    object: 'text_completion',
    created,
    model: modelOf(request),
    system_fingerprint: systemFingerprint,
  }
  const choice = (piece: string, reason: string | null) => ({
    choices: [{ text: piece, index: 0, logprobs: null, finish_reason: reason }],
  })
  if (stream !== true) return { kind: 'whole', body: { ...head, ...choice(text, finish), usage } }
  const events = splitText(text).map((piece) => dataEvent({ ...head, ...choice(piece, null) }))
  events.push(dataEvent({ ...head, ...choice('', finish) }))
  if (includesUsage(request)) events.push(dataEvent({ ...head, choices: [], usage }))
  events.push(doneEvent)
  return { kind: 'stream', events }
}
