import type { JsonPath, JsonSplice } from '../../../lib/json-splice.ts'
import { readJsonObject } from '../../../lib/json-text.ts'
import type { SseEvent } from '../../../net/sse.ts'
import type { LlmApi } from '../../../pipeline/llm-message.ts'
import type { ContentReader, StreamPiece } from '../content/content.ts'
import { CheckFailure } from '../guard.ts'

/** The texts of an event. Throws `CheckFailure` on one that could be read in two ways, or not at all. */
export function readEvent(
  { data }: SseEvent,
  reader: ContentReader,
  found: (piece: StreamPiece) => void,
): void {
  if (data.trim() === '[DONE]') return
  const json = readJsonObject(data)
  if (json.kind !== 'object') throw new CheckFailure('an event that cannot be read')
  reader.event(json.value, found)
}

const ends: ReadonlySet<string> = new Set([
  'message_stop',
  'response.completed',
  'response.incomplete',
  'response.failed',
])

/** Whether a client takes the stream for complete with this event. */
export function isEnd({ data, event }: SseEvent, api: LlmApi): boolean {
  return api === 'chat' || api === 'completions'
    ? data.trim() === '[DONE]'
    : event !== undefined && ends.has(event)
}

export function setJson(path: JsonPath, json: string): JsonSplice {
  return { kind: 'set', path, json }
}

export function setText(path: JsonPath, text: string): JsonSplice {
  return { kind: 'set', path, json: JSON.stringify(text) }
}
