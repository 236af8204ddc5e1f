import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { SseEvent } from '../../../../net/http/sse.ts'
import { choiceOf } from '../chat-chunk.ts'
import { createStreamBudget, fragmentsOf } from '../limits.ts'
import { stringOf } from '../messages-to-chat/reply.ts'
import { chunkStreamToMessages } from '../messages-to-chat/stream.ts'
import { objectOf } from '../stream-event.ts'
import { countsFromMessages } from '../token-counts.ts'
import type { StreamTranslator, TranslationContext } from '../translate.ts'
import { citationsOf, responseId, toCohereUsage } from './reply.ts'

/**
 * Translates the chunks of a streamed chat completion to events of `/v2/chat`. Blocks of messages have the
 * order of these events, so that the chunks become blocks first. The last event is that of the end, and
 * streams that end early have an error in it.
 */
export function chunkStreamToCohere(context: TranslationContext): StreamTranslator {
  const blocks = chunkStreamToMessages(context)
  const citations = createCitationCollector()
  const places = createPlaces()

  return {
    get state() {
      return blocks.state
    },
    event(event) {
      const chunk = objectOf(event)
      const events = blocks.event(event).flatMap(translate)
      if (chunk !== undefined && blocks.state === 'open') citations.read(chunk)
      return events
    },
    end: () => blocks.end().flatMap(translate),
  }

  function translate(block: SseEvent): SseEvent[] {
    const event = objectOf(block) ?? {}
    switch (event.type) {
      case 'message_start':
        return [startEvent(event.message, context)]
      case 'content_block_start':
        return isJsonObject(event.content_block) ? [startOf(event.content_block, event.index)] : []
      case 'content_block_delta':
        return isJsonObject(event.delta) ? deltaOf(event.delta, event.index) : []
      case 'content_block_stop':
        return endOf(event.index)
      case 'message_delta':
        return [...citations.events(places.text), endEvent(event)]
      case 'message_stop':
        return [{ data: '[DONE]' }]
      case 'error':
        return [failure(event.error)]
      default:
        return []
    }
  }

  function startOf({ type, id, name }: JsonObject, block: JsonValue | undefined): SseEvent {
    const { kind, index } = places.open(block, type)
    if (kind === 'tool') {
      const call = { id: id ?? '', type: 'function', function: { name: name ?? '', arguments: '' } }
      return toEvent('tool-call-start', { index, delta: { message: { tool_calls: call } } })
    }
    const content = kind === 'text' ? { type: 'text', text: '' } : { type: 'thinking', thinking: '' }
    return toEvent('content-start', { index, delta: { message: { content } } })
  }

  /** Citations are collected from the chunks, which have their places; thinking has no signature here. */
  function deltaOf(delta: JsonObject, block: JsonValue | undefined): SseEvent[] {
    const place = places.at(block)
    const { index } = place
    switch (delta.type) {
      case 'input_json_delta':
        place.hasArguments = true
        return [argumentsOf(index, delta.partial_json ?? '')]
      case 'text_delta':
        citations.addText(stringOf(delta.text))
        return [
          toEvent('content-delta', { index, delta: { message: { content: { text: delta.text ?? '' } } } }),
        ]
      case 'thinking_delta': {
        const content = { thinking: delta.thinking ?? '' }
        return [toEvent('content-delta', { index, delta: { message: { content } } })]
      }
      default:
        return []
    }
  }

  /** Clients parse the arguments as JSON, which some servers omit if they are empty. */
  function endOf(block: JsonValue | undefined): SseEvent[] {
    const { kind, index, hasArguments } = places.at(block)
    if (kind !== 'tool') return [toEvent('content-end', { index })]
    return [...(hasArguments ? [] : [argumentsOf(index, '{}')]), toEvent('tool-call-end', { index })]
  }
}

function argumentsOf(index: number, fragment: JsonValue): SseEvent {
  const call = { function: { arguments: fragment } }
  return toEvent('tool-call-delta', { index, delta: { message: { tool_calls: call } } })
}

type Place = {
  readonly kind: 'text' | 'thinking' | 'tool'
  readonly index: number
  hasArguments: boolean
}

const unknownPlace: Place = { kind: 'text', index: 0, hasArguments: true }

/** Numbers of blocks: contents and calls of tools are counted separately. */
function createPlaces() {
  const places = new Map<JsonValue | undefined, Place>()
  let contents = 0
  let calls = 0
  /** Number of the last text. */
  let text = 0
  return {
    get text() {
      return text
    },
    open(block: JsonValue | undefined, type: JsonValue | undefined): Place {
      const kind = type === 'tool_use' ? 'tool' : type === 'thinking' ? 'thinking' : 'text'
      const place: Place = { kind, index: kind === 'tool' ? calls++ : contents++, hasArguments: false }
      if (kind === 'text') text = place.index
      places.set(block, place)
      return place
    },
    at: (block: JsonValue | undefined): Place => places.get(block) ?? unknownPlace,
  }
}

/** Collects the citations of a stream, which are sent at its end, because they refer to the whole text. */
function createCitationCollector() {
  const budget = createStreamBudget()
  const annotations: JsonValue[] = []
  let text = ''
  return {
    addText(fragment: string): void {
      budget.addText(fragment.length)
      text += fragment
    },
    read(chunk: JsonObject): void {
      const delta = choiceOf(chunk)?.delta
      if (!isJsonObject(delta)) return
      for (const annotation of fragmentsOf(delta.annotations)) {
        budget.addItem()
        budget.addText(JSON.stringify(annotation).length)
        annotations.push(annotation)
      }
    },
    events: (index: number): SseEvent[] =>
      citationsOf(annotations, text, index).flatMap((citations, number) => [
        toEvent('citation-start', { index: number, delta: { message: { citations } } }),
        toEvent('citation-end', { index: number }),
      ]),
  }
}

function startEvent(message: JsonValue | undefined, { now }: TranslationContext): SseEvent {
  const id = responseId(isJsonObject(message) ? message.id : undefined, now())
  const empty = { role: 'assistant', content: [], tool_plan: '', tool_calls: [], citations: [] }
  return toEvent('message-start', { id, delta: { message: empty } })
}

const finishReasons: ReadonlyMap<JsonValue, string> = new Map([
  ['max_tokens', 'MAX_TOKENS'],
  ['tool_use', 'TOOL_CALL'],
  ['refusal', 'ERROR'],
])

function endEvent({ delta, usage }: JsonObject): SseEvent {
  const reason = isJsonObject(delta) ? delta.stop_reason : undefined
  return toEvent('message-end', {
    delta: {
      finish_reason: finishReasons.get(reason ?? null) ?? 'COMPLETE',
      usage: toCohereUsage(countsFromMessages(usage)),
    },
  })
}

function failure(error: JsonValue | undefined): SseEvent {
  const message = isJsonObject(error) ? stringOf(error.message) : ''
  return toEvent('message-end', { delta: { error: message, finish_reason: 'ERROR' } })
}

/** An event, whose type is both in the event line and in the data. */
function toEvent(type: string, fields: JsonObject): SseEvent {
  return { event: type, data: JSON.stringify({ type, ...fields }) }
}
