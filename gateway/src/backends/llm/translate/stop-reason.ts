import type { JsonValue } from '../../../lib/json/json.ts'

const finishReasons = new Map<string, string>([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  // The upstream paused a long turn of its own tools: unfinished, and `length` is chat's only word for that.
  ['pause_turn', 'length'],
  ['tool_use', 'tool_calls'],
  ['refusal', 'content_filter'],
])

/** `finish_reason` of a chat completion for a message's `stop_reason`; `stop` for reasons that are not known. */
export function toFinishReason(stopReason: JsonValue | undefined): string {
  return (typeof stopReason === 'string' ? finishReasons.get(stopReason) : undefined) ?? 'stop'
}

/** What else decides the `stop_reason`. */
export type Outcome = { calledTools: boolean; refused: boolean }

/**
 * `stop_reason` of a message for a `finish_reason`. Chat does not say which stop sequence ended a text, so that reads
 * as `end_turn`; and it reports `stop` for a tool call that `tool_choice` forced.
 */
export function toStopReason(finishReason: JsonValue | undefined, { calledTools, refused }: Outcome): string {
  if (finishReason === 'length') return 'max_tokens'
  if (finishReason === 'content_filter' || refused) return 'refusal'
  return calledTools ? 'tool_use' : 'end_turn'
}
