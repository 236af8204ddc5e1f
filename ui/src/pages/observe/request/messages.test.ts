import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatJson, readMessages } from './messages.ts'

describe('readMessages', () => {
  it('reads texts, parts and tool calls', () => {
    const stored = JSON.stringify([
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Hi' },
          { type: 'image_url', image_url: { url: 'x' } },
        ],
      },
      { role: 'assistant', content: null, tool_calls: [{ function: { name: 'add', arguments: '{"a":1}' } }] },
      { role: 'assistant', content: [{ type: 'tool_use', name: 'search', input: { q: 'x' } }] },
    ])
    expect(readMessages(stored)).toMatchObject([
      { role: 'system', parts: [{ kind: 'text', text: 'Be brief.' }] },
      { role: 'user', parts: [{ kind: 'text' }, { kind: 'other', type: 'image_url' }] },
      { role: 'assistant', parts: [{ kind: 'tool call', name: 'add', text: '{\n  "a": 1\n}' }] },
      { role: 'assistant', parts: [{ kind: 'tool call', name: 'search' }] },
    ])
  })

  it.each(['', 'text', '[{"role":"user","content":"cut o', '{}', '[]', '[1]', '[{"content":"x"}]'])(
    'returns nothing for %s',
    (text) => {
      expect(readMessages(text)).toBeUndefined()
    },
  )

  it('accepts any JSON', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ role: fc.string(), content: fc.jsonValue(), tool_calls: fc.jsonValue() })),
        (list) => {
          const messages = readMessages(JSON.stringify(list))
          for (const { parts } of messages ?? [])
            for (const part of parts) expect(typeof part.text).toBe('string')
        },
      ),
    )
  })
})

it('formatJson returns other texts unchanged', () => {
  expect(formatJson('{"a":1}')).toBe('{\n  "a": 1\n}')
  expect(formatJson('{"a":')).toBe('{"a":')
})
