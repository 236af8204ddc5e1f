import { isJsonObject, type JsonObject } from '../../../../lib/json/json.ts'
import { indexOf, type StreamBudget } from '../limits.ts'
import { stringOf } from '../messages-to-chat/reply.ts'
import type { TranslationContext } from '../translate.ts'
import { invalidResponse } from '../upstream-error.ts'
import { type Call, createCalls } from './calls.ts'
import { reasoningDetail } from './encrypted-reasoning.ts'
import { textsOf } from './reply.ts'
import { createMessageText, createReasoningText, type Delta, partsOf, refusalDelta } from './texts.ts'

/** Content of a streamed response as deltas of chat. */
export type Deltas = {
  /** Returns the deltas of an event; none for events without content. */
  read(event: JsonObject): Delta[]
  readonly hasCalls: boolean
}

/** An item that is not complete, without its content. */
type Item = { readonly kind: 'call'; readonly call: Call } | { readonly kind: 'text'; wrote: boolean }

/** With `signedThinking`, the translation that follows separates items of reasoning. */
export function createDeltas(
  budget: Pick<StreamBudget, 'addItem'>,
  { signedThinking = false }: Pick<TranslationContext, 'signedThinking'>,
): Deltas {
  /** By position in the output. Some servers omit it; their items come one after the other. */
  const items = new Map<number, Item>()
  let last = -1
  const calls = createCalls()
  const texts = createMessageText()
  const reasoning = createReasoningText(signedThinking)

  function itemAt({ output_index: index }: JsonObject): Item | undefined {
    return items.get(indexOf(index) ?? last)
  }

  function begin({ output_index: index, item }: JsonObject): Delta[] {
    if (!isJsonObject(item)) throw invalidResponse('an output_item.added without an item')
    last = indexOf(index) ?? last + 1
    switch (item.type) {
      case 'function_call':
      case 'custom_tool_call': {
        const { call, delta } = calls.begin(item)
        addItem({ kind: 'call', call })
        return [delta]
      }
      case 'message':
        texts.beginMessage()
        addItem({ kind: 'text', wrote: false })
        return []
      case 'reasoning':
        reasoning.beginItem()
        addItem({ kind: 'text', wrote: false })
        return []
      default:
        return []
    }
  }

  function addItem(item: Item, index = last): void {
    budget.addItem()
    items.set(index, item)
  }

  /** Adds what the events of the item lack: some servers send short items as a whole. */
  function end(event: JsonObject): Delta[] {
    const { item } = event
    if (!isJsonObject(item)) throw invalidResponse('an output_item.done without an item')
    const deltas = itemAt(event) === undefined ? begin(event) : []
    const begun = itemAt(event)
    items.delete(indexOf(event.output_index) ?? last)
    if (begun === undefined) return deltas
    if (begun.kind === 'call') return [...deltas, ...begun.call.rest(item)]
    const whole = begun.wrote ? deltas : deltas.concat(wholeItem(item))
    const detail = reasoningDetail(item)
    return detail === undefined ? whole : [...whole, { fields: { reasoning_details: [detail] } }]
  }

  function wholeItem(item: JsonObject): Delta[] {
    if (item.type === 'message') return partsOf(item).flatMap((part) => texts.part(part))
    return [...textsOf(item.summary), ...textsOf(item.content)].flatMap((text) => {
      reasoning.beginPart()
      return reasoning.fragment(text)
    })
  }

  /** Some servers do not announce the only item. */
  function mark(event: JsonObject): void {
    const item = itemAt(event)
    if (item?.kind === 'text') item.wrote = true
    else if (item === undefined) addItem({ kind: 'text', wrote: true }, indexOf(event.output_index))
  }

  function input(event: JsonObject): Delta[] {
    const item = itemAt(event)
    // Input of tools of the provider, whose items are not forwarded.
    return item?.kind === 'call' ? item.call.fragment(stringOf(event.delta)) : []
  }

  return {
    get hasCalls() {
      return calls.count > 0
    },
    read(event) {
      switch (event.type) {
        case 'response.output_item.added':
          return begin(event)
        case 'response.output_item.done':
          return end(event)
        case 'response.content_part.added':
          texts.beginPart()
          return []
        case 'response.output_text.delta':
          mark(event)
          return texts.fragment(stringOf(event.delta), event.logprobs)
        case 'response.refusal.delta':
          mark(event)
          return refusalDelta(stringOf(event.delta))
        case 'response.output_text.annotation.added':
          return texts.annotation(event.annotation)
        case 'response.reasoning_summary_part.added':
          reasoning.beginPart()
          return []
        case 'response.reasoning_summary_text.delta':
        case 'response.reasoning_text.delta':
          mark(event)
          return reasoning.fragment(stringOf(event.delta))
        case 'response.function_call_arguments.delta':
        case 'response.custom_tool_call_input.delta':
          return input(event)
        default:
          // Ends of parts repeat their content; other events report progress and tools of the provider.
          return []
      }
    },
  }
}
