import { type JsonSplice, spliceJson } from '../../../lib/json/splice.ts'
import type { SseEvent } from '../../../net/http/sse.ts'
import type { ContentReader, StreamPiece } from '../content/content-reader.ts'
import { createReading, type Reading } from '../content/reading.ts'
import type { ContentScope } from '../content/scopes/content-scope.ts'
import { createRewriter, writeBack } from '../content/text-change.ts'
import { CheckFailure } from '../guard.ts'
import type { Content } from '../view.ts'
import { createEventReader, setJson, setText } from './read-event.ts'

/** Texts of a whole stream, assembled from its events. */
export type CollectedTexts = {
  /** Throws `CheckFailure` on an unreadable event. */
  add(event: SseEvent): void
  /** Returns one text per choice, content block or output item, as in a response without streaming. */
  contents(): Content[]
  /**
   * Returns a rewriter of the events, to be called in the same order, that replaces their texts with
   * `contents`.
   */
  rewriteTo(contents: readonly string[]): (event: SseEvent) => SseEvent
}

type Part = { text: string }
type Element = {
  readonly number: number
  readonly parts: Map<number, Part>
  scope: ContentScope | undefined
  isJson: boolean | undefined
}
type Other = { readonly text: string } & Pick<Element, 'scope' | 'isJson'>

export function collectTexts(reader: ContentReader, reading: Reading): CollectedTexts {
  const read = createEventReader(reader, reading)
  const elements = new Map<number, Element>()
  /** Repeated texts that differ from the assembled ones, passed to guards as separate texts. */
  const others = new Map<string, Other>()

  function partOf(element: number, part: number): Part {
    const known = elements.get(element) ?? {
      number: element,
      parts: new Map(),
      scope: undefined,
      isJson: undefined,
    }
    elements.set(element, known)
    const existing = known.parts.get(part) ?? { text: '' }
    known.parts.set(part, existing)
    return existing
  }

  function scopeElement(number: number, scope: ContentScope): void {
    const element = elements.get(number)
    if (element !== undefined) element.scope = scope
  }

  /** Scope for guards; elements without a named one are messages. */
  function placeOf({ scope = 'messages', isJson }: Pick<Element, 'scope' | 'isJson'>) {
    return reading.scopes === undefined ? {} : { scope, isJson }
  }

  function inOrder(): Element[] {
    return [...elements.values()].sort((one, other) => one.number - other.number)
  }

  return {
    add(event) {
      read(event, (piece) => {
        const { text, scope, isJson } = piece
        const part = partOf(piece.element, piece.part)
        if (scope !== undefined) scopeElement(piece.element, scope)
        if (!piece.repeats) part.text += text
        else if (text !== '' && text !== part.text) others.set(keyOf(piece), { text, scope, isJson })
      })
    },
    contents() {
      const shown = inOrder().map((element): Content => {
        const texts = textsOf(element)
        return {
          role: 'assistant',
          content: texts.join(reader.separator),
          fixed: texts.every((text) => text === ''),
          ...placeOf(element),
        }
      })
      for (const other of others.values())
        shown.push({ role: 'assistant', content: other.text, fixed: false, ...placeOf(other) })
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
        if (written === undefined) throw new CheckFailure('text for an element without text')
        for (const [position, part] of parts.entries()) {
          const after = written[position] ?? ''
          wholes.set(part, after)
          pieces.set(part, createRewriter(part.text, after))
        }
      }
      const othersAfter = new Map(
        [...others].map(([key, { text }], index) => [key, contents[ordered.length + index] ?? text]),
      )
      const readAgain = createEventReader(reader, createReading(reading.phase, reading.scopes))
      return (event) => {
        const splices: JsonSplice[] = []
        readAgain(event, (piece) => {
          const { element, part: number, text, path, repeats, logprobs: echo, isJson } = piece
          if (echo !== undefined && changed.has(element)) splices.push(setJson(echo, reader.emptyLogprobs))
          if (text === '') return
          const part = partOf(element, number)
          const after = repeats
            ? text === part.text
              ? wholes.get(part)
              : othersAfter.get(keyOf(piece))
            : pieces.get(part)?.(text)
          if (after === undefined) throw new CheckFailure('an unchecked text')
          if (after !== text) splices.push(isJson === true ? setJson(path, after) : setText(path, after))
        })
        return splices.length === 0 ? event : { ...event, data: spliceJson(event.data, splices) }
      }
    },
  }
}

/** Equal texts of one scope are one. */
function keyOf({ scope, text, isJson }: Pick<StreamPiece, 'scope' | 'text' | 'isJson'>): string {
  return `${scope ?? ''} ${isJson ?? false} ${text}`
}

function partsOf({ parts }: Element): Part[] {
  return [...parts].sort(([one], [other]) => one - other).map(([, part]) => part)
}

function textsOf(element: Element): string[] {
  return partsOf(element).map(({ text }) => text)
}
