import { describe, expect, it } from 'vitest'
import { type JsonObject, type JsonValue, parseJsonObject } from '../../../../lib/json/json.ts'
import { createSseParser } from '../../../../net/http/sse.ts'
import type { Translation, TranslationContext } from '../translate.ts'
import { geminiToChat, geminiToConverse, geminiToMessages } from './gemini-to-chat.ts'

const context: TranslationContext = {
  requestModel: 'asked',
  now: () => 1_700_000_000_000,
  includeUsage: true,
}
const hello: JsonObject = { role: 'user', parts: [{ text: 'Hello' }] }

function translated(fields: JsonObject, translation: Translation = geminiToChat): JsonObject {
  const result = translation.request({ model: 'm', contents: [hello], ...fields })
  if (result.kind !== 'body') throw new Error(result.message)
  return result.body
}

function refusedParam(fields: JsonObject, translation: Translation = geminiToChat): string | undefined {
  const result = translation.request({ model: 'm', contents: [hello], ...fields })
  return result.kind === 'unsupported' ? result.param : undefined
}

const config = (generationConfig: JsonObject): JsonObject => ({ generationConfig })
const inPart = (part: JsonValue, role = 'user'): JsonObject => ({ contents: [{ role, parts: [part] }] })
const declared = (declaration: JsonObject): JsonObject => ({
  tools: [{ functionDeclarations: [declaration] }],
})
const calling = (functionCallingConfig: JsonObject): JsonObject => ({
  ...{ tools: [{ functionDeclarations: [{ name: 'f' }, { name: 'g' }] }] },
  toolConfig: { functionCallingConfig },
})
const inlineData = (mimeType: string, data = 'AAAA'): JsonObject => ({ inlineData: { mimeType, data } })
const calls = [{ role: 'model', parts: [{ functionCall: { name: 'f' } }, { functionCall: { name: 'f' } }] }]
const answered = (functionResponse: JsonValue): JsonObject => ({
  contents: [...calls, { role: 'user', parts: [{ functionResponse }] }],
})

describe('a Gemini request for chat', () => {
  const refused: [string, JsonObject][] = [
    ['inventedField', { inventedField: 1 }],
    ['system__instruction', { system__instruction: { parts: [{ text: 'unread by guards' }] } }],
    ['cachedContent', { cachedContent: 'cachedContents/1' }],
    ['contents', { contents: [] }],
    ['contents', { contents: 'Hello' }],
    ['contents[0]', { contents: ['Hello'] }],
    ['contents[0].role', { contents: [{ role: 'system', parts: [] }] }],
    ['contents[0].other', { contents: [{ parts: [{ text: 'x' }], other: 1 }] }],
    ['contents[0].parts[0]', inPart(1)],
    ['contents[0].parts[0]', inPart({})],
    ['contents[0].parts[0].executableCode', inPart({ executableCode: { code: '1' } })],
    ['contents[0].parts[0].videoMetadata', inPart({ text: 'x', videoMetadata: { fps: 1 } })],
    ['contents[0].parts[0].inlineData', inPart({ inlineData: {} })],
    ['contents[0].parts[0].inlineData.mimeType', inPart(inlineData('application/zip'))],
    ['contents[0].parts[0].inlineData', inPart(inlineData('image/png'), 'model')],
    ['contents[0].parts[0].fileData.fileUri', inPart({ fileData: { fileUri: 'gs://bucket/cat.png' } })],
    [
      'contents[0].parts[0].fileData.fileUri',
      inPart({ fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/a.png' } }),
    ],
    ['contents[0].parts[0].fileData.mimeType', inPart({ fileData: { fileUri: 'https://a.example/b.pdf' } })],
    ['contents[0].parts[0].functionCall.name', inPart({ functionCall: {} }, 'model')],
    ['contents[0].parts[0].functionCall.args', inPart({ functionCall: { name: 'f', args: 1 } }, 'model')],
    ['contents[0].parts[0].functionResponse', inPart({ functionResponse: { name: 'f' } })],
    ['contents[1].parts[0].functionResponse', answered({ name: 'other', response: {} })],
    ['contents[1].parts[0].functionResponse.response', answered({ name: 'f', response: 'x' })],
    ['contents[1].parts[0].functionResponse.willContinue', answered({ name: 'f', willContinue: true })],
    ['contents[1].parts[0].functionResponse.parts[0].inlineData', answered({ name: 'f', parts: [{}] })],
    ['systemInstruction', { systemInstruction: 1 }],
    ['systemInstruction.parts[0].text', { systemInstruction: { parts: [{}] } }],
    ['systemInstruction.parts[0].inlineData', { systemInstruction: { parts: [inlineData('image/png')] } }],
    ['tools[0].googleSearch', { tools: [{ googleSearch: {} }] }],
    ['tools[0].codeExecution', { tools: [{ code_execution: {} }] }],
    ['tools[0].functionDeclarations[0].name', declared({})],
    ['tools[0].functionDeclarations[0].behavior', declared({ name: 'f', behavior: 'NON_BLOCKING' })],
    ['tools[0].functionDeclarations[0].parameters', declared({ name: 'f', parameters: 1 })],
    [
      'tools[0].functionDeclarations[0].parametersJsonSchema',
      declared({ name: 'f', parametersJsonSchema: 1 }),
    ],
    ['toolConfig.retrievalConfig', { toolConfig: { retrievalConfig: {} } }],
    ['toolConfig.functionCallingConfig.mode', calling({ mode: 'SOMETIMES' })],
    [
      'toolConfig.functionCallingConfig.allowedFunctionNames',
      calling({ mode: 'ANY', allowedFunctionNames: 'f' }),
    ],
    [
      'toolConfig.functionCallingConfig.allowedFunctionNames',
      calling({ mode: 'ANY', allowedFunctionNames: ['f', 'x'] }),
    ],
    ['generationConfig.speechConfig', config({ speechConfig: {} })],
    ['generationConfig.responseModalities', config({ responseModalities: ['AUDIO'] })],
    ['generationConfig.responseMimeType', config({ responseMimeType: 'text/x.enum' })],
    [
      'generationConfig.responseSchema',
      config({ responseMimeType: 'application/json', responseSchema: 'x' }),
    ],
    ['generationConfig.thinkingConfig.thinkingLevel', config({ thinkingConfig: { thinkingLevel: 'HUGE' } })],
    ['generationConfig.thinkingConfig.thinkingBudget', config({ thinkingConfig: { thinkingBudget: 'x' } })],
    ['generationConfig.thinkingConfig.other', config({ thinkingConfig: { other: 1 } })],
  ]
  it.each(refused)('is refused for %s', (param, fields) => {
    expect(refusedParam(fields)).toBe(param)
  })

  it('has the settings under the names of chat', () => {
    const generationConfig = {
      ...{ temperature: 1.5, topP: 0.9, topK: 40, maxOutputTokens: 100, stopSequences: ['END'], seed: 7 },
      ...{ presencePenalty: 0.5, frequencyPenalty: 0.25, candidateCount: 2 },
      ...{ responseLogprobs: true, logprobs: 3, responseModalities: ['TEXT'], mediaResolution: 'LOW' },
    }
    expect(translated({ generationConfig, safetySettings: [{}], labels: { a: 'b' } })).toEqual({
      ...{ model: 'm', messages: [{ role: 'user', content: 'Hello' }] },
      ...{ temperature: 1.5, top_p: 0.9, top_k: 40, max_tokens: 100, stop: ['END'], seed: 7, n: 2 },
      ...{ presence_penalty: 0.5, frequency_penalty: 0.25, logprobs: true, top_logprobs: 3 },
    })
  })

  it('in snake case has the same translation', () => {
    const result = translated({
      system_instruction: { parts: { text: 'brief' } },
      contents: { parts: [{ inline_data: { mime_type: 'image/png', data: 'AA-_' } }] },
      tools: { function_declarations: [{ name: 'f', parameters_json_schema: { type: 'object' } }] },
      tool_config: { function_calling_config: { mode: 'any', allowed_function_names: ['f'] } },
      generation_config: { max_output_tokens: 5, thinking_config: { thinking_budget: 0 } },
    })
    expect(result).toEqual({
      model: 'm',
      messages: [
        { role: 'system', content: 'brief' },
        { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA+/' } }] },
      ],
      tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
      tool_choice: { type: 'function', function: { name: 'f' } },
      max_tokens: 5,
      reasoning_effort: 'none',
    })
  })

  it('has media as parts of chat', () => {
    const parts = [
      { text: '' },
      inlineData('audio/mpeg'),
      inlineData('audio/x-wav'),
      inlineData('video/mp4'),
      { inlineData: { mimeType: 'application/pdf', data: 'AAAA', displayName: 'a.pdf' } },
      inlineData('text/csv; charset=utf-8', Buffer.from('a,b').toString('base64')),
      { fileData: { fileUri: 'https://a.example/cat.JPG?x=1' } },
    ]
    expect(translated({ contents: [{ role: 'user', parts }] })['messages']).toEqual([
      {
        role: 'user',
        content: [
          { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
          { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
          { type: 'video_url', video_url: { url: 'data:video/mp4;base64,AAAA' } },
          { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } },
          { type: 'text', text: 'a,b' },
          { type: 'image_url', image_url: { url: 'https://a.example/cat.JPG?x=1' } },
        ],
      },
    ])
  })

  it('matches results to calls by id, else by name in order', () => {
    const { messages } = translated({
      contents: [
        hello,
        { role: 'model', parts: [{ text: 'thinking', thought: true }, { text: 'Let me look. ' }] },
        {
          role: 'model',
          parts: [
            { functionCall: { name: 'f', args: { a: 1 } }, thoughtSignature: 'AAAA' },
            { functionCall: { id: 'own', name: 'g', args: {} } },
            { functionCall: { name: 'f', args: { a: 2 } } },
          ],
        },
        {
          role: 'function',
          parts: [
            { functionResponse: { name: 'f', response: { output: 'first' } } },
            { functionResponse: { name: 'f', response: { output: { b: 2 } } } },
            {
              functionResponse: {
                id: 'own',
                name: 'g',
                response: { error: 'no' },
                parts: [inlineData('image/png')],
              },
            },
            { text: 'and now?' },
          ],
        },
      ],
    })
    const made = (id: string, name: string, args: string) => ({
      id,
      type: 'function',
      function: { name, arguments: args },
    })
    expect(messages).toEqual([
      { role: 'user', content: 'Hello' },
      {
        role: 'assistant',
        content: 'Let me look. ',
        tool_calls: [made('call_0', 'f', '{"a":1}'), made('own', 'g', '{}'), made('call_2', 'f', '{"a":2}')],
      },
      { role: 'tool', tool_call_id: 'call_0', content: 'first' },
      { role: 'tool', tool_call_id: 'call_2', content: '{"b":2}' },
      { role: 'tool', tool_call_id: 'own', content: '{"error":"no"}' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Attachments of the result of tool call own:' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          { type: 'text', text: 'and now?' },
        ],
      },
    ])
  })

  it.each([
    [{ mode: 'AUTO' }, 'auto', 2],
    [{ mode: 'VALIDATED', allowedFunctionNames: ['g'] }, 'auto', 1],
    [{ mode: 'NONE' }, 'none', 2],
    [{ mode: 'ANY' }, 'required', 2],
    [{ mode: 'ANY', allowedFunctionNames: ['g'] }, { type: 'function', function: { name: 'g' } }, 2],
    [{ mode: 'ANY', allowedFunctionNames: ['g', 'f'] }, 'required', 2],
  ])('has the choice of %j', (mode, choice, tools) => {
    const body = translated(calling(mode))
    expect(body['tool_choice']).toEqual(choice)
    expect(body['tools']).toHaveLength(tools)
  })

  it('has JSON schemas for schemas of OpenAPI', () => {
    const parameters = {
      type: 'OBJECT',
      propertyOrdering: ['when', 'kind'],
      properties: {
        when: { type: 'STRING', format: 'date-time', nullable: true, example: 'x' },
        kind: { type: 'STRING', format: 'enum', enum: ['a', 'b'], nullable: true },
        type: {
          any_of: [
            { type: 'INTEGER', format: 'int32' },
            { type: 'ARRAY', min_items: '1', items: { type: 'NUMBER' } },
          ],
          nullable: true,
        },
      },
      required: ['when'],
    }
    expect(translated(declared({ name: 'f', description: 'd', parameters }))['tools']).toEqual([
      {
        type: 'function',
        function: {
          name: 'f',
          description: 'd',
          parameters: {
            type: 'object',
            properties: {
              when: { type: ['string', 'null'], format: 'date-time' },
              kind: { type: ['string', 'null'], enum: ['a', 'b', null] },
              type: {
                anyOf: [
                  { type: 'integer' },
                  { type: 'array', minItems: 1, items: { type: 'number' } },
                  { type: 'null' },
                ],
              },
            },
            required: ['when'],
          },
        },
      },
    ])
  })

  it('requests a strict schema if it requires all properties', () => {
    const responseMimeType = 'application/json'
    const format = (schema: JsonObject) =>
      translated(config({ responseMimeType, ...schema }))['response_format']
    const list = {
      type: 'ARRAY',
      items: { type: 'OBJECT', properties: { b: { type: 'STRING' } }, required: ['b'] },
    }
    const properties = { a: list }
    expect(format({ responseSchema: { type: 'OBJECT', properties, required: ['a'] } })).toEqual({
      type: 'json_schema',
      json_schema: {
        name: 'answer',
        strict: true,
        schema: {
          type: 'object',
          additionalProperties: false,
          required: ['a'],
          properties: {
            a: {
              type: 'array',
              items: {
                type: 'object',
                additionalProperties: false,
                required: ['b'],
                properties: { b: { type: 'string' } },
              },
            },
          },
        },
      },
    })
    const open = { type: 'object', properties: { a: { enum: [{ properties: {} }] } } }
    expect(format({ responseJsonSchema: open })).toEqual({
      type: 'json_schema',
      json_schema: { name: 'answer', schema: { ...open, additionalProperties: false } },
    })
    expect(format({})).toEqual({ type: 'json_object' })
    let deep: JsonObject = { type: 'OBJECT' }
    for (let level = 0; level < 100; level += 1) deep = { type: 'ARRAY', items: deep }
    expect(refusedParam(config({ responseMimeType, responseSchema: deep }))).toBe(
      'generationConfig.responseSchema',
    )
    expect(refusedParam(config({ responseMimeType, responseJsonSchema: deep }))).toBe(
      'generationConfig.responseJsonSchema',
    )
  })

  it.each([
    [{ thinkingBudget: -1 }, undefined],
    [{ thinkingBudget: 512 }, 'low'],
    [{ thinkingBudget: 8192 }, 'medium'],
    [{ thinkingBudget: 24_576 }, 'high'],
    [{ thinkingLevel: 'MINIMAL' }, 'minimal'],
    [{ thinkingLevel: 'high', includeThoughts: true }, 'high'],
    [{ includeThoughts: true }, undefined],
  ])('has the effort of %j', (thinkingConfig, effort) => {
    expect(translated(config({ thinkingConfig }))['reasoning_effort']).toBe(effort)
  })

  it('that is streamed requests usage', () => {
    expect(translated({ stream: true })).toMatchObject({
      stream: true,
      stream_options: { include_usage: true },
    })
    expect(translated({ stream: false })).not.toHaveProperty('stream')
  })
})

describe('a Gemini request for messages', () => {
  it.each([
    ['generationConfig.candidateCount', config({ candidateCount: 2 })],
    ['generationConfig.temperature', config({ temperature: 1.5 })],
    ['generationConfig.seed', config({ seed: 0 })],
    ['generationConfig.presencePenalty', config({ presencePenalty: 1 })],
    ['generationConfig.responseLogprobs', config({ responseLogprobs: true })],
    ['generationConfig.responseModalities', config({ responseModalities: ['TEXT', 'IMAGE'] })],
    ['generationConfig.responseMimeType', config({ responseMimeType: 'application/json' })],
    ['contents[0].parts[0].inlineData.mimeType', inPart(inlineData('video/mp4'))],
  ])('is refused for %s, by its name in the request', (param, fields) => {
    expect(refusedParam(fields, geminiToMessages)).toBe(param)
    expect(refusedParam(fields, geminiToConverse)).toBe(param)
  })

  it('has budgets of thinking, with room for the answer', () => {
    const thinking = (thinkingBudget: number, more: JsonObject = {}) =>
      translated(config({ thinkingConfig: { thinkingBudget }, ...more }), geminiToMessages)
    expect(thinking(100)).toMatchObject({
      thinking: { type: 'enabled', budget_tokens: 1024 },
      max_tokens: 9216,
    })
    expect(thinking(2048, { maxOutputTokens: 4096 })).toMatchObject({ max_tokens: 4096 })
    expect(thinking(0)).toMatchObject({ thinking: { type: 'disabled' } })
  })

  const message = {
    ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude', stop_reason: 'tool_use' },
    content: [
      { type: 'thinking', thinking: 'Hm', signature: 'c2ln' },
      { type: 'redacted_thinking', data: 'cmVk' },
      { type: 'text', text: 'Look:' },
      { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } },
      { type: 'tool_use', id: 'toolu_2', name: 'f', input: {} },
    ],
    usage: { input_tokens: 3, cache_read_input_tokens: 2, output_tokens: 4 },
  } satisfies JsonObject
  const partsOf = (response: JsonObject) => JSON.parse(JSON.stringify(response)).candidates[0].content.parts

  it('returns signed thinking with the calls, and restores it from any form of base64', () => {
    const parts = partsOf(geminiToMessages.reply(message, context))
    expect(parts).toMatchObject([
      { text: 'Look:' },
      { functionCall: { id: 'toolu_1', name: 'f', args: { a: 1 } }, thoughtSignature: expect.any(String) },
      { functionCall: { id: 'toolu_2', name: 'f', args: {} } },
    ])
    parts[1].thoughtSignature = Buffer.from(parts[1].thoughtSignature, 'base64').toString('base64url')
    const result = { functionResponse: { name: 'f', response: { output: 'x' } } }
    const contents = [hello, { role: 'model', parts }, { role: 'user', parts: [result, result] }]
    expect(translated({ contents }, geminiToMessages)['messages']).toEqual([
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: message.content },
      {
        role: 'user',
        content: ['toolu_1', 'toolu_2'].map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'x' })),
      },
    ])
    expect(JSON.stringify(translated({ contents }, geminiToConverse))).toContain('"signature":"c2ln"')
    expect(JSON.stringify(translated({ contents }))).not.toContain('reasoning')
  })

  it('streams the same parts', () => {
    const events: JsonObject[] = [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
      ...message.content.flatMap((block, index): JsonObject[] => [
        { type: 'content_block_start', index, content_block: emptied(block) },
        ...deltasOf(block).map((delta): JsonObject => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ]),
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 4 } },
      { type: 'message_stop' },
    ]
    const stream = geminiToMessages.stream({ ...context, settings: { includeThoughts: true } })
    const out = events.flatMap((event) => stream.event({ data: JSON.stringify(event) }))
    const responses = [...out, ...stream.end()].map(({ data }) => JSON.parse(data))
    const parts = responses.flatMap(({ candidates }) => candidates[0].content?.parts ?? [])
    expect(parts).toEqual([
      { text: 'Hm', thought: true },
      ...partsOf(geminiToMessages.reply(message, context)),
    ])
    expect(responses.at(-1)).toMatchObject({
      candidates: [{ finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 5, cachedContentTokenCount: 2, candidatesTokenCount: 4 },
    })
  })

  function emptied(block: JsonObject): JsonObject {
    if (block['type'] === 'thinking') return { type: 'thinking', thinking: '', signature: '' }
    if (block['type'] === 'text') return { type: 'text', text: '' }
    return block['type'] === 'tool_use' ? { ...block, input: {} } : block
  }

  function deltasOf({ type, thinking, signature, text, input }: JsonObject): JsonObject[] {
    if (type === 'thinking')
      return [
        { type: 'thinking_delta', thinking: thinking ?? '' },
        { type: 'signature_delta', signature: signature ?? '' },
      ]
    if (type === 'text') return [{ type: 'text_delta', text: text ?? '' }]
    return type === 'tool_use' ? [{ type: 'input_json_delta', partial_json: JSON.stringify(input) }] : []
  }
})

describe('a chat completion for a Gemini client', () => {
  const completion = (choice: JsonObject, more: JsonObject = {}) => ({
    ...{ id: 'chatcmpl-1', model: 'gpt', choices: [{ index: 0, finish_reason: 'stop', ...choice }] },
    ...more,
  })
  const reply = (message: JsonObject, choice: JsonObject = {}, settings: JsonObject = {}) =>
    geminiToChat.reply(completion({ message, ...choice }), { ...context, settings })

  it('has text, counts, model and id', () => {
    const usage = {
      ...{ prompt_tokens: 10, completion_tokens: 8, prompt_tokens_details: { cached_tokens: 4 } },
      completion_tokens_details: { reasoning_tokens: 5 },
    }
    expect(geminiToChat.reply(completion({ message: { content: 'Hi' } }, { usage }), context)).toEqual({
      candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP', index: 0 }],
      usageMetadata: {
        ...{ promptTokenCount: 10, candidatesTokenCount: 3, thoughtsTokenCount: 5 },
        ...{ cachedContentTokenCount: 4, totalTokenCount: 18 },
      },
      modelVersion: 'gpt',
      responseId: '1',
    })
  })

  it('has thoughts if they are requested', () => {
    const message = { content: 'Hi', reasoning_content: 'Hm' }
    expect(JSON.stringify(reply(message))).not.toContain('Hm')
    expect(reply(message, {}, { includeThoughts: true })).toMatchObject({
      candidates: [{ content: { parts: [{ text: 'Hm', thought: true }, { text: 'Hi' }] } }],
    })
  })

  it.each([
    ['stop', 'STOP'],
    ['tool_calls', 'STOP'],
    ['length', 'MAX_TOKENS'],
    ['content_filter', 'SAFETY'],
  ])('that finishes with %s has the reason %s', (finish_reason, finishReason) => {
    expect(reply({ content: 'x' }, { finish_reason })).toMatchObject({ candidates: [{ finishReason }] })
  })

  it('with a refusal has its text, and the reason SAFETY', () => {
    expect(reply({ content: null, refusal: 'No.' })).toMatchObject({
      candidates: [{ content: { parts: [{ text: 'No.' }] }, finishReason: 'SAFETY' }],
    })
  })

  it('has calls with exact arguments and ids', () => {
    const call = (id: string | undefined, args: JsonValue) => ({
      ...(id === undefined ? undefined : { id }),
      function: { name: 'f', arguments: args },
    })
    const tool_calls = [call('a', '{"n":12345678901234567890}'), call(undefined, ''), call('c', { b: 1 })]
    const text = JSON.stringify(reply({ content: null, tool_calls }))
    expect(text).toContain('{"id":"a","name":"f","args":{"n":12345678901234567890}}')
    expect(text).toContain('{"id":"call_1_1","name":"f","args":{}}')
    expect(text).toContain('{"id":"c","name":"f","args":{"b":1}}')
    expect(() => reply({ tool_calls: [call('a', '{"n":')] })).toThrow('not a JSON object')
    expect(
      reply({ content: '', tool_calls: [call('a', '{"n":')] }, { finish_reason: 'length' }),
    ).toMatchObject({
      candidates: [{ content: { parts: [] }, finishReason: 'MAX_TOKENS' }],
    })
  })

  it('has images, probabilities and citations with positions in bytes', () => {
    const content = 'Grüße, see page'
    const url_citation = { url: 'https://a.example', title: 'A', start_index: 11, end_index: 15 }
    const top = { token: 'x', logprob: -1 }
    const result = reply(
      {
        content,
        images: [{ image_url: { url: 'data:image/png;base64,AAAA' } }],
        annotations: [{ type: 'url_citation', url_citation }],
      },
      { logprobs: { content: [{ token: 'G', logprob: -0.5, top_logprobs: [top] }] } },
    )
    expect(result).toMatchObject({
      candidates: [
        {
          content: { parts: [{ text: content }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }] },
          logprobsResult: {
            chosenCandidates: [{ token: 'G', logProbability: -0.5 }],
            topCandidates: [{ candidates: [{ token: 'x', logProbability: -1 }] }],
          },
          groundingMetadata: {
            groundingChunks: [{ web: { uri: 'https://a.example', title: 'A' } }],
            groundingSupports: [
              { segment: { startIndex: 13, endIndex: 17, text: 'page' }, groundingChunkIndices: [0] },
            ],
          },
        },
      ],
    })
  })

  it.each([{}, { choices: [] }, { choices: [1] }, { choices: [{ message: { tool_calls: {} } }] }])(
    'that is %j is refused',
    (body) => {
      expect(() => geminiToChat.reply(body, context)).toThrow('cannot be read')
    },
  )

  it('that failed has an error in the shape of Google', () => {
    const body = JSON.stringify({ error: { message: 'slow down', code: 'rate_limit_exceeded' } })
    expect(geminiToChat.error(429, body)).toEqual({
      error: {
        ...{ code: 429, message: 'slow down', status: 'RESOURCE_EXHAUSTED' },
        details: [
          {
            '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
            ...{ reason: 'rate_limit_exceeded', domain: 'tollgate' },
          },
        ],
      },
    })
  })
})

describe('a stream of chat for a Gemini client', () => {
  const chunk = (delta: JsonObject, more: JsonObject = {}) =>
    `data: ${JSON.stringify({ id: 'chatcmpl-1', model: 'gpt', choices: [{ index: 0, delta, finish_reason: null, ...more }] })}\n\n`
  const fragment = (index: number, id: string | undefined, name: string, args: string) =>
    chunk({
      tool_calls: [
        { index, ...(id === undefined ? undefined : { id }), function: { name, arguments: args } },
      ],
    })
  const done = 'data: [DONE]\n\n'
  const stream = [
    'data: {"choices":[],"prompt_filter_results":[]}\n\n',
    chunk({ role: 'assistant', content: '' }),
    chunk({ reasoning_content: 'Hm' }),
    chunk({ content: 'Grüße 🙂' }, { logprobs: { content: [{ token: 'G', logprob: -1 }] } }),
    fragment(0, 'a', 'f', ''),
    fragment(0, undefined, '', '{"n":1'),
    fragment(1, 'b', 'g', ''),
    fragment(0, undefined, '', '}'),
    chunk({}, { finish_reason: 'tool_calls' }),
    'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n',
    done,
  ]

  function run(
    pieces: readonly Uint8Array[],
    settings: JsonObject = { includeThoughts: true },
  ): JsonObject[] {
    const translator = geminiToChat.stream({ ...context, settings })
    const out: string[] = []
    const parser = createSseParser({
      maxEventBytes: 10_000_000,
      onEvent: (event) => out.push(...translator.event(event).map(({ data }) => data)),
    })
    for (const piece of pieces) parser.push(piece)
    parser.end()
    out.push(...translator.end().map(({ data }) => data))
    expect(translator.end()).toEqual([])
    return out.map((data) => parseJsonObject(data) ?? {})
  }

  it('has an event per text, and calls with counts at the end', () => {
    const head = { modelVersion: 'gpt', responseId: '1' }
    const content = (...parts: JsonObject[]) => ({ content: { role: 'model', parts } })
    const logprobsResult = {
      chosenCandidates: [{ token: 'G', logProbability: -1 }],
      topCandidates: [{ candidates: [] }],
    }
    expect(run([Buffer.from(stream.join(''))])).toEqual([
      { candidates: [{ ...content({ text: 'Hm', thought: true }), index: 0 }], ...head },
      { candidates: [{ ...content({ text: 'Grüße 🙂' }), index: 0, logprobsResult }], ...head },
      {
        candidates: [
          {
            ...content(
              { functionCall: { id: 'a', name: 'f', args: { n: 1 } } },
              { functionCall: { id: 'b', name: 'g', args: {} } },
            ),
            ...{ finishReason: 'STOP', index: 0 },
          },
        ],
        usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
        ...head,
      },
    ])
    expect(JSON.stringify(run([Buffer.from(stream.join(''))], {}))).not.toContain('Hm')
  })

  it('without calls has content in its last event, which clients skip otherwise', () => {
    const usage = 'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n'
    const text = [chunk({ content: 'a' }), chunk({}, { finish_reason: 'length' }), usage, done]
    expect(run([Buffer.from(text.join(''))]).at(-1)).toMatchObject({
      candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'MAX_TOKENS' }],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
    })
  })

  it('cut at any byte has the same events', () => {
    const bytes = Buffer.from(stream.join(''))
    const whole = run([bytes])
    for (let cut = 1; cut < bytes.length; cut += 1)
      expect(run([bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual(whole)
  })

  it.each([3, 6, 9, 10])('truncated after %d events ends with an error', (events) => {
    const out = run([Buffer.from(stream.slice(0, events).join(''))])
    expect(out.at(-1)?.['error']).toMatchObject({ code: 502, status: 'UNAVAILABLE' })
    expect(JSON.stringify(out)).not.toContain('finishReason')
  })

  it('reads calls of servers that send index 0 for all, or none', () => {
    const same = [
      fragment(0, 'a', 'f', '{}'),
      fragment(0, 'b', 'g', '{"x":'),
      fragment(0, 'b', 'g', '1}'),
      fragment(0, 'c', 'h', ''),
    ]
    const out = run([Buffer.from([...same, chunk({}, { finish_reason: 'stop' }), done].join(''))])
    expect(JSON.stringify(out)).toContain(
      '[{"functionCall":{"id":"a","name":"f","args":{}}},{"functionCall":{"id":"b","name":"g","args":{"x":1}}},{"functionCall":{"id":"c","name":"h","args":{}}}]',
    )
  })

  it('has all choices, and ends after all of them', () => {
    const two = [
      chunk({ content: 'a' }),
      chunk({ content: 'b' }, { index: 1 }),
      chunk({}, { finish_reason: 'stop' }),
      chunk({ refusal: 'No.' }, { index: 1, finish_reason: 'stop' }),
    ]
    expect(run([Buffer.from(two.join('') + done)]).at(-1)).toMatchObject({
      candidates: [
        { index: 0, finishReason: 'STOP' },
        { index: 1, finishReason: 'SAFETY' },
      ],
    })
    expect(() => run([Buffer.from(two.slice(0, 3).join('') + done)])).toThrow('ended before')
  })

  it('that fails ends with the error of the upstream', () => {
    const error = 'data: {"error":{"message":"overloaded","type":"overloaded_error"}}\n\n'
    const out = run([Buffer.from(chunk({ content: 'a' }) + error)])
    expect(out.at(-1)?.['error']).toMatchObject({ message: 'overloaded', code: 529 })
  })

  it.each([
    'data: x\n\n',
    'data: {"choices":[1]}\n\n',
    chunk({ tool_calls: [1] }),
    chunk({ tool_calls: {} }),
    fragment(0, 'a', 'f', '{') + chunk({}, { finish_reason: 'stop' }) + done,
    fragment(0, 'a', '', '{}') + chunk({}, { finish_reason: 'stop' }) + done,
  ])('with %j is refused', (text) => {
    expect(() => run([Buffer.from(text)])).toThrow('cannot be read')
  })

  it('has bounded choices and calls', () => {
    const many = Array.from({ length: 200 }, (_, index) => chunk({ content: 'x' }, { index })).join('')
    expect(() => run([Buffer.from(many)])).toThrow('too many choices')
    const long = fragment(0, 'a', 'f', `"${'x'.repeat(3_000_000)}`)
    expect(() => run([Buffer.from(long), Buffer.from(long)])).toThrow('longer than')
  })
})
