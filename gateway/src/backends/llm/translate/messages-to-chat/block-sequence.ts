import { GatewayError } from '../../../../lib/gateway-error.ts'
import type { JsonObject } from '../../../../lib/json/json.ts'
import type { SseEvent } from '../../../../net/http/sse.ts'
import { createNestingScan, type NestingScan } from '../exact-json.ts'
import type { StreamBudget } from '../limits.ts'
import { createObjectEvent } from '../stream-event.ts'
import { invalidResponse } from '../upstream-error.ts'

/** Type and head of a content block. */
export type BlockKind =
  | { kind: 'text' }
  | { kind: 'thinking' }
  | { kind: 'tool_use'; id: string; name: string }

/** One content block; `append` returns the resulting events. A text has fragments and citations. */
export type Block = { append(fragment: string | JsonObject): SseEvent[] }

/** Content blocks of a streamed message in sequence, although their fragments may arrive interleaved. */
export type BlockSequence = {
  /** Returns the last block if it is of this kind, else a new one. */
  text(kind: 'text' | 'thinking'): { block: Block; events: SseEvent[] }
  tool(id: string, name: string): { block: Block; events: SseEvent[] }
  /** Signs the last block if it is of thinking, else a new one. No text follows in this block. */
  sign(signature: string): SseEvent[]
  /** Writes buffered fragments and closes the last block. */
  close(): SseEvent[]
}

/** Maximum characters of buffered fragments. */
const maxWaiting = 8 * 1024 * 1024

type Fragment = string | JsonObject

type Entry = {
  content: BlockKind
  scan: NestingScan | undefined
  waiting: Fragment[]
  closed: boolean
  /** Written at the end of the block; empty without a signature. */
  signature: string
}

/**
 * Messages have one open block at a time, while chat may send fragments of several tool calls in any order.
 * The first unfinished block is written on arrival, and the others are buffered. A text is finished when
 * another block starts, a tool call when its JSON is complete.
 */
export function createBlockSequence(budget: Pick<StreamBudget, 'addItem'>): BlockSequence {
  const entries: Entry[] = []
  /** Index of the entry that is written on arrival; `entries.length` if all are closed. */
  let current = 0
  let started = false
  let waitingSize = 0

  return {
    text(kind) {
      const last = entries.at(-1)
      if (last?.content.kind === kind && last.signature === '')
        return { block: blockOf(last, entries.length - 1), events: [] }
      return add({ kind }, undefined)
    },
    tool: (id, name) => add({ kind: 'tool_use', id, name }, createNestingScan()),
    sign(signature) {
      const last = entries.at(-1)
      const isOpen = last?.content.kind === 'thinking' && last.signature === ''
      const events = isOpen ? [] : add({ kind: 'thinking' }, undefined).events
      const signed = entries.at(-1)
      if (signed !== undefined) signed.signature = signature
      return events
    },
    close: () => advance(() => true),
  }

  function add(content: BlockKind, scan: NestingScan | undefined): { block: Block; events: SseEvent[] } {
    budget.addItem()
    const entry: Entry = { content, scan, waiting: [], closed: false, signature: '' }
    const index = entries.push(entry) - 1
    return { block: blockOf(entry, index), events: advance(isFinished) }
  }

  function blockOf(entry: Entry, index: number): Block {
    return {
      append(fragment) {
        if (entry.closed) {
          if (typeof fragment !== 'string' || fragment.trim() === '') return []
          throw invalidResponse('a tool call goes on after its arguments were complete')
        }
        if (typeof fragment === 'string') entry.scan?.push(fragment)
        if (index === current) return [deltaEvent(index, entry.content, fragment), ...advance(isFinished)]
        waitingSize += sizeOf(fragment)
        if (waitingSize > maxWaiting) {
          throw new GatewayError(
            'upstream_too_large',
            `interleaved tool calls exceed ${maxWaiting} characters`,
          )
        }
        entry.waiting.push(fragment)
        return []
      },
    }
  }

  /** True if another block follows and this one is complete. */
  function isFinished(entry: Entry, index: number): boolean {
    return index < entries.length - 1 && (entry.scan === undefined || entry.scan.complete)
  }

  /** Opens the current block if necessary, closes it if `finished`, and continues with the next one. */
  function advance(finished: (entry: Entry, index: number) => boolean): SseEvent[] {
    const events: SseEvent[] = []
    for (let entry = entries[current]; entry !== undefined; entry = entries[current]) {
      if (!started) {
        started = true
        events.push(startEvent(current, entry.content))
        for (const fragment of entry.waiting) {
          waitingSize -= sizeOf(fragment)
          events.push(deltaEvent(current, entry.content, fragment))
        }
        entry.waiting = []
      }
      if (!finished(entry, current)) break
      entry.closed = true
      if (entry.signature !== '') events.push(signatureEvent(current, entry.signature))
      events.push(toEvent({ type: 'content_block_stop', index: current }))
      current += 1
      started = false
    }
    return events
  }
}

function sizeOf(fragment: Fragment): number {
  return typeof fragment === 'string' ? fragment.length : JSON.stringify(fragment).length
}

function startEvent(index: number, content: BlockKind): SseEvent {
  return toEvent({ type: 'content_block_start', index, content_block: emptyBlock(content) })
}

function emptyBlock(content: BlockKind): JsonObject {
  switch (content.kind) {
    case 'text':
      return { type: 'text', text: '' }
    case 'thinking':
      return { type: 'thinking', thinking: '', signature: '' }
    case 'tool_use':
      return { type: 'tool_use', id: content.id, name: content.name, input: {}, caller: { type: 'direct' } }
  }
}

function deltaEvent(index: number, content: BlockKind, fragment: Fragment): SseEvent {
  return toEvent({ type: 'content_block_delta', index, delta: toDelta(content, fragment) })
}

function signatureEvent(index: number, signature: string): SseEvent {
  return toEvent({ type: 'content_block_delta', index, delta: { type: 'signature_delta', signature } })
}

function toDelta(content: BlockKind, fragment: Fragment): JsonObject {
  if (typeof fragment !== 'string') return { type: 'citations_delta', citation: fragment }
  switch (content.kind) {
    case 'text':
      return { type: 'text_delta', text: fragment }
    case 'thinking':
      return { type: 'thinking_delta', thinking: fragment }
    case 'tool_use':
      return { type: 'input_json_delta', partial_json: fragment }
  }
}

/** An event of the messages API; its type is both in the event line and in the data. */
export function toEvent(data: JsonObject & { type: string }): SseEvent {
  return createObjectEvent(data.type, data)
}
