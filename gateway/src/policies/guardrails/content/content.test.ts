import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { apis } from '../../../../test/fixtures/guardrail-streams.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import { spliceJson } from '../../../lib/json/splice.ts'
import { readJsonObject } from '../../../lib/json/text.ts'
import { CheckFailure } from '../guard.ts'
import { contentReaders } from './content.ts'
import { type ContentReader, type GuardedText, joinedText, splicesFor } from './content-reader.ts'
import { createReading } from './reading.ts'

const text = fc.oneof(
  fc
    .array(fc.constantFrom('mask', 'word', ' ', '\n', '"', 'ü'), { maxLength: 8 })
    .map((words) => words.join('')),
  fc.string({ maxLength: 12 }),
)
const part = fc.oneof(
  text,
  fc.record({ type: fc.constantFrom('text', 'input_text', 'image', 'tool_use'), text }),
  fc.record({ type: fc.constantFrom('thinking', 'tool_result'), content: text }),
  fc.jsonValue({ maxDepth: 2 }),
)
const content = fc.oneof(
  text,
  fc.array(part, { maxLength: 4 }),
  fc.constant(null),
  fc.jsonValue({ maxDepth: 2 }),
)
const item = fc.oneof(
  fc.record(
    { role: fc.constantFrom('user', 'assistant', 'system', 'tool', ''), content },
    { requiredKeys: [] },
  ),
  fc.jsonValue({ maxDepth: 3 }),
)
const items = fc.oneof(fc.array(item, { maxLength: 5 }), text, fc.jsonValue({ maxDepth: 2 }))
const request = fc.record(
  {
    messages: items,
    system: content,
    instructions: content,
    input: items,
    prompt: fc.oneof(text, fc.array(text)),
    suffix: text,
  },
  { requiredKeys: [] },
)
const choice = fc.record(
  { index: fc.integer(), message: fc.oneof(item, fc.jsonValue()), text, logprobs: fc.jsonValue() },
  { requiredKeys: [] },
)
const reply = fc.record(
  {
    choices: fc.oneof(
      fc.array(fc.oneof(choice, fc.jsonValue({ maxDepth: 1 })), { maxLength: 4 }),
      fc.jsonValue(),
    ),
    content: fc.oneof(fc.array(part, { maxLength: 4 }), text),
    output: fc.array(
      fc.oneof(fc.record({ type: fc.constantFrom('message', 'reasoning'), content }), fc.jsonValue()),
      {
        maxLength: 4,
      },
    ),
  },
  { requiredKeys: [] },
)

function objectOf(json: string): JsonObject {
  const read = readJsonObject(json)
  if (read.kind !== 'object') throw new Error('no object')
  return read.value
}

/** What is shown of a body, and what is shown of it once `mask` is `****` in all of that. */
function masked(body: object, reader: ContentReader, phase: 'request' | 'reply') {
  const json = JSON.stringify(body)
  const texts = (value: JsonObject): GuardedText[] =>
    reader[phase](value, createReading(phase === 'request' ? 'request' : 'response'))
  const before = texts(objectOf(json))
  const contents = before.map((shown) => joinedText(shown).replaceAll('mask', '****'))
  const after = spliceJson(json, splicesFor(before, contents, reader))
  return { contents, shown: texts(objectOf(after)).map(joinedText), after }
}

/** Undefined for what cannot be shown, whose check fails. */
function maskedOrUnreadable(...of: Parameters<typeof masked>): ReturnType<typeof masked> | undefined {
  try {
    return masked(...of)
  } catch (error) {
    if (error instanceof CheckFailure) return undefined
    throw error
  }
}

describe.each(apis)('content of %s', (api) => {
  const reader = contentReaders[api]

  it.each([
    ['request', request],
    ['reply', reply],
  ] as const)('of a %s is the modified content in any shape', (phase, bodies) => {
    fc.assert(
      fc.property(bodies, (body) => {
        const result = maskedOrUnreadable(body, reader, phase)
        if (result === undefined) return
        const { contents, shown } = result
        expect(shown.map(words)).toEqual(contents.map(words))
      }),
      { numRuns: 400 },
    )
  })
})

/** Blanks between parts are not theirs, so they do not count where a part has changed. */
function words(shown: string): string {
  return shown.replace(/\s+/g, '')
}

describe('prompts of token numbers', () => {
  it.each([[[1, 2]], [[[1, 2], [3]]], [['text', 5]]])('cannot be read: %j', (prompt) => {
    expect(() => contentReaders.completions.request({ prompt }, createReading('request'))).toThrow(
      CheckFailure,
    )
  })
})

describe('a part of a message that is masked away', () => {
  it('is taken out where providers refuse empty ones, but for the last', () => {
    const body = {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
      ],
    }
    const reader = contentReaders.messages
    const json = JSON.stringify(body)
    const after = (shown: string) =>
      spliceJson(json, splicesFor(reader.request(objectOf(json), createReading('request')), [shown], reader))
    expect(after('a ')).toBe('{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}')
    expect(after('')).toBe(
      '{"messages":[{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":""}]}]}',
    )
  })
})

describe('log probabilities of a modified reply', () => {
  const logprobs = { content: [{ token: 'mask' }] }
  const part = { type: 'output_text', text: 'a mask', logprobs: [{ token: 'mask' }] }

  it.each([
    ['chat', { choices: [{ message: { role: 'assistant', content: 'a mask' }, logprobs }] }],
    ['completions', { choices: [{ text: 'a mask', logprobs: { tokens: ['mask'] } }] }],
    ['responses', { output: [{ type: 'message', role: 'assistant', content: [part] }] }],
  ] as const)('are removed with the masked text of %s', (api, body) => {
    expect(masked(body, contentReaders[api], 'reply').after).not.toContain('mask')
  })
})

describe('texts in unusual places', () => {
  const shownOf = (texts: GuardedText[]) => texts.map(joinedText)

  it('of chat are shown: refusals, a part without a list, a prompt', () => {
    const { request, reply } = contentReaders.chat
    expect(
      shownOf(
        request(
          { messages: [{ role: 'assistant', content: null, refusal: 'no' }] },
          createReading('request'),
        ),
      ),
    ).toEqual(['no'])
    expect(
      shownOf(
        request(
          { messages: [{ role: 'user', content: { type: 'text', text: 'alone' } }] },
          createReading('request'),
        ),
      ),
    ).toEqual(['alone'])
    expect(
      shownOf(
        request(
          { messages: [{ role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] }] },
          createReading('request'),
        ),
      ),
    ).toEqual(['no'])
    expect(shownOf(request({ prompt: 'instead' }, createReading('request')))).toEqual(['instead'])
    expect(
      shownOf(reply({ choices: [{ message: { content: null, refusal: 'no' } }] }, createReading('response'))),
    ).toEqual(['no'])
  })

  it('of completions are shown: messages', () => {
    const { request } = contentReaders.completions
    expect(
      shownOf(request({ messages: [{ role: 'user', content: 'instead' }] }, createReading('request'))),
    ).toEqual(['instead'])
  })

  it('of messages are shown: tool results and documents', () => {
    const { request } = contentReaders.messages
    const text = { type: 'text', text: 'inside' }
    const content = [
      { type: 'tool_result', tool_use_id: 't', content: 'a tool' },
      { type: 'tool_result', tool_use_id: 't', content: [text, { type: 'image', source: { data: 'x' } }] },
      { type: 'document', title: 'a title', source: { type: 'text', data: 'a document' } },
      { type: 'document', source: { type: 'base64', data: 'AAAA' } },
      { type: 'document', source: { type: 'content', content: [text] } },
      { type: 'search_result', source: 'https://example.com', title: 'found', content: [text] },
    ]
    expect(shownOf(request({ messages: [{ role: 'user', content }] }, createReading('request')))).toEqual([
      'a tool inside a title a document inside found inside',
    ])
  })

  it('of answers of messages are shown: results of provider tools', () => {
    const content = [
      { type: 'mcp_tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'inside' }] },
      { type: 'web_search_tool_result', content: [{ type: 'web_search_result', encrypted_content: 'x' }] },
      { type: 'web_search_tool_result', content: { type: 'web_search_tool_result_error' } },
      { type: 'thinking', thinking: 'thought' },
      { type: 'text', text: 'said' },
    ]
    expect(shownOf(contentReaders.messages.reply({ content }, createReading('response')))).toEqual([
      'inside',
      '',
      '',
      '',
      'said',
    ])
  })

  it('of responses are shown: tool results, other roles, texts without a role, prompt variables', () => {
    const { request, reply } = contentReaders.responses
    const input = [
      { type: 'function_call_output', call_id: 'c', output: 'a tool' },
      { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'in parts' }] },
      { role: 'tool', content: 'another role' },
      { type: 'message', content: 'no role' },
      'no item',
      { type: 'reasoning', content: [{ type: 'reasoning_text', text: 'thought' }] },
    ]
    const prompt = { id: 'p', variables: { a: 'a variable', b: { type: 'input_text', text: 'another' } } }
    expect(shownOf(request({ input, prompt }, createReading('request')))).toEqual([
      'a tool',
      'in parts',
      'another role',
      'no role',
      'no item',
      'thought',
      'a variable',
      'another',
    ])
    expect(
      shownOf(
        reply(
          { output: [{ type: 'message', content: [{ type: 'refusal', refusal: 'no' }] }] },
          createReading('response'),
        ),
      ),
    ).toEqual(['no'])
  })

  it.each([
    ['chat', { messages: 'text' }],
    ['chat', { messages: ['text'] }],
    ['chat', { messages: [{ role: 'user', content: 4111111111111111 }] }],
    ['chat', { messages: [{ role: 'user', content: [4111111111111111] }] }],
    ['chat', { messages: [{ role: 'user', content: [{ type: 'text', text: { value: 'x' } }] }] }],
    ['completions', { prompt: { text: 'x' } }],
    ['messages', { messages: [['text']] }],
    ['messages', { system: 7, messages: [] }],
    ['responses', { input: 7 }],
    ['responses', { input: [['text']] }],
  ] as const)('that are unreadable fail the check: %s, %j', (api, body) => {
    expect(() =>
      contentReaders[api].request(objectOf(JSON.stringify(body)), createReading('request')),
    ).toThrow(CheckFailure)
  })
})
