import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../lib/json/json.ts'
import { messagesToConverse } from '../messages-to-converse/messages-to-converse.ts'
import type { Translation, TranslationContext } from '../translate.ts'
import { translationsFrom } from '../translations.ts'
import { converseToMessages } from './converse-to-messages.ts'

const context: TranslationContext = { requestModel: 'm', now: () => 36, includeUsage: true }

function translated(body: JsonObject, translation: Translation = converseToMessages): JsonObject {
  const result = translation.request({ model: 'm', ...body })
  if (result.kind === 'unsupported') throw new Error(result.message)
  return result.body
}

const refused = (body: JsonObject) => {
  const result = converseToMessages.request({ messages: [], ...body })
  return result.kind === 'unsupported' ? result.param : undefined
}

const request: JsonObject = {
  messages: [
    {
      role: 'user',
      content: [
        { text: 'Hi' },
        { cachePoint: { type: 'default', ttl: '1h' } },
        { image: { format: 'png', source: { bytes: 'AAAA' } } },
        { document: { format: 'pdf', name: 'report', source: { bytes: 'AAAA' } } },
        {
          document: { format: 'md', name: 'notes', source: { bytes: Buffer.from('# x').toString('base64') } },
        },
        {
          document: {
            format: 'txt',
            name: 'list',
            source: { content: [{ text: 'a' }] },
            citations: { enabled: true },
          },
        },
        { searchResult: { source: 's', title: 't', content: [{ text: 'a' }] } },
        { guardContent: { text: { text: 'guarded' } } },
      ],
    },
    {
      role: 'assistant',
      content: [
        { reasoningContent: { reasoningText: { text: 'hm', signature: 'sig' } } },
        { reasoningContent: { reasoningText: { text: 'of another model' } } },
        { reasoningContent: { redactedContent: 'cmVk' } },
        { toolUse: { toolUseId: 'c1', name: 'f', input: { x: 1 } } },
      ],
    },
    {
      role: 'user',
      content: [
        {
          toolResult: { toolUseId: 'c1', content: [{ json: { ok: true } }, { text: 'b' }], status: 'error' },
        },
      ],
    },
  ],
  system: [{ text: 'Be brief.' }, { cachePoint: { type: 'default' } }],
  inferenceConfig: { maxTokens: 9, temperature: 0.5, topP: 0.9, stopSequences: ['END'] },
  toolConfig: {
    tools: [{ toolSpec: { name: 'f', description: 'd', inputSchema: { json: { type: 'object' } } } }],
    toolChoice: { tool: { name: 'f' } },
  },
  outputConfig: {
    effort: 'low',
    textFormat: {
      type: 'json_schema',
      structure: { jsonSchema: { schema: '{"type":"object"}', name: 'n' } },
    },
  },
  additionalModelRequestFields: { top_k: 5 },
  requestMetadata: { team: 'a' },
  stream: true,
}

describe('a request', () => {
  it('has all parts in their places', () => {
    const text = (data: string) => ({ type: 'text', media_type: 'text/plain', data })
    expect(translated(request)).toEqual({
      model: 'm',
      stream: true,
      max_tokens: 9,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 5,
      stop_sequences: ['END'],
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      tools: [{ name: 'f', description: 'd', input_schema: { type: 'object' } }],
      tool_choice: { type: 'tool', name: 'f' },
      output_config: { effort: 'low', format: { type: 'json_schema', schema: { type: 'object' } } },
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hi', cache_control: { type: 'ephemeral', ttl: '1h' } },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
            {
              type: 'document',
              title: 'report',
              source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' },
            },
            { type: 'document', title: 'notes', source: text('# x') },
            {
              type: 'document',
              title: 'list',
              source: { type: 'content', content: [{ type: 'text', text: 'a' }] },
              citations: { enabled: true },
            },
            { type: 'search_result', source: 's', title: 't', content: [{ type: 'text', text: 'a' }] },
            { type: 'text', text: 'guarded' },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm', signature: 'sig' },
            { type: 'redacted_thinking', data: 'cmVk' },
            { type: 'tool_use', id: 'c1', name: 'f', input: { x: 1 } },
          ],
        },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'c1',
              content: [
                { type: 'text', text: '{"ok":true}' },
                { type: 'text', text: 'b' },
              ],
              is_error: true,
            },
          ],
        },
      ],
    })
  })

  it.each([
    [{ guardrailConfig: { guardrailIdentifier: 'g' } }, 'guardrailConfig'],
    [{ promptVariables: { a: { text: 'x' } } }, 'promptVariables'],
    [
      { additionalModelRequestFields: { reasoningConfig: {} } },
      'additionalModelRequestFields.reasoningConfig',
    ],
    [{ toolConfig: { tools: [{ systemTool: { name: 'x' } }] } }, 'toolConfig.tools[0]'],
    [{ messages: [{ role: 'user', content: [{ video: {} }] }] }, 'messages[0].content[0]'],
    [{ messages: [{ role: 'user', content: 'text' }] }, 'messages[0].content'],
    [{ messages: [{ role: 'system', content: [] }] }, 'messages[0].role'],
    [{ outputConfig: { textFormat: {} } }, 'outputConfig.textFormat.structure.jsonSchema.schema'],
  ])('is refused with the field that has no counterpart: %j', (body, param) => {
    expect(refused(body)).toBe(param)
  })

  it('has audio for APIs with audio only', () => {
    const audio = (block: JsonObject) => ({ messages: [{ role: 'user', content: [{ audio: block }] }] })
    const own = audio({ format: 'wav', source: { bytes: 'AAAA' } })
    const chat = translationsFrom('converse').find(({ upstream }) => upstream === 'chat')
    expect(translated(own, chat)).toMatchObject({
      messages: [{ content: [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }] }],
    })
    expect(refused(own)).toBe('messages[0].content[0]')
    const stored = audio({ format: 'wav', source: { s3Location: { uri: 's3://a/b' } } })
    expect(chat?.request({ model: 'm', ...stored })).toMatchObject({
      param: 'messages[0].content[0].audio.source',
    })
  })

  it('to chat completions has the limit of the client only', () => {
    const [toChat] = translationsFrom('converse').filter(({ upstream }) => upstream === 'chat')
    const messages = [{ role: 'user', content: [{ text: 'Hi' }] }]
    expect(toChat && translated({ messages }, toChat)).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: 'Hi' }],
    })
    const limited = toChat && translated({ messages, inferenceConfig: { maxTokens: 5 } }, toChat)
    expect(limited).toMatchObject({ max_tokens: 5 })
  })
})

const usage = {
  input_tokens: 3,
  output_tokens: 4,
  cache_read_input_tokens: 5,
  cache_creation_input_tokens: 6,
}
const converseUsage = {
  inputTokens: 3,
  outputTokens: 4,
  totalTokens: 18,
  cacheReadInputTokens: 5,
  cacheWriteInputTokens: 6,
}

it('a response has blocks, stop reason and usage, as the reverse translation reads them', () => {
  const content = [
    { type: 'thinking', thinking: 'hm', signature: 'sig' },
    { type: 'redacted_thinking', data: 'cmVk' },
    { type: 'text', text: 'Hello' },
    { type: 'tool_use', id: 'c', name: 'f', input: { x: 1 } },
  ]
  const message = { type: 'message', role: 'assistant', content, stop_reason: 'tool_use', usage }
  const response = converseToMessages.reply(message, context)
  expect(response).toMatchObject({ stopReason: 'tool_use', usage: converseUsage })
  expect(messagesToConverse.reply(response, context)).toMatchObject({ content, stop_reason: 'tool_use' })
  const refusal = converseToMessages.reply({ content: [], stop_reason: 'refusal' }, context)
  expect(refusal).toMatchObject({ stopReason: 'content_filtered' })
  expect(() => converseToMessages.reply({ error: 1 }, context)).toThrow('cannot be read')
})

describe('a stream', () => {
  const run = (events: JsonObject[]) => {
    const translator = converseToMessages.stream(context)
    const out = events.flatMap((event) =>
      translator.event({ event: String(event.type), data: JSON.stringify(event) }),
    )
    return [...out, ...translator.end()].map(({ event, data }) => [event, JSON.parse(data)])
  }
  const start = { type: 'message_start', message: { usage: { ...usage, output_tokens: 1 } } }
  const delta = (index: number, change: JsonObject) => ({ type: 'content_block_delta', index, delta: change })

  it('has the events of ConverseStream', () => {
    expect(
      run([
        start,
        { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } },
        delta(0, { type: 'thinking_delta', thinking: 'hm' }),
        delta(0, { type: 'signature_delta', signature: 'sig' }),
        { type: 'content_block_stop', index: 0 },
        { type: 'ping' },
        {
          type: 'content_block_start',
          index: 1,
          content_block: { type: 'tool_use', id: 'c', name: 'f', input: {} },
        },
        delta(1, { type: 'input_json_delta', partial_json: '{}' }),
        { type: 'content_block_stop', index: 1 },
        { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 4 } },
        { type: 'message_stop' },
      ]),
    ).toEqual([
      ['messageStart', { role: 'assistant' }],
      ['contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { text: 'hm' } } }],
      ['contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { signature: 'sig' } } }],
      ['contentBlockStop', { contentBlockIndex: 0 }],
      ['contentBlockStart', { contentBlockIndex: 1, start: { toolUse: { toolUseId: 'c', name: 'f' } } }],
      ['contentBlockDelta', { contentBlockIndex: 1, delta: { toolUse: { input: '{}' } } }],
      ['contentBlockStop', { contentBlockIndex: 1 }],
      ['messageStop', { stopReason: 'tool_use' }],
      ['metadata', { usage: converseUsage }],
    ])
  })

  it('ends with an exception after an error, and if it is truncated', () => {
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'busy' } }
    expect(run([start, error]).at(-1)).toEqual([
      'exception',
      { type: 'serviceUnavailableException', message: 'busy' },
    ])
    expect(run([start]).at(-1)?.[0]).toBe('exception')
  })
})
