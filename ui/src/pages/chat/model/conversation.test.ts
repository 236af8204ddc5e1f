import { describe, expect, it } from 'vitest'
import { initialSettings, openCalls, problemOfTool, type Run, requestOf, type Turn } from './conversation.ts'

const run: Run = { state: 'done', request: { model: 'm', messages: [] }, startedAt: '' }
const user: Turn = { kind: 'user', id: '1', text: 'Hi', images: [] }
const calling: Turn = {
  kind: 'answer',
  id: '2',
  model: 'm',
  text: '',
  reasoning: '',
  toolCalls: [{ id: 'a', name: 'f', arguments: '{}' }],
  run,
}
const tool = { id: 't', name: 'f', description: ' ', parameters: '{"type":"object"}' }

describe('requestOf', () => {
  it('omits empty parameters and incomplete tools', () => {
    const settings = { ...initialSettings, tools: [tool, { ...tool, parameters: '[' }], temperature: ' ' }
    expect(requestOf('m', [user], { ...settings, stream: false, system: ' ' })).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
    })
  })

  it('contains parameters, images, tool calls and results', () => {
    const image: Turn = {
      kind: 'user',
      id: '3',
      text: '',
      images: [{ name: 'a', bytes: 1, dataUrl: 'data:image/png;base64,A' }],
    }
    const result: Turn = { kind: 'result', id: '4', callId: 'a', text: '7' }
    const settings = { ...initialSettings, system: 'S', temperature: '0', stop: 'x\n\ny', maxTokens: '9' }
    expect(requestOf('m', [image, calling, result], settings)).toEqual({
      model: 'm',
      messages: [
        { role: 'system', content: 'S' },
        { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,A' } }] },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'a', content: '7' },
      ],
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0,
      max_tokens: 9,
      stop: ['x', 'y'],
    })
  })

  it('leaves out failed answers', () => {
    const failed: Turn = { ...calling, toolCalls: [], text: 'half', run: { ...run, state: 'failed' } }
    expect(requestOf('m', [user, failed], initialSettings).messages).toHaveLength(1)
  })
})

describe('openCalls', () => {
  it('lists calls of the last answer without a result', () => {
    expect(openCalls([user, calling])).toHaveLength(1)
    expect(openCalls([user, calling, { kind: 'result', id: '4', callId: 'a', text: '' }])).toEqual([])
    expect(openCalls([user])).toEqual([])
  })
})

describe('problemOfTool', () => {
  it.each([
    [{ name: 'a b' }, 'Name must'],
    [{ parameters: '{' }, 'Parameters must'],
    [{ parameters: '[]' }, 'Parameters must'],
  ])('refuses %j', (change, problem) => {
    expect(problemOfTool({ ...tool, ...change })).toContain(problem)
  })
})
