import { createSseParser, type SseEvent } from '../../../net/http/sse.ts'
import type { Content } from '../view.ts'
import { type CollectedTexts, collectTexts } from './collected-texts.ts'
import type { GuardedStream } from './guarded-stream.ts'

/** Parser of a whole stream that collects its texts. */
export type TextCollector = Pick<CollectedTexts, 'rewriteTo'> & {
  push(chunk: Uint8Array): void
  /** Discards the texts: `contents` returns undefined from now on. */
  invalidate(): void
  /** Texts of the events so far, or undefined if an event is not readable. */
  contents(): Content[] | undefined
}

/** Creates a collector. `onEvent` receives every event, including those after an unreadable one. */
export function createTextCollector(
  { reader, reading, maxBufferedBytes }: GuardedStream,
  onEvent?: (event: SseEvent) => void,
): TextCollector {
  const texts = collectTexts(reader, reading)
  let isReadable = true
  const parser = createSseParser({
    maxEventBytes: maxBufferedBytes,
    onEvent(event) {
      onEvent?.(event)
      if (!isReadable) return
      try {
        texts.add(event)
      } catch {
        isReadable = false
      }
    },
    onError() {
      isReadable = false
    },
  })
  return {
    push(chunk) {
      if (isReadable || onEvent !== undefined) parser.push(chunk)
    },
    invalidate() {
      isReadable = false
    },
    contents: () => (isReadable ? texts.contents() : undefined),
    rewriteTo: texts.rewriteTo,
  }
}
