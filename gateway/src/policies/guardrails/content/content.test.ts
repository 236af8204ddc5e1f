import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../lib/json.ts'
import { spliceJson } from '../../../lib/json-splice.ts'
import { readJsonObject } from '../../../lib/json-text.ts'
import { apis } from '../fixture-streams.ts'
import { CheckFailure } from '../guard.ts'
import { type ContentReader, type GuardedText, shownText, splicesFor } from './content.ts'
import { contentReaders } from './index.ts'

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
  const texts = (value: JsonObject): GuardedText[] => reader[phase](value)
  const before = texts(objectOf(json))
  const contents = before.map((shown) => shownText(shown).replaceAll('mask', '****'))
  const after = spliceJson(json, splicesFor(before, contents, reader))
  return { contents, shown: texts(objectOf(after)).map(shownText), after }
}

describe.each(apis)('content of %s', (api) => {
  const reader = contentReaders[api]

  it.each([
    ['request', request],
    ['reply', reply],
  ] as const)('of a %s is what guards made of it, whatever it looks like', (phase, bodies) => {
    fc.assert(
      fc.property(bodies, (body) => {
        const { contents, shown } = masked(body, reader, phase)
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
    expect(() => contentReaders.completions.request({ prompt })).toThrow(CheckFailure)
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
      spliceJson(json, splicesFor(reader.request(objectOf(json)), [shown], reader))
    expect(after('a ')).toBe('{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}')
    expect(after('')).toBe(
      '{"messages":[{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":""}]}]}',
    )
  })
})
