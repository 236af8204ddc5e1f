import type { JsonValue } from '../../../lib/json/json.ts'

const finishReasons = new Map<string, string>([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  // The upstream paused a long turn of its own tools. `length` is chat's only reason for incomplete
  // responses.
  ['pause_turn', 'length'],
  ['tool_use', 'tool_calls'],
  ['refusal', 'content_filter'],
])

/** `finish_reason` of a chat completion for a message's `stop_reason`; `stop` for unknown reasons. */
export function toFinishReason(stopReason: JsonValue | undefined): string {
  return (typeof stopReason === 'string' ? finishReasons.get(stopReason) : undefined) ?? 'stop'
}

/** Properties of the response that also determine the `stop_reason`. */
export type Outcome = { calledTools: boolean; refused: boolean }

/**
 * `stop_reason` of a message for a `finish_reason`. Chat does not report the matched stop sequence, so it
 * becomes `end_turn`. Chat reports `stop` for a tool call demanded by `tool_choice`.
 */
export function toStopReason(finishReason: JsonValue | undefined, { calledTools, refused }: Outcome): string {
  if (finishReason === 'length') return 'max_tokens'
  if (finishReason === 'content_filter' || refused) return 'refusal'
  return calledTools ? 'tool_use' : 'end_turn'
}
