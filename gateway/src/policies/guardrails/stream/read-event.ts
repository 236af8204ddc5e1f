import { type JsonPath, type JsonSplice, locateJson } from '../../../lib/json/splice.ts'
import { readJsonObject } from '../../../lib/json/text.ts'
import type { SseEvent } from '../../../net/http/sse.ts'
import type { LlmApi } from '../../../pipeline/llm-message.ts'
import { findAmbiguousLlmName } from '../../../pipeline/llm-names.ts'
import type { ContentReader, StreamPiece } from '../content/content-reader.ts'
import type { Reading } from '../content/reading.ts'
import { CheckFailure } from '../guard.ts'

/** Reports the texts of an event. Throws `CheckFailure` if the event is ambiguous or unreadable. */
export type EventReader = (event: SseEvent, found: (piece: StreamPiece) => void) => void

/** Prefix and suffix of events that differ only in one text. */
type Template = { readonly before: string; readonly behind: string; readonly piece: StreamPiece }

/** Consecutive events without a match after which templates are disabled. */
const maxMisses = 16

/**
 * Creates a reader of the events of one stream. Most events equal the previous one except for the text; those
 * are read without JSON parsing if the text has no escapes.
 */
export function createEventReader(reader: ContentReader, reading: Reading): EventReader {
  const { findAmbiguousName = findAmbiguousLlmName } = reader
  let template: Template | undefined
  let misses = 0

  let hasUnknown = false
  const noting: Reading = {
    ...reading,
    reportUnknown(type) {
      hasUnknown = true
      reading.reportUnknown(type)
    },
  }

  return (event, found) => {
    const { data } = event
    const text = template && textIn(data, template)
    if (template && text !== undefined) {
      misses = 0
      found({ ...template.piece, text })
      return
    }
    if (data === '[DONE]' || data.trim() === '[DONE]') return
    const json = readJsonObject(data)
    if (json.kind !== 'object') throw new CheckFailure('an unreadable event')
    if (findAmbiguousName(json.value) !== undefined) {
      throw new CheckFailure('an event whose names differ only in case')
    }
    hasUnknown = false
    let only: StreamPiece | undefined
    let count = 0
    reader.event(
      json.value,
      (piece) => {
        only = piece
        count += 1
        found(piece)
      },
      noting,
    )
    if (misses > maxMisses) return
    misses += 1
    template = only !== undefined && count === 1 && !hasUnknown ? templateOf(data, only) : undefined
  }
}

function templateOf(data: string, piece: StreamPiece): Template | undefined {
  const isPlain = piece.logprobs === undefined && piece.isJson !== true
  if (piece.text === '' || piece.repeats || !isPlain) return undefined
  const place = locateJson(data, piece.path)
  if (place === undefined) return undefined
  return { before: data.slice(0, place.start + 1), behind: data.slice(place.end - 1), piece }
}

/** Returns the text of an event that matches the template; undefined if it has escapes or does not match. */
function textIn(data: string, { before, behind }: Template): string | undefined {
  const end = data.length - behind.length
  if (end < before.length) return undefined
  // Comparing slices is several times faster than `startsWith` and `endsWith`.
  if (data.slice(0, before.length) !== before || data.slice(end) !== behind) return undefined
  for (let index = before.length; index < end; index += 1) {
    const code = data.charCodeAt(index)
    if (code < 0x20 || code === 0x22 || code === 0x5c) return undefined
  }
  return data.slice(before.length, end)
}

const ends: ReadonlySet<string> = new Set([
  'message_stop',
  'metadata',
  'end',
  'response.completed',
  'response.incomplete',
  'response.failed',
])

/** Whether this event marks the stream as complete for clients. */
export function isEnd({ data, event }: SseEvent, api: LlmApi): boolean {
  if (api === 'generate_content') return /"(?:finishReason|blockReason)"\s*:\s*"/.test(data)
  if (api === 'cohere_chat') return isCohereEnd(data)
  if (api === 'transcriptions') return data.includes('"transcript.text.done"')
  return api === 'chat' || api === 'completions'
    ? data.trim() === '[DONE]'
    : event !== undefined && ends.has(event)
}

/** Citations repeat documents, which are free JSON with a `type` of their own. */
function isCohereEnd(data: string): boolean {
  if (!data.includes('"message-end"')) return false
  const json = readJsonObject(data)
  return json.kind === 'object' && json.value['type'] === 'message-end'
}

export function setJson(path: JsonPath, json: string): JsonSplice {
  return { kind: 'set', path, json }
}

export function setText(path: JsonPath, text: string): JsonSplice {
  return { kind: 'set', path, json: JSON.stringify(text) }
}
