import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ChatRequest } from '../../chat/model/chat-request.ts'
import { anthropicRequest } from './anthropic-request.ts'
import { jsonLiteral, pythonLiteral, scriptLiteral, shellWord } from './literals.ts'
import { requestCode, requestLanguages } from './request-code.ts'

const request: ChatRequest = {
  model: 'gpt-5',
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: "What's up?" },
  ],
  temperature: 0.2,
}

describe('requestCode', () => {
  it('quotes the body of curl for a shell', () => {
    expect(requestCode('curl', request, { baseUrl: 'http://127.0.0.1:4000/v1' })).toBe(
      [
        "curl 'http://127.0.0.1:4000/v1/chat/completions' \\",
        '  -H "authorization: Bearer $TOLLGATE_API_KEY" \\',
        "  -H 'content-type: application/json' \\",
        "  -d '{",
        '  "model": "gpt-5",',
        '  "messages": [',
        '    { "role": "system", "content": "Be brief." },',
        `    { "role": "user", "content": "What'\\''s up?" }`,
        '  ],',
        '  "temperature": 0.2',
        "}'",
      ].join('\n'),
    )
  })

  it('prints keyword arguments of Python', () => {
    const code = requestCode('openai-python', request, { baseUrl: 'http://h/v1', key: 'tg-1' })
    expect(code).toContain('client = OpenAI(base_url="http://h/v1", api_key="tg-1")')
    expect(code).toContain('    temperature=0.2,\n)')
  })

  it('removes the version from the base address of Anthropic clients', () => {
    expect(requestCode('anthropic-typescript', request, { baseUrl: 'http://h/team/v1' })).toContain(
      "baseURL: 'http://h/team', apiKey: process.env.TOLLGATE_API_KEY",
    )
  })

  it('contains the key in every language', () => {
    for (const { id } of requestLanguages)
      expect(requestCode(id, request, { baseUrl: 'http://h/v1', key: 'tg-9' })).toContain('tg-9')
  })
})

describe('anthropicRequest', () => {
  it('maps the system prompt, images, tools and results', () => {
    const body = anthropicRequest({
      model: 'claude',
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Look' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAA' } },
          ],
        },
        {
          role: 'assistant',
          content: null,
          tool_calls: ['a', 'b'].map((id) => ({
            id,
            type: 'function',
            function: { name: 'f', arguments: '{"x":1}' },
          })),
        },
        { role: 'tool', tool_call_id: 'a', content: '1' },
        { role: 'tool', tool_call_id: 'b', content: '2' },
      ],
      tools: [{ type: 'function', function: { name: 'f', parameters: { properties: {} } } }],
      stop: ['X'],
    })
    expect(body).toEqual({
      model: 'claude',
      max_tokens: 1_024,
      system: 'Be brief.',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Look' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAA' } },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } },
            { type: 'tool_use', id: 'b', name: 'f', input: { x: 1 } },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'a', content: '1' },
            { type: 'tool_result', tool_use_id: 'b', content: '2' },
          ],
        },
      ],
      stop_sequences: ['X'],
      tools: [{ name: 'f', input_schema: { type: 'object', properties: {} } }],
    })
  })
})

describe('literals', () => {
  it('are read back as the same value', () => {
    const read = (code: string): unknown => Function(`return (${code})`)()
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        // `__proto__` in a literal sets the prototype; no request has such a field.
        fc.pre(!JSON.stringify(value).includes('__proto__') && !JSON.stringify(value).includes('-0'))
        expect(JSON.parse(jsonLiteral(value))).toEqual(JSON.parse(JSON.stringify(value)))
        expect(read(scriptLiteral(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  it('print the constants of Python', () => {
    expect(pythonLiteral({ a: [true, false, null, 1.5, 'x"y'] })).toBe(
      '{ "a": [True, False, None, 1.5, "x\\"y"] }',
    )
  })

  it('quote words for a shell', () => {
    expect(shellWord("a'b$c")).toBe("'a'\\''b$c'")
  })
})
