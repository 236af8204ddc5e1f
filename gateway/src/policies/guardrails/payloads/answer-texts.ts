import { createSseParser } from '../../../net/http/sse.ts'
import type { ContentReader } from '../content/content-reader.ts'
import { createReading } from '../content/reading.ts'
import type { GuardText } from '../guard.ts'
import { createEventReader } from '../stream/read-event.ts'

/** Texts of a streamed response, assembled up to a limit. */
export type AnswerTexts = {
  push(chunk: Uint8Array): void
  /** One text per choice, content block or output item. */
  contents(): GuardText[]
}

/** Larger events end the collection. */
const maxEventBytes = 256 * 1024
/** Choices or content blocks. */
const maxElements = 256

/**
 * Collects at most `maxCharacters` of a stream, then ignores the rest. An unreadable event ends the
 * collection, not the stream.
 */
export function collectAnswer(reader: ContentReader, maxCharacters: number): AnswerTexts {
  const read = createEventReader(reader, createReading('response'))
  const elements = new Map<number, string>()
  const state = { characters: 0, over: false }
  const parser = createSseParser({
    maxEventBytes,
    onEvent(event) {
      if (state.over) return
      try {
        read(event, ({ element, text, repeats }) => {
          if (repeats) return
          elements.set(element, (elements.get(element) ?? '') + text)
          state.characters += text.length
        })
      } catch {
        state.over = true
      }
      if (state.characters > maxCharacters || elements.size > maxElements) state.over = true
    },
    onError() {
      state.over = true
    },
  })
  return {
    push(chunk) {
      if (!state.over) parser.push(chunk)
    },
    contents: () =>
      [...elements]
        .sort(([one], [other]) => one - other)
        .map(([, content]) => ({ role: 'assistant', content })),
  }
}
