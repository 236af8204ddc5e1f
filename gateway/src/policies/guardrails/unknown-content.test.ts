import { describe, expect, it } from 'vitest'
import { acts, type FixtureCall, fixtureGuards, pass } from '../../../test/fixtures/guardrails.ts'
import type { LlmApi } from '../../pipeline/llm-message.ts'
import type { GuardrailsConfig } from './config.ts'

const rejecting = { regex: { action: 'reject' as const, rules: [{ pattern: 'SECRET' }] } }
const both = { request: [rejecting], response: [rejecting] }

function statusOf(config: GuardrailsConfig, call: FixtureCall): Promise<number> {
  return pass(fixtureGuards(config, acts({})), call).then(({ status }) => status)
}

const said = (...content: object[]) => ({ messages: [{ role: 'user', content }] })
const items = (...input: object[]) => ({ input })

/** Text of a client in every place that some server reads. */
const hiddenInRequests: [LlmApi, object][] = [
  ['generate_content', { contents: { parts: { text: 'SECRET' } } }],
  ['generate_content', { contents: [{ parts: [{ text: 'ok' }, { text: 'SECRET' }] }] }],
  ['generate_content', { contents: [], systemInstruction: { parts: [{ text: 'SECRET' }] } }],
  ['generate_content', { contents: [], system_instruction: { parts: { text: 'SECRET' } } }],
  [
    'generate_content',
    { contents: [{ parts: [{ functionResponse: { name: 'f', response: { a: ['SECRET'] } } }] }] },
  ],
  ['generate_content', { contents: [{ parts: [{ function_response: { response: { a: 'SECRET' } } }] }] }],
  ['generate_content', { contents: [{ parts: [{ executable_code: { code: 'SECRET' } }] }] }],
  ['generate_content', { contents: [{ parts: [{ codeExecutionResult: { output: 'SECRET' } }] }] }],
  ['moderations', { input: 'SECRET' }],
  ['moderations', { input: ['ok', 'SECRET'] }],
  ['moderations', { input: [{ type: 'text', text: 'SECRET' }] }],
  ['images', { prompt: 'SECRET' }],
  ['images', { prompt: 'ok', negative_prompt: 'SECRET' }],
  ['speech', { input: 'SECRET' }],
  ['speech', { input: 'ok', instructions: 'SECRET' }],
  ['rerank', { query: 'SECRET', documents: ['ok'] }],
  ['rerank', { query: 'ok', documents: ['ok', 'SECRET'] }],
  ['rerank', { query: 'ok', documents: [{ title: 'ok', body: 'SECRET' }] }],
  ['chat', said({ type: 'refusal', text: 'ok', refusal: 'SECRET' })],
  ['chat', said({ type: 'text', text: 'ok', refusal: 'SECRET' })],
  ['chat', said({ type: 'text', text: 'ok', content: 'SECRET' })],
  ['chat', said({ type: 'image_url', image_url: { url: 'x' }, text: 'SECRET' })],
  ['chat', said({ type: 'thinking', text: 'ok', thinking: 'SECRET' })],
  ['chat', said({ type: 'thinking', thinking: [{ type: 'text', text: 'SECRET' }] })],
  ['chat', { messages: [{ role: 'assistant', content: 'ok', reasoning_content: 'SECRET' }] }],
  ['chat', { messages: [{ role: 'assistant', content: 'ok', audio: { transcript: 'SECRET' } }] }],
  ['chat', { messages: [], prediction: { type: 'content', content: 'SECRET' } }],
  ['messages', said({ type: 'thinking', thinking: 'SECRET', signature: 's' })],
  ['messages', said({ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'SECRET' }] })],
  ['messages', said({ type: 'document', source: { type: 'text', data: 'SECRET' } })],
  [
    'messages',
    said({ type: 'web_search_tool_result', content: [{ type: 'web_search_result', title: 'SECRET' }] }),
  ],
  [
    'messages',
    said({
      type: 'web_fetch_tool_result',
      content: {
        type: 'web_fetch_result',
        content: { type: 'document', source: { type: 'text', data: 'SECRET' } },
      },
    }),
  ],
  [
    'messages',
    said({
      type: 'bash_code_execution_tool_result',
      content: { type: 'bash_code_execution_result', stdout: 'SECRET', stderr: '' },
    }),
  ],
  [
    'messages',
    said({
      type: 'text_editor_code_execution_tool_result',
      content: { type: 'text_editor_code_execution_str_replace_result', lines: ['a', 'SECRET'] },
    }),
  ],
  ['messages', said({ type: 'mcp_tool_result', content: 'SECRET' })],
  [
    'messages',
    said({
      type: 'tool_result',
      content: [{ type: 'browser_state', tabs: [{ tab_id: '1', title: 'SECRET', url: 'u' }] }],
    }),
  ],
  ['responses', items({ role: 'user', content: [{ type: 'input_text', text: 'ok', refusal: 'SECRET' }] })],
  ['responses', items({ type: 'reasoning', summary: [{ type: 'summary_text', text: 'SECRET' }] })],
  ['responses', items({ type: 'mcp_call', output: 'SECRET' })],
  ['responses', items({ type: 'mcp_call', error: { type: 'http_error', code: 1, message: 'SECRET' } })],
  [
    'responses',
    items({ type: 'shell_call_output', output: [{ stdout: 'ok', stderr: 'SECRET', outcome: {} }] }),
  ],
  ['responses', items({ type: 'code_interpreter_call', outputs: [{ type: 'logs', logs: 'SECRET' }] })],
  ['responses', items({ type: 'file_search_call', results: [{ text: 'SECRET', filename: 'f' }] })],
  ['responses', items({ type: 'program_output', result: 'SECRET' })],
  ['responses', items({ type: 'mcp_approval_response', approve: true, reason: 'SECRET' })],
  ['responses', items({ type: 'apply_patch_call_output', output: 'SECRET' })],
]

/** Content without text to check, which must go on to pass. */
const opaque: [LlmApi, object][] = [
  [
    'chat',
    said(
      { type: 'text', text: 'ok' },
      { type: 'image_url', image_url: { url: 'x' } },
      { type: 'file', file: {} },
    ),
  ],
  ['chat', said({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } })],
  [
    'messages',
    said(
      { type: 'image', source: { type: 'base64', data: 'AAAA' } },
      { type: 'container_upload', file_id: 'f' },
    ),
  ],
  [
    'messages',
    said(
      { type: 'tool_use', id: 't', name: 'n', input: { text: 'x' } },
      { type: 'redacted_thinking', data: 'x' },
    ),
  ],
  [
    'messages',
    said({ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' } }),
  ],
  [
    'responses',
    items({ type: 'function_call', name: 'n', arguments: '{}' }, { type: 'item_reference', id: 'i' }),
  ],
  ['responses', items({ id: 'msg_1' }, { id: 'msg_2', type: null })],
  ['responses', items({ id: 'm', role: 'user', content: [{ type: 'input_image', image_url: 'x' }] })],
  ['responses', items({ type: 'reasoning', summary: [], encrypted_content: 'x' })],
  ['responses', items({ type: 'configuration_update', text: { format: { type: 'text' } } })],
  [
    'responses',
    items({
      type: 'web_search_call',
      action: { type: 'search', query: 'q', sources: [{ type: 'url', url: 'u' }] },
    }),
  ],
  [
    'responses',
    items({ type: 'computer_call_output', output: { type: 'computer_screenshot', image_url: 'x' } }),
  ],
]

const unknownInRequests: [LlmApi, object][] = [
  ['generate_content', { contents: [{ parts: [{ hologram: { text: 'SECRET' } }] }] }],
  ['chat', said({ type: 'hologram', hologram: 'SECRET' })],
  ['chat', said({ data: 'SECRET' })],
  ['messages', said({ type: 'hologram_tool_result', data: 'SECRET' })],
  ['messages', said({ type: 'tool_result', content: [{ type: 'hologram', data: 'SECRET' }] })],
  ['messages', said({ type: 'document', source: { type: 'hologram', data: 'SECRET' } })],
  ['responses', items({ type: 'hologram_call_output', hologram: 'SECRET' })],
  ['responses', items({ data: 'SECRET' })],
  ['responses', items({ id: 'msg_1', data: 'SECRET' })],
  ['responses', items({ role: 'user', content: [{ type: 'input_hologram', data: 'SECRET' }] })],
]

describe('a request', () => {
  it.each(hiddenInRequests)('is rejected for text in any place: %s, %j', async (api, request) => {
    expect(await statusOf(both, { api, request })).toBe(403)
  })

  it.each(opaque)('passes with content without text: %s, %j', async (api, request) => {
    expect(await statusOf(both, { api, request })).toBe(200)
  })

  it.each(unknownInRequests)('fails its check for content of unknown type: %s, %j', async (api, request) => {
    expect(await statusOf(both, { api, request })).toBe(503)
    expect(await statusOf({ ...both, unknownContent: 'reject' }, { api, request })).toBe(503)
    expect(await statusOf({ ...both, unknownContent: 'allow' }, { api, request })).toBe(200)
  })

  it('of unknown type is still checked for the texts that are found in it', async () => {
    const request = said({ type: 'hologram', text: 'SECRET' })
    expect(await statusOf({ ...both, unknownContent: 'allow' }, { request })).toBe(403)
  })

  it('passes by a guard that fails open, and the log has the reason', async () => {
    const webhook = { target: { host: 'guard.test:8000' }, failureMode: 'failOpen' } as const
    const outcome = await pass(fixtureGuards({ request: [{ webhook }] }, acts({})), {
      request: said({ type: 'hologram', data: 'x' }),
    })
    expect(outcome.status).toBe(200)
    expect(outcome.exchange.guards).toMatchObject([
      { outcome: 'fail_open', reason: 'content of unknown type "hologram"' },
    ])
  })

  it('has each place decide for its own guards', async () => {
    const model = { request: [rejecting] }
    const guards = fixtureGuards({ ...both, unknownContent: 'allow' }, acts({}), {
      ofModels: [{ scope: 'model m', config: model }],
    })
    const request = said({ type: 'hologram', data: 'x' })
    expect((await pass(guards, { request, guardrailsOfModels: [model] })).status).toBe(503)
    expect((await pass(guards, { request })).status).toBe(200)
  })
})

const wholes: [LlmApi, object, number][] = [
  [
    'chat',
    { choices: [{ message: { content: [{ type: 'refusal', text: 'ok', refusal: 'SECRET' }] } }] },
    403,
  ],
  ['chat', { choices: [{ message: { content: null, audio: { transcript: 'SECRET' } } }] }, 403],
  ['chat', { choices: [{ message: { content: 'ok', reasoning_content: 'SECRET' } }] }, 200],
  ['chat', { choices: [{ message: { content: [{ type: 'hologram', data: 'x' }] } }] }, 503],
  [
    'messages',
    {
      content: [
        { type: 'thinking', thinking: 'SECRET' },
        { type: 'text', text: 'ok' },
      ],
    },
    200,
  ],
  ['messages', { content: [{ type: 'thinking', thinking: 'x', text: 'SECRET' }] }, 403],
  [
    'messages',
    {
      content: [
        { type: 'code_execution_tool_result', content: { type: 'code_execution_result', stdout: 'SECRET' } },
      ],
    },
    403,
  ],
  ['messages', { content: [{ type: 'hologram', data: 'x' }] }, 503],
  ['responses', { output: [{ type: 'mcp_call', output: 'SECRET' }] }, 403],
  [
    'responses',
    { output: [{ type: 'code_interpreter_call', outputs: [{ type: 'logs', logs: 'SECRET' }] }] },
    403,
  ],
  [
    'responses',
    { output: [{ type: 'reasoning', summary: [{ type: 'summary_text', text: 'SECRET' }] }] },
    200,
  ],
  ['responses', { output: [{ type: 'hologram_call', data: 'x' }] }, 503],
]

describe('an answer', () => {
  it.each(wholes)('is checked by the types of its content: %s, %j', async (api, answer, status) => {
    expect(await statusOf({ response: [rejecting] }, { api, answer: JSON.stringify(answer) })).toBe(status)
  })

  it('of unknown content passes where that is allowed', async () => {
    const answer = JSON.stringify({ content: [{ type: 'hologram', data: 'x' }] })
    expect(
      await statusOf({ response: [rejecting], unknownContent: 'allow' }, { api: 'messages', answer }),
    ).toBe(200)
  })
})

function events(...list: object[]): string[] {
  return list.map((event) => `event: ${Reflect.get(event, 'type')}\ndata: ${JSON.stringify(event)}\n\n`)
}

const start = { type: 'content_block_start', index: 0 }
const streams: [string, LlmApi, string[], number][] = [
  [
    'a tool result of Anthropic',
    'messages',
    events({
      ...start,
      content_block: {
        type: 'bash_code_execution_tool_result',
        content: { type: 'bash_code_execution_result', stdout: 'SECRET' },
      },
    }),
    403,
  ],
  [
    'a block of unknown type',
    'messages',
    events({ ...start, content_block: { type: 'hologram', data: 'x' } }),
    503,
  ],
  [
    'a delta of unknown type',
    'messages',
    events(
      { ...start, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'hologram_delta', data: 'x' } },
    ),
    503,
  ],
  [
    'a thought',
    'messages',
    events(
      { ...start, content_block: { type: 'thinking', thinking: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'SECRET' } },
    ),
    200,
  ],
  [
    'a tool result of Responses',
    'responses',
    events({
      type: 'response.output_item.done',
      output_index: 0,
      item: { type: 'mcp_call', output: 'SECRET' },
    }),
    403,
  ],
  [
    'output of a shell',
    'responses',
    events({
      type: 'response.shell_call_output_content.delta',
      output_index: 0,
      command_index: 0,
      delta: { stdout: 'SECRET' },
    }),
    403,
  ],
  [
    'an item of unknown type',
    'responses',
    events({ type: 'response.output_item.added', output_index: 0, item: { type: 'hologram', data: 'x' } }),
    503,
  ],
  ['a delta of unknown kind', 'responses', events({ type: 'response.hologram.delta', delta: 'x' }), 503],
  [
    'arguments of a call',
    'responses',
    events({ type: 'response.function_call_arguments.delta', delta: 'SECRET' }),
    200,
  ],
  [
    'the patch of a call',
    'responses',
    events({ type: 'response.apply_patch_call_operation_diff.delta', delta: '+x' }),
    200,
  ],
  [
    'a spoken word',
    'chat',
    [`data: ${JSON.stringify({ choices: [{ index: 0, delta: { audio: { transcript: 'SECRET' } } }] })}\n\n`],
    403,
  ],
  [
    'names that differ only in case',
    'chat',
    [`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'ok', Content: 'SECRET' } }] })}\n\n`],
    503,
  ],
]

describe.each(['buffered', 'windowed'] as const)('a %s stream', (streaming) => {
  it.each(streams)('is checked by the types of its content: %s', async (_, api, answer, status) => {
    const end = api === 'chat' ? 'data: [DONE]\n\n' : events({ type: 'message_stop' }).join('')
    expect(await statusOf({ response: [rejecting], streaming }, { api, answer: [...answer, end] })).toBe(
      status,
    )
  })

  it('of unknown content passes where that is allowed, and its texts are checked', async () => {
    const config: GuardrailsConfig = { response: [rejecting], streaming, unknownContent: 'allow' }
    const answer = events(
      { ...start, content_block: { type: 'hologram', data: 'x' } },
      { ...start, index: 1, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'fine' } },
    )
    const secret = events({
      type: 'content_block_delta',
      index: 1,
      delta: { type: 'text_delta', text: 'SECRET' },
    })
    expect(await statusOf(config, { api: 'messages', answer })).toBe(200)
    expect(
      await statusOf(
        { ...config, streaming: 'buffered' },
        { api: 'messages', answer: [...answer, ...secret] },
      ),
    ).toBe(403)
  })

  it('has texts of tool results replaced wherever they are', async () => {
    const masking = { regex: { rules: [{ pattern: 'SECRET' }] } }
    const item = { type: 'shell_call_output', output: [{ stdout: 'a SECRET', stderr: '' }] }
    const answer = events(
      {
        type: 'response.shell_call_output_content.delta',
        output_index: 0,
        command_index: 0,
        delta: { stdout: 'a SECRET' },
      },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { output: [item] } },
    )
    const { text } = await pass(fixtureGuards({ response: [masking], streaming }, acts({})), {
      api: 'responses',
      answer,
    })
    expect(text.match(/a <masked>/g)).toHaveLength(3)
    expect(text).not.toContain('SECRET')
  })
})
