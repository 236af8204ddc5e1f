import { type JsonSplice, spliceJson } from '../../../lib/json/splice.ts'
import type { SseEvent } from '../../../net/http/sse.ts'
import type { ContentReader } from '../content/content-reader.ts'
import { createReading, type Reading } from '../content/reading.ts'
import { createRewriter, writeBack } from '../content/text-change.ts'
import { CheckFailure } from '../guard.ts'
import type { Content } from '../run.ts'
import { createEventReader, setJson, setText } from './read-event.ts'

/** The texts of a whole stream, put together from its events. */
export type CollectedTexts = {
  /** Throws `CheckFailure` on an event that cannot be read. */
  add(event: SseEvent): void
  /** What guards are shown: one text for each choice, content block or output item, as of an answer that is not streamed. */
  contents(): Content[]
  /** Changes the events, which have to come in the same order once more, so that their texts become `contents`. */
  rewriteTo(contents: readonly string[]): (event: SseEvent) => SseEvent
}

type Part = { text: string }
type Element = { readonly number: number; readonly parts: Map<number, Part> }

export function collectTexts(reader: ContentReader, reading: Reading): CollectedTexts {
  const read = createEventReader(reader, reading)
  const elements = new Map<number, Element>()
  /** Whole texts that are none of those the events added up to: they are shown as texts of their own. */
  const others = new Set<string>()

  function partOf(element: number, part: number): Part {
    const known = elements.get(element) ?? { number: element, parts: new Map() }
    elements.set(element, known)
    const existing = known.parts.get(part) ?? { text: '' }
    known.parts.set(part, existing)
    return existing
  }

  function inOrder(): Element[] {
    return [...elements.values()].sort((one, other) => one.number - other.number)
  }

  return {
    add(event) {
      read(event, (piece) => {
        const part = partOf(piece.element, piece.part)
        if (!piece.repeats) part.text += piece.text
        else if (piece.text !== '' && piece.text !== part.text) others.add(piece.text)
      })
    },
    contents() {
      const shown = inOrder().map((element): Content => {
        const texts = textsOf(element)
        return {
          role: 'assistant',
          content: texts.join(reader.separator),
          fixed: texts.every((text) => text === ''),
        }
      })
      for (const text of others) shown.push({ role: 'assistant', content: text, fixed: false })
      return shown
    },
    rewriteTo(contents) {
      const pieces = new Map<Part, (piece: string) => string>()
      const wholes = new Map<Part, string>()
      const changed = new Set<number>()
      const ordered = inOrder()
      for (const [index, element] of ordered.entries()) {
        const parts = partsOf(element)
        const texts = parts.map(({ text }) => text)
        const content = contents[index] ?? texts.join(reader.separator)
        if (content !== texts.join(reader.separator)) changed.add(element.number)
        const written = writeBack(texts, reader.separator, content)
        if (written === undefined) throw new CheckFailure('text where there is none')
        for (const [position, part] of parts.entries()) {
          const after = written[position] ?? ''
          wholes.set(part, after)
          pieces.set(part, createRewriter(part.text, after))
        }
      }
      const othersAfter = new Map(
        [...others].map((text, index) => [text, contents[ordered.length + index] ?? text]),
      )
      const readAgain = createEventReader(reader, createReading(reading.phase))
      return (event) => {
        const splices: JsonSplice[] = []
        readAgain(event, ({ element, part: number, text, path, repeats, logprobs: echo }) => {
          if (echo !== undefined && changed.has(element)) splices.push(setJson(echo, reader.emptyLogprobs))
          if (text === '') return
          const part = partOf(element, number)
          const after = repeats
            ? text === part.text
              ? wholes.get(part)
              : othersAfter.get(text)
            : pieces.get(part)?.(text)
          if (after === undefined) throw new CheckFailure('a text that was not checked')
          if (after !== text) splices.push(setText(path, after))
        })
        return splices.length === 0 ? event : { ...event, data: spliceJson(event.data, splices) }
      }
    },
  }
}

function partsOf({ parts }: Element): Part[] {
  return [...parts].sort(([one], [other]) => one - other).map(([, part]) => part)
}

function textsOf(element: Element): string[] {
  return partsOf(element).map(({ text }) => text)
}
