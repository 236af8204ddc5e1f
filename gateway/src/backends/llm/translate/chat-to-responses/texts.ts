import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { stringOf } from '../messages-to-chat/reply.ts'
import { betweenTexts, toAnnotation, toLogprobs } from './reply.ts'

/** Fields of the `delta` of a chunk, and the probabilities of its tokens. */
export type Delta = { readonly fields: JsonObject; readonly logprobs?: JsonValue }

/** Text of all messages of a streamed response as deltas of chat, of which only lengths are retained. */
export type MessageText = {
  /** Separates the text of a message from that of an earlier one. */
  beginMessage(): void
  /** Begins a part, to whose text positions of annotations refer. */
  beginPart(): void
  fragment(text: string, logprobs: JsonValue | undefined): Delta[]
  annotation(value: JsonValue | undefined): Delta[]
  /** Deltas of a whole part. */
  part(part: JsonObject): Delta[]
}

export function createMessageText(): MessageText {
  let length = 0
  let separator = ''
  let partStart = 0

  const texts: MessageText = {
    beginMessage() {
      separator = length === 0 ? '' : betweenTexts
    },
    beginPart() {
      partStart = length + separator.length
    },
    fragment(text, given) {
      const logprobs = toLogprobs(given)
      if (text === '' && logprobs.length === 0) return []
      const content = separator + text
      separator = ''
      length += content.length
      const fields = { content }
      return [logprobs.length === 0 ? { fields } : { fields, logprobs: { content: logprobs, refusal: null } }]
    },
    annotation(value) {
      const annotations = toAnnotation(value, partStart)
      return annotations.length === 0 ? [] : [{ fields: { annotations } }]
    },
    part(part) {
      if (part.type === 'refusal') return refusalDelta(stringOf(part.refusal))
      texts.beginPart()
      const annotations = Array.isArray(part.annotations) ? part.annotations : []
      return [
        ...texts.fragment(stringOf(part.text), part.logprobs),
        ...annotations.flatMap((each) => texts.annotation(each)),
      ]
    },
  }
  return texts
}

export function refusalDelta(fragment: string): Delta[] {
  return fragment === '' ? [] : [{ fields: { refusal: fragment } }]
}

/** Reasoning of a streamed response as deltas of chat. */
export type ReasoningText = {
  beginItem(): void
  /** Separates a summary from an earlier one. */
  beginPart(): void
  fragment(text: string): Delta[]
}

/** Items are one text unless they are separate. */
export function createReasoningText(areSeparate: boolean): ReasoningText {
  let hasText = false
  let separator = ''
  const beginPart = () => {
    separator = hasText ? betweenTexts : ''
  }
  return {
    beginItem() {
      if (areSeparate) hasText = false
      beginPart()
    },
    beginPart,
    fragment(text) {
      if (text === '') return []
      const fields = { reasoning_content: separator + text }
      separator = ''
      hasText = true
      return [{ fields }]
    },
  }
}

/** The parts of a message. */
export function partsOf({ content }: JsonObject): JsonObject[] {
  return Array.isArray(content) ? content.filter(isJsonObject) : []
}
