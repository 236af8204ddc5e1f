import { describe, expect, it } from 'vitest'
import { addChunk, errorOf, noProgress, readCompletion } from './completion.ts'

const chunk = (delta: object, finish: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
})

describe('addChunk', () => {
  it('joins text, reasoning and the parts of tool calls', () => {
    const chunks = [
      chunk({ role: 'assistant', content: '' }),
      chunk({ reasoning_content: 'hm' }),
      chunk({ content: 'Hel' }),
      chunk({ content: 'lo' }),
      chunk({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '' } }] }),
      chunk({ tool_calls: [{ index: 1, id: 'b', function: { name: 'g', arguments: '{}' } }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: '{"x":1}' } }] }),
      chunk({}, 'tool_calls'),
      { choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } },
    ]
    expect(chunks.reduce(addChunk, noProgress)).toEqual({
      text: 'Hello',
      reasoning: 'hm',
      toolCalls: [
        { id: 'a', name: 'f', arguments: '{"x":1}' },
        { id: 'b', name: 'g', arguments: '{}' },
      ],
      finishReason: 'tool_calls',
      usage: { inputTokens: 3, outputTokens: 4 },
    })
  })

  it('reports the error event of a stream and retains the text before it', () => {
    const progress = [chunk({ content: 'Hi' }), { error: { message: 'lost', code: 'upstream' } }].reduce(
      addChunk,
      noProgress,
    )
    expect(progress).toMatchObject({ text: 'Hi', error: { message: 'lost', code: 'upstream' } })
  })

  it.each([null, 1, 'x', [], { choices: [null] }, { choices: [{ delta: { tool_calls: [null] } }] }])(
    'ignores the unexpected event %j',
    (event) => {
      expect(addChunk(noProgress, event)).toMatchObject({ text: '' })
    },
  )
})

describe('readCompletion', () => {
  it('reads text, tool calls and usage', () => {
    const completion = {
      choices: [
        {
          finish_reason: 'stop',
          message: { content: 'Hi', tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }] },
        },
      ],
      usage: {
        prompt_tokens: 1,
        completion_tokens: 2,
        prompt_tokens_details: { cached_tokens: 1 },
        completion_tokens_details: { reasoning_tokens: 0 },
      },
    }
    expect(readCompletion(completion)).toEqual({
      text: 'Hi',
      reasoning: '',
      toolCalls: [{ id: 'a', name: 'f', arguments: '{}' }],
      finishReason: 'stop',
      usage: { inputTokens: 1, outputTokens: 2, cachedTokens: 1 },
    })
  })
})

describe('errorOf', () => {
  it.each([
    ['rejected', { message: 'rejected' }],
    [{ error: { message: 'no', code: 'x' } }, { message: 'no', code: 'x' }],
    [
      { type: 'error', error: { type: 'overloaded', message: 'busy' } },
      { message: 'busy', code: 'overloaded' },
    ],
    [{ error: 'text' }, { message: 'text' }],
  ])('reads %j', (body, error) => {
    expect(errorOf(body)).toEqual(error)
  })
})
