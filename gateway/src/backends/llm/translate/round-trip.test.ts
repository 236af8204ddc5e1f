import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../lib/json/json.ts'
import type { SseEvent } from '../../../net/http/sse.ts'
import { chatToMessages } from './chat-to-messages/chat-to-messages.ts'
import { messagesToChat } from './messages-to-chat/messages-to-chat.ts'
import type { StreamTranslator, TranslationContext } from './translate.ts'

const context: TranslationContext = { requestModel: 'm', now: () => 1_700_000_000_000, includeUsage: true }

type Step = { kind: 'text'; text: string } | { kind: 'tool'; index: number; id?: string; fragment: string }
type ToolCall = { id: string; text: string }

/** Text and tool calls, the fragments of different calls in any order, each call's own in theirs. */
const answer = fc
  .record({
    texts: fc.array(fc.string({ minLength: 1 }), { maxLength: 4 }),
    calls: fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { maxLength: 4 }),
    order: fc.array(fc.nat(), { minLength: 60, maxLength: 60 }),
    cut: fc.integer({ min: 1, max: 5 }),
  })
  .map(({ texts, calls, order, cut }) => {
    const queues: Step[][] = [texts.map((text) => ({ kind: 'text', text }))]
    for (const [index, input] of calls.entries()) queues.push(fragmentsOf(index, JSON.stringify(input), cut))
    const steps: Step[] = []
    for (let at = 0; queues.some((queue) => queue.length > 0); at += 1) {
      const left = queues.filter((queue) => queue.length > 0)
      const step = left[(order[at % order.length] ?? 0) % left.length]?.shift()
      if (step !== undefined) steps.push(step)
    }
    return {
      steps,
      text: texts.join(''),
      calls: calls.map((input, index) => ({ id: `call_${index}`, text: JSON.stringify(input) })),
    }
  })

function fragmentsOf(index: number, text: string, cut: number): Step[] {
  const steps: Step[] = [{ kind: 'tool', index, id: `call_${index}`, fragment: '' }]
  for (let at = 0; at < text.length; at += cut)
    steps.push({ kind: 'tool', index, fragment: text.slice(at, at + cut) })
  return steps
}

function toChunk(delta: JsonObject, finishReason: string | null = null): SseEvent {
  return {
    data: JSON.stringify({ id: 'chatcmpl-1', choices: [{ index: 0, delta, finish_reason: finishReason }] }),
  }
}

function chunksOf(steps: Step[]): SseEvent[] {
  const chunks = steps.map((step) => {
    if (step.kind === 'text') return toChunk({ content: step.text })
    const { index, id, fragment } = step
    const made = id === undefined ? { arguments: fragment } : { name: 'f', arguments: fragment }
    return toChunk({ tool_calls: [{ index, ...(id === undefined ? undefined : { id }), function: made }] })
  })
  return [toChunk({ role: 'assistant' }), ...chunks, toChunk({}, 'stop'), { data: '[DONE]' }]
}

function run(stream: StreamTranslator, events: SseEvent[]): SseEvent[] {
  return [...events.flatMap((event) => stream.event(event)), ...stream.end()]
}

/** Reads message events as a client does, and fails on a block that opens before the last one is closed. */
function readMessage(events: SseEvent[]): { text: string; calls: ToolCall[] } {
  let text = ''
  const calls: ToolCall[] = []
  let open: number | undefined
  let next = 0
  for (const { data } of events) {
    const event = JSON.parse(data)
    if (event.type === 'content_block_start') {
      expect(open).toBeUndefined()
      expect(event.index).toBe(next)
      open = event.index
      next += 1
      if (event.content_block.type === 'tool_use') calls.push({ id: event.content_block.id, text: '' })
    } else if (event.type === 'content_block_delta') {
      expect(event.index).toBe(open)
      const last = calls.at(-1)
      if (event.delta.type === 'text_delta') text += event.delta.text
      else if (last !== undefined) last.text += event.delta.partial_json
    } else if (event.type === 'content_block_stop') {
      expect(event.index).toBe(open)
      open = undefined
    }
  }
  expect(open).toBeUndefined()
  return { text, calls }
}

function readChunks(events: SseEvent[]): { text: string; calls: ToolCall[] } {
  let text = ''
  const calls: ToolCall[] = []
  for (const { data } of events) {
    const delta = data === '[DONE]' ? undefined : JSON.parse(data).choices[0]?.delta
    text += delta?.content ?? ''
    for (const call of delta?.tool_calls ?? []) {
      calls[call.index] ??= { id: call.id, text: '' }
      const known = calls[call.index]
      if (known !== undefined) known.text += call.function.arguments
    }
  }
  return { text, calls }
}

const byId = (calls: ToolCall[]) => calls.toSorted((a, b) => a.id.localeCompare(b.id))

describe('streams', () => {
  it('become well-formed messages with all text and arguments for any interleaving', () => {
    fc.assert(
      fc.property(answer, ({ steps, text, calls }) => {
        const message = readMessage(run(messagesToChat.stream(context), chunksOf(steps)))
        expect(message.text).toBe(text)
        expect(byId(message.calls)).toEqual(calls)
      }),
    )
  })

  it('round-trip through messages', () => {
    fc.assert(
      fc.property(answer, ({ steps, text, calls }) => {
        const message = run(messagesToChat.stream(context), chunksOf(steps))
        const back = readChunks(run(chatToMessages.stream(context), message))
        expect(back.text).toBe(text)
        expect(byId(back.calls)).toEqual(calls)
      }),
    )
  })
})

describe('requests', () => {
  const id = fc.stringMatching(/^[a-z]{1,8}$/)
  const text = fc.string({ minLength: 1 })
  const args = fc
    .dictionary(fc.string(), fc.jsonValue())
    .map((value) => JSON.stringify(JSON.parse(JSON.stringify(value))))
  const turn = fc.oneof(
    fc.record({ role: fc.constant('user'), content: text }),
    fc.record({ role: fc.constant('assistant'), content: text }),
    fc.tuple(id, text, args, text).map(([callId, content, argumentsText, result]) => [
      {
        role: 'assistant',
        content,
        tool_calls: [{ id: callId, type: 'function', function: { name: 'f', arguments: argumentsText } }],
      },
      { role: 'tool', tool_call_id: callId, content: result },
    ]),
    fc.record({
      role: fc.constant('user'),
      content: fc.tuple(
        text.map((value) => ({ type: 'text', text: value })),
        fc.constant({ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }),
      ),
    }),
  )
  const tool = id.map((name) => ({
    type: 'function',
    function: { name, parameters: { type: 'object', properties: {} }, strict: true },
  }))
  const request = fc
    .record({
      turns: fc.array(turn),
      system: text,
      tools: fc.array(tool, { minLength: 1 }),
      tool_choice: fc.constantFrom('auto', 'none', 'required'),
      temperature: fc.double({ min: 0, max: 1, noNaN: true }),
      stop: fc.array(fc.string({ minLength: 1 }), { minLength: 1 }),
      max_tokens: fc.nat(),
    })
    .map(({ turns, system, ...rest }) => ({
      model: 'm',
      messages: [{ role: 'system', content: system }, ...turns.flat(), { role: 'user', content: 'Go on' }],
      ...rest,
    }))

  it('in chat format round-trip through messages', () => {
    fc.assert(
      fc.property(request, (body) => {
        const there = chatToMessages.request(JSON.parse(JSON.stringify(body)))
        expect(there.kind).toBe('body')
        if (there.kind !== 'body') return
        const back = messagesToChat.request(there.body)
        expect(JSON.parse(JSON.stringify(back))).toEqual({
          kind: 'body',
          body: JSON.parse(JSON.stringify(body)),
        })
      }),
    )
  })
})
