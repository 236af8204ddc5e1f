import type { JsonObject, JsonValue } from '../../../../lib/json/json.ts'
import { createStreamBudget } from '../limits.ts'
import { invalidResponse } from '../upstream-error.ts'
import { callItem, type FunctionCall, messageItem, reasoningItem, textPart } from './reply.ts'

/** Output items of a streamed response. Functions add the events of a fragment, and ignore empty ones. */
export type Output = {
  reasoning(fragment: string): void
  /** Signed thinking, of which clients see the text only. */
  signed(detail: JsonObject): void
  /** `logprobs` are the probabilities of the tokens of the fragment, of `logprobsLength` characters. */
  text(fragment: string, logprobs: readonly JsonValue[], logprobsLength: number): void
  refusal(fragment: string): void
  /** Citations of the text before them, in the form of responses. */
  annotations(added: readonly JsonObject[]): void
  /** Continues the call with an index in the chunks, or begins it. */
  call(index: number | undefined, fragment: FunctionCall): void
  /** Ends all items, and returns them. */
  close(): JsonObject[]
}

type Part = {
  readonly kind: 'text' | 'refusal'
  text: string
  readonly logprobs: JsonValue[]
  readonly annotations: JsonObject[]
}

/** An item with the texts so far. */
type Item =
  | { kind: 'reasoning'; id: string; text: string; details: JsonObject[] }
  | { kind: 'message'; id: string; parts: Part[] }
  | { kind: 'call'; id: string; callId: string; name: string; args: string }

type Reasoning = Extract<Item, { kind: 'reasoning' }>

/**
 * Creates the items of a response. Reasoning and messages end when another item begins. Calls of tools end
 * with the response, because their fragments may arrive interleaved.
 */
export function createOutput(suffix: string, add: (event: JsonObject) => void): Output {
  const items: Item[] = []
  const done: JsonObject[] = []
  /** Positions in `items` by index in the chunks. */
  const calls = new Map<number, number>()
  const budget = createStreamBudget()
  let lastCall = 0

  /** Ends the last item unless it is a call. */
  function endLast(): void {
    const at = items.length - 1
    const last = items[at]
    if (last === undefined || last.kind === 'call' || done[at] !== undefined) return
    if (last.kind === 'message') endPart(last, at, add)
    else endReasoning(last, at, add)
    done[at] = endItem(last, at, add)
  }

  function begin<I extends Item>(item: I): { item: I; at: number } {
    budget.addItem()
    endLast()
    const at = items.push(item) - 1
    add({ type: 'response.output_item.added', output_index: at, item: openItem(item) })
    return { item, at }
  }

  function openReasoning(): Reasoning {
    const last = items.at(-1)
    if (last?.kind === 'reasoning') return last
    return begin({ kind: 'reasoning', id: `rs_${suffix}_${items.length}`, text: '', details: [] }).item
  }

  function addToMessage(kind: Part['kind'], fragment: string, logprobs: readonly JsonValue[]): void {
    if (fragment === '') return
    budget.addText(fragment.length)
    const last = items.at(-1)
    const isOpen = last?.kind === 'message'
    const { item, at } = isOpen
      ? { item: last, at: items.length - 1 }
      : begin({ kind: 'message', id: `msg_${suffix}_${items.length}`, parts: [] })
    let part = item.parts.at(-1)
    if (part?.kind !== kind) {
      budget.addItem()
      endPart(item, at, add)
      part = { kind, text: '', logprobs: [], annotations: [] }
      item.parts.push(part)
      add({ type: 'response.content_part.added', ...placeOfPart(item, at), part: partOf(part) })
    }
    part.text += fragment
    for (const logprob of logprobs) part.logprobs.push(logprob)
    const place = placeOfPart(item, at)
    if (kind === 'text')
      add({ type: 'response.output_text.delta', ...place, delta: fragment, logprobs: [...logprobs] })
    else add({ type: 'response.refusal.delta', ...place, delta: fragment })
  }

  function callAt(index: number | undefined, { callId, name }: FunctionCall): number {
    lastCall = index ?? lastCall
    const known = calls.get(lastCall)
    const item = known === undefined ? undefined : items[known]
    // Some servers send index 0 with different ids.
    const isOther = item?.kind === 'call' && callId !== '' && name !== '' && callId !== item.callId
    if (known !== undefined && !isOther) return known
    if (name === '') throw invalidResponse('a tool call without a name')
    // Ids of calls may contain state of the provider, so that they remain as they are.
    budget.addText(callId.length)
    const id = `fc_${suffix}_${items.length}`
    const { at } = begin({
      kind: 'call',
      id,
      callId: callId || `call_${suffix}_${items.length}`,
      name,
      args: '',
    })
    calls.set(lastCall, at)
    return at
  }

  return {
    reasoning(fragment) {
      if (fragment === '') return
      budget.addText(fragment.length)
      const item = openReasoning()
      const place = { item_id: item.id, output_index: items.length - 1, content_index: 0 }
      const part = { type: 'reasoning_text', text: '' }
      if (item.text === '') add({ type: 'response.content_part.added', ...place, part })
      item.text += fragment
      add({ type: 'response.reasoning_text.delta', ...place, delta: fragment })
    },
    signed(detail) {
      budget.addItem()
      budget.addText(JSON.stringify(detail).length)
      openReasoning().details.push(detail)
    },
    text(fragment, logprobs, logprobsLength) {
      if (logprobs.length > 0) budget.addLogprobs(logprobsLength)
      addToMessage('text', fragment, logprobs)
    },
    refusal: (fragment) => addToMessage('refusal', fragment, []),
    annotations(added) {
      const at = items.length - 1
      const last = items[at]
      const part = last?.kind === 'message' ? last.parts.at(-1) : undefined
      if (last?.kind !== 'message' || part?.kind !== 'text') return
      for (const annotation of added) {
        budget.addItem()
        budget.addText(JSON.stringify(annotation).length)
        const place = { ...placeOfPart(last, at), annotation_index: part.annotations.length }
        part.annotations.push(annotation)
        add({ type: 'response.output_text.annotation.added', ...place, annotation })
      }
    },
    call(index, fragment) {
      const at = callAt(index, fragment)
      const item = items[at]
      if (item?.kind !== 'call' || fragment.args === '') return
      budget.addText(fragment.args.length)
      item.args += fragment.args
      const type = 'response.function_call_arguments.delta'
      add({ type, item_id: item.id, output_index: at, delta: fragment.args })
    },
    close() {
      endLast()
      for (const [at, item] of items.entries()) {
        if (item.kind !== 'call') continue
        // Clients parse the arguments as JSON.
        item.args ||= '{}'
        const type = 'response.function_call_arguments.done'
        add({ type, item_id: item.id, output_index: at, arguments: item.args })
        done[at] = endItem(item, at, add)
      }
      return done
    },
  }
}

type Message = Extract<Item, { kind: 'message' }>
type Add = (event: JsonObject) => void

/** The place of the last part of a message. */
function placeOfPart({ id, parts }: Message, at: number): JsonObject {
  return { item_id: id, output_index: at, content_index: parts.length - 1 }
}

/** Ends the last part of a message, if any. */
function endPart(message: Message, at: number, add: Add): void {
  const part = message.parts.at(-1)
  if (part === undefined) return
  const place = placeOfPart(message, at)
  const { kind, text, logprobs } = part
  if (kind === 'text') add({ type: 'response.output_text.done', ...place, text, logprobs })
  else add({ type: 'response.refusal.done', ...place, refusal: text })
  add({ type: 'response.content_part.done', ...place, part: partOf(part) })
}

function endReasoning({ id, text }: Reasoning, at: number, add: Add): void {
  if (text === '') return
  const place = { item_id: id, output_index: at, content_index: 0 }
  add({ type: 'response.reasoning_text.done', ...place, text })
  add({ type: 'response.content_part.done', ...place, part: { type: 'reasoning_text', text } })
}

function endItem(item: Item, at: number, add: Add): JsonObject {
  const complete = completeItem(item)
  add({ type: 'response.output_item.done', output_index: at, item: complete })
  return complete
}

function partOf({ kind, text, logprobs, annotations }: Part): JsonObject {
  if (kind === 'refusal') return { type: 'refusal', refusal: text }
  return { ...textPart(text), annotations: [...annotations], logprobs: [...logprobs] }
}

function completeItem(item: Item): JsonObject {
  if (item.kind === 'reasoning') return reasoningItem(item.id, item.text, item.details)
  if (item.kind === 'message') return messageItem(item.id, item.parts.map(partOf))
  return callItem(item.id, item)
}

function openItem(item: Item): JsonObject {
  const content = item.kind === 'call' ? undefined : { content: [] }
  return { ...completeItem(item), ...content, status: 'in_progress' }
}
