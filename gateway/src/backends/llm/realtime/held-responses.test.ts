import { describe, expect, it } from 'vitest'
import { createHeldResponses } from './held-responses.ts'

const bytesOf = (event: object) => Buffer.from(JSON.stringify(event))

function heldWith(events: Record<string, unknown>[], maxBytes = 10_000) {
  const held = createHeldResponses(maxBytes)
  held.start('r1')
  const fits = events.map((event) => held.add(event as never, bytesOf(event)))
  return { held, fits }
}

const delta = (text: string, more: object = {}) => ({
  type: 'response.output_text.delta',
  response_id: 'r1',
  item_id: 'i1',
  delta: text,
  ...more,
})

describe('withheld responses', () => {
  it('leave in order after their end', () => {
    const events = [delta('a'), { type: 'conversation.item.added', item: { id: 'i1' } }, delta('b')]
    const { held } = heldWith(events)
    expect(held.isHolding).toBe(true)
    expect(held.finish('r1', false).map(String)).toEqual(events.map((event) => JSON.stringify(event)))
    expect(held.isHolding).toBe(false)
    expect(held.finish('r1', false)).toEqual([])
  })

  it('are dropped with their items if they are rejected, others are not', () => {
    const other = { type: 'response.output_text.delta', response_id: 'r2', item_id: 'i2', delta: 'x' }
    const item = { type: 'conversation.item.done', item: { id: 'i1', content: [{ text: 'a' }] } }
    const { held } = heldWith([delta('a'), item])
    held.start('r2')
    held.add(other, bytesOf(other))
    expect(held.finish('r1', true)).toEqual([])
    expect(held.finish('r2', false).map(String)).toEqual([JSON.stringify(other)])
  })

  it('have the texts of their events besides those of their output', () => {
    const { held } = heldWith([
      delta('one '),
      delta('two'),
      { type: 'response.output_text.done', response_id: 'r1', item_id: 'i1', text: 'one two' },
      delta('hidden', { item_id: 'i2' }),
      { type: 'response.audio_transcript.delta', response_id: 'r1', item_id: 'i3', delta: 'spoken' },
      { type: 'response.function_call_arguments.delta', response_id: 'r1', item_id: 'i4', delta: '{}' },
    ])
    const content = [
      { type: 'output_text', text: 'one two' },
      { type: 'audio', transcript: 'spoken' },
    ]
    const output = [{ id: 'i1', type: 'message', content }]
    const texts = held.itemsOf({ id: 'r1', output }).slice(1)
    const message = (text: string) => ({
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text }],
    })
    expect(texts).toEqual([
      message('hidden'),
      message('spoken'),
      { type: 'function_call', name: '', call_id: '', arguments: '{}' },
    ])
  })

  it('are limited in size', () => {
    const { fits } = heldWith([delta('a'), delta('b'.repeat(500))], 400)
    expect(fits).toEqual([true, false])
  })
})
