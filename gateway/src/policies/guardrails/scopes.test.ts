import { describe, expect, it } from 'vitest'
import {
  acts,
  type FixtureCall,
  fixtureGuards,
  masking,
  pass,
  sentTo,
  webhookGuard,
} from '../../../test/fixtures/guardrails.ts'
import type { GuardrailsConfig } from './config.ts'
import { checkGuardrails } from './config.ts'
import { type ContentScope, contentScopes } from './content/scopes/content-scope.ts'

type Api = NonNullable<FixtureCall['api']>
type Phase = 'request' | 'response'

/** The texts of a guard with these scopes, as `role: content`. */
async function shown(phase: Phase, scope: ContentScope[] | undefined, call: FixtureCall): Promise<string[]> {
  const guards = fixtureGuards({ [phase]: [{ ...webhookGuard, scope }] }, acts({}))
  await pass(guards, call)
  return textsOf(sentTo(guards.calls[0]))
}

function textsOf(sent: unknown): string[] {
  const { messages, choices } = Object(Object(sent).body)
  const list: unknown[] = messages ?? (choices ?? []).map((choice: unknown) => Object(choice).message)
  return list.map((message) => `${Object(message).role}: ${Object(message).content}`)
}

const apis = ['chat', 'messages', 'responses', 'generate_content'] as const

const schema = {
  type: 'object',
  properties: { name: { type: 'string', description: 'mask of a city' } },
  required: ['name'],
}

const requests: Record<(typeof apis)[number], object> = {
  chat: {
    model: 'm',
    messages: [
      { role: 'developer', content: 'mask rules' },
      { role: 'user', content: 'mask question' },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'mask thought',
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'find', arguments: '{"name":"mask"}' } },
          { id: 'c2', type: 'custom', custom: { name: 'run', input: 'mask input' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'mask result' },
    ],
    tools: [{ type: 'function', function: { name: 'find', description: 'mask tool', parameters: schema } }],
  },
  messages: {
    model: 'm',
    max_tokens: 9,
    system: 'mask rules',
    messages: [
      { role: 'user', content: 'mask question' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'mask thought', signature: 's' },
          { type: 'tool_use', id: 'c1', name: 'find', input: { name: 'mask' } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'c1', content: [{ type: 'text', text: 'mask result' }] },
          { type: 'text', text: 'mask more' },
        ],
      },
    ],
    tools: [{ name: 'find', description: 'mask tool', input_schema: schema }],
  },
  responses: {
    model: 'm',
    instructions: 'mask rules',
    input: [
      { role: 'user', content: 'mask question' },
      { type: 'reasoning', id: 'r1', summary: [{ type: 'summary_text', text: 'mask thought' }] },
      { type: 'function_call', call_id: 'c1', name: 'find', arguments: '{"name":"mask"}' },
      { type: 'shell_call', call_id: 'c2', action: { commands: ['mask input'] } },
      { type: 'function_call_output', call_id: 'c1', output: 'mask result' },
    ],
    tools: [{ type: 'function', name: 'find', description: 'mask tool', parameters: schema }],
  },
  generate_content: {
    systemInstruction: { parts: [{ text: 'mask rules' }] },
    contents: [
      { role: 'user', parts: [{ text: 'mask question' }] },
      {
        role: 'model',
        parts: [
          { text: 'mask thought', thought: true },
          { functionCall: { name: 'find', args: { name: 'mask' } } },
        ],
      },
      {
        role: 'user',
        parts: [
          { functionResponse: { name: 'find', response: { output: 'mask result' } } },
          { text: 'mask more' },
        ],
      },
    ],
    tools: [{ functionDeclarations: [{ name: 'find', description: 'mask tool', parameters: schema }] }],
  },
}

const expected: Record<keyof typeof requests, Partial<Record<ContentScope, string[]>>> = {
  chat: {
    systemPrompt: ['developer: mask rules'],
    messages: ['user: mask question'],
    toolOutput: ['tool: mask result'],
    toolInput: ['assistant: {"name":"mask"}', 'assistant: mask input'],
    toolDefinitions: ['system: mask tool\nmask of a city'],
    reasoning: ['assistant: mask thought'],
  },
  messages: {
    systemPrompt: ['system: mask rules'],
    messages: ['user: mask question', 'user: mask more'],
    toolOutput: ['tool: mask result'],
    toolInput: ['assistant: {"name":"mask"}'],
    toolDefinitions: ['system: mask tool\nmask of a city'],
    reasoning: ['assistant: mask thought'],
  },
  responses: {
    systemPrompt: ['system: mask rules'],
    messages: ['user: mask question'],
    toolOutput: ['tool: mask result'],
    toolInput: ['assistant: {"name":"mask"}', 'assistant: {"commands":["mask input"]}'],
    toolDefinitions: ['system: mask tool\nmask of a city'],
    reasoning: ['assistant: mask thought'],
  },
  generate_content: {
    systemPrompt: ['system: mask rules'],
    messages: ['user: mask question', 'user: mask more'],
    toolOutput: ['tool: mask result'],
    toolInput: ['assistant: {"name":"mask"}'],
    toolDefinitions: ['system: mask tool\nmask of a city'],
    reasoning: ['assistant: mask thought'],
  },
}

const each = apis.flatMap((api) => contentScopes.map((scope) => ({ api, scope })))

describe('scopes of requests', () => {
  it.each(each)('$scope of $api are the texts of a guard', async ({ api, scope }) => {
    const texts = await shown('request', [scope], { api, request: requests[api] })
    expect(texts.filter((text) => !text.endsWith(': '))).toEqual(expected[api][scope])
  })

  it.each(each)('$scope of $api are the texts that a guard changes', async ({ api, scope }) => {
    const guards = fixtureGuards({ request: [{ ...webhookGuard, scope: [scope] }] }, masking)
    const { asked = '' } = await pass(guards, { api, request: requests[api] })
    const count = (text: string) => text.split('mask').length - 1
    const inScope = (expected[api][scope] ?? []).reduce((sum, text) => sum + count(text), 0)
    expect(count(JSON.stringify(requests[api])) - count(asked)).toBe(inScope)
    expect(Object.keys(JSON.parse(asked))).toEqual(Object.keys(requests[api]))
  })

  it.each(apis)('of %s do not change the texts of guards without them', async (api) => {
    const alone = await shown('request', undefined, { api, request: requests[api] })
    const scoped = { ...webhookGuard, scope: [...contentScopes] }
    const guards = fixtureGuards({ request: [webhookGuard, scoped] }, acts({}))
    await pass(guards, { api, request: requests[api] })
    expect(textsOf(sentTo(guards.calls[0]))).toEqual(alone)
    expect(alone.join()).not.toMatch(/input|"name"|city/)
  })

  it('permit a change by a guard without them, which is in the text of its part', async () => {
    const scoped = { regex: { rules: [{ pattern: 'result' }] }, scope: ['toolOutput' as const] }
    const guards = fixtureGuards({ request: [webhookGuard, scoped] }, masking)
    const { asked = '' } = await pass(guards, { api: 'messages', request: requests.messages })
    expect(JSON.parse(asked).messages[2].content).toMatchObject([
      { type: 'tool_result', content: [{ type: 'text', text: '**** <masked>' }] },
      { type: 'text', text: '**** more' },
    ])
  })

  it('call no guard without text', async () => {
    const guards = fixtureGuards({ request: [{ ...webhookGuard, scope: ['toolInput'] }] }, acts({}))
    expect((await pass(guards)).status).toBe(200)
    expect(guards.calls).toHaveLength(0)
  })

  it('fail the check if arguments are no longer JSON', async () => {
    const broken = () => acts({ body: { messages: [{ role: 'assistant', content: '<masked>' }] } })
    const guards = fixtureGuards({ request: [{ ...webhookGuard, scope: ['toolInput'] }] }, broken())
    const { status, asked } = await pass(guards, { api: 'messages', request: requests.messages })
    expect({ status, asked }).toEqual({ status: 503, asked: undefined })
  })

  it('exclude scopes that responses do not have', () => {
    const found: string[] = []
    const scope: ContentScope[] = ['messages', 'systemPrompt', 'toolDefinitions']
    const config: GuardrailsConfig = { response: [{ ...webhookGuard, scope }] }
    checkGuardrails(config, [], (path, message) => found.push(`${path.join('.')}: ${message}`))
    expect(found).toEqual([
      'response.0.scope.1: systemPrompt is only valid in request guards',
      'response.0.scope.2: toolDefinitions is only valid in request guards',
    ])
  })
})

type Event = { type?: string; [member: string]: unknown }

const sse = (events: readonly Event[], done = '') =>
  events
    .map((event) => `${event.type ? `event: ${event.type}\n` : ''}data: ${JSON.stringify(event)}\n\n`)
    .join('') + done

/** A text, reasoning, and a tool call whose arguments arrive in pieces. */
const replies: Record<(typeof apis)[number], { whole: object; stream: string }> = {
  chat: {
    whole: {
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'mask answer',
            reasoning_content: 'mask thought',
            tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":"mask"}' } }],
          },
        },
      ],
    },
    stream: sse(
      [
        { role: 'assistant', reasoning_content: 'ma' },
        { reasoning_content: 'sk thought' },
        { content: 'ma' },
        { content: 'sk answer' },
        { tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '' } }] },
        { tool_calls: [{ index: 0, function: { arguments: '{"a":"ma' } }] },
        { tool_calls: [{ index: 0, function: { arguments: 'sk"}' } }] },
      ].map((delta) => ({ id: 'x', choices: [{ index: 0, delta }] })),
      'data: [DONE]\n\n',
    ),
  },
  messages: {
    whole: {
      content: [
        { type: 'thinking', thinking: 'mask thought', signature: 's' },
        { type: 'text', text: 'mask answer' },
        { type: 'tool_use', id: 'c1', name: 'f', input: { a: 'mask' } },
      ],
    },
    stream: sse([
      { type: 'message_start', message: { role: 'assistant', content: [] } },
      { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'ma' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'sk thought' } },
      { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'mask answer' } },
      {
        type: 'content_block_start',
        index: 2,
        content_block: { type: 'tool_use', id: 'c1', name: 'f', input: {} },
      },
      {
        type: 'content_block_delta',
        index: 2,
        delta: { type: 'input_json_delta', partial_json: '{"a":"ma' },
      },
      { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: 'sk"}' } },
      { type: 'message_stop' },
    ]),
  },
  responses: {
    whole: {
      output: [
        { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: 'mask thought' }] },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'mask answer' }] },
        { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":"mask"}' },
      ],
    },
    stream: sse([
      { type: 'response.reasoning_summary_text.delta', output_index: 0, summary_index: 0, delta: 'ma' },
      {
        type: 'response.reasoning_summary_text.delta',
        output_index: 0,
        summary_index: 0,
        delta: 'sk thought',
      },
      {
        type: 'response.reasoning_summary_text.done',
        output_index: 0,
        summary_index: 0,
        text: 'mask thought',
      },
      { type: 'response.output_text.delta', output_index: 1, content_index: 0, delta: 'mask answer' },
      { type: 'response.output_text.done', output_index: 1, content_index: 0, text: 'mask answer' },
      { type: 'response.function_call_arguments.delta', output_index: 2, delta: '{"a":"ma' },
      { type: 'response.function_call_arguments.delta', output_index: 2, delta: 'sk"}' },
      { type: 'response.function_call_arguments.done', output_index: 2, arguments: '{"a":"mask"}' },
      {
        type: 'response.output_item.done',
        output_index: 2,
        item: { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":"mask"}' },
      },
      {
        type: 'response.completed',
        response: {
          output: [
            { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: 'mask thought' }] },
            { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'mask answer' }] },
            { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":"mask"}' },
          ],
        },
      },
    ]),
  },
  generate_content: {
    whole: {
      candidates: [
        {
          content: {
            role: 'model',
            parts: [
              { text: 'mask thought', thought: true },
              { text: 'mask answer' },
              { functionCall: { name: 'f', args: { a: 'mask' } } },
            ],
          },
        },
      ],
    },
    stream: sse(
      [
        { text: 'ma', thought: true },
        { text: 'sk thought', thought: true },
        { text: 'ma' },
        { text: 'sk answer' },
        { functionCall: { name: 'f', args: { a: 'mask' } } },
      ].map((part) => ({ candidates: [{ index: 0, content: { role: 'model', parts: [part] } }] })),
    ),
  },
}

const ofResponses: [ContentScope, string][] = [
  ['messages', 'assistant: mask answer'],
  ['toolInput', 'assistant: {"a":"mask"}'],
  ['reasoning', 'assistant: mask thought'],
]

describe('scopes of responses', () => {
  const cases = apis.flatMap((api) =>
    ofResponses.flatMap(([scope, text]) =>
      (['whole', 'buffered', 'windowed'] as const).map((mode) => ({ api, scope, text, mode })),
    ),
  )
  const answerOf = (api: (typeof apis)[number], mode: string) =>
    mode === 'whole' ? JSON.stringify(replies[api].whole) : [replies[api].stream]

  it.each(cases)('$scope of $api, $mode, are the texts of a guard', async ({ api, scope, text, mode }) => {
    const guard = { ...webhookGuard, scope: [scope] }
    const streaming = mode === 'windowed' ? 'windowed' : 'buffered'
    const guards = fixtureGuards({ response: [guard], streaming }, acts({}))
    const answer = answerOf(api, mode)
    const outcome = await pass(guards, { api: api satisfies Api, answer })
    const texts = guards.calls.flatMap((call) => textsOf(sentTo(call))).filter((each) => !each.endsWith(': '))
    expect([...new Set(texts)]).toEqual([text])
    expect(outcome.text).toBe(typeof answer === 'string' ? answer : answer.join(''))
  })

  it.each(cases)(
    '$scope of $api, $mode, are the texts that a guard changes',
    async ({ api, scope, mode }) => {
      const streaming = mode === 'windowed' ? 'windowed' : 'buffered'
      const guards = fixtureGuards({ response: [{ ...webhookGuard, scope: [scope] }], streaming }, masking)
      const { text } = await pass(guards, { api, answer: answerOf(api, mode) })
      const assembled = await shownAfter(api, mode, text)
      expect(assembled).toEqual(
        ofResponses
          .map(([each, content]) => (each === scope ? content.replace('mask', '****') : content))
          .sort(),
      )
    },
  )

  /** The texts of a response by a reading with all scopes. */
  async function shownAfter(api: (typeof apis)[number], mode: string, text: string): Promise<string[]> {
    const scope: ContentScope[] = ['messages', 'toolInput', 'reasoning']
    const answer = mode === 'whole' ? text : [text]
    const texts = await shown('response', scope, { api, answer })
    return [...new Set(texts.filter((each) => !each.endsWith(': ')))].sort()
  }

  it.each(apis)('of %s do not change the texts of guards without them', async (api) => {
    for (const answer of [JSON.stringify(replies[api].whole), [replies[api].stream]]) {
      const alone = await shown('response', undefined, { api, answer })
      const scoped = {
        ...webhookGuard,
        scope: ['messages', 'toolInput', 'reasoning'] satisfies ContentScope[],
      }
      const guards = fixtureGuards({ response: [webhookGuard, scoped] }, acts({}))
      await pass(guards, { api, answer })
      expect(textsOf(sentTo(guards.calls[0]))).toEqual(alone)
      expect(alone.join()).not.toMatch(/thought|"a"/)
    }
  })

  it.each(apis)('of %s find texts in streams cut at every byte', async (api) => {
    const scope: ContentScope[] = ['messages', 'toolInput', 'reasoning']
    const bytes = [...Buffer.from(replies[api].stream)].map((byte) => Uint8Array.of(byte))
    for (const streaming of ['buffered', 'windowed'] as const) {
      const guards = fixtureGuards({ response: [{ ...webhookGuard, scope }], streaming }, masking)
      const { text } = await pass(guards, { api, answer: bytes })
      const together = fixtureGuards({ response: [{ ...webhookGuard, scope }], streaming }, masking)
      expect(text).toBe((await pass(together, { api, answer: [replies[api].stream] })).text)
      expect(text).not.toMatch(/ma(?:sk)?"/)
    }
  })

  it('remove the log probabilities of a message with any of its texts', async () => {
    const content = [
      { type: 'thinking', thinking: 'thought' },
      { type: 'text', text: 'one' },
      { type: 'thinking', thinking: 'thought' },
      { type: 'text', text: 'mask' },
    ]
    const logprobs = { content: [{ token: 'mask', logprob: 0 }] }
    const answer = JSON.stringify({
      choices: [{ index: 0, message: { role: 'assistant', content }, logprobs }],
    })
    for (const replaced of ['mask', 'one|mask', 'thought|one|mask']) {
      const scope: ContentScope[] = ['messages', 'reasoning']
      const guard = { regex: { rules: [{ pattern: replaced }] }, scope }
      const { text } = await pass(fixtureGuards({ response: [guard] }, acts({})), { answer })
      expect(JSON.parse(text).choices[0]).toMatchObject({ logprobs: null })
      expect(text).not.toContain('mask"')
    }
  })

  it('keep the arguments of parallel calls apart', async () => {
    const piece = (index: number, text: string) => ({
      choices: [{ index: 0, delta: { tool_calls: [{ index, function: { arguments: text } }] } }],
    })
    const answer = [sse([piece(0, '{"a":"ma'), piece(1, '{"b":"ma'), piece(0, 'sk"}'), piece(1, 'sk"}')])]
    const texts = await shown('response', ['toolInput'], { answer })
    expect(texts).toEqual(['assistant: {"a":"mask"}', 'assistant: {"b":"mask"}'])
  })

  it('call no guard for a part of a stream without its content', async () => {
    const reasoning = { ...webhookGuard, scope: ['reasoning'] satisfies ContentScope[] }
    const guards = fixtureGuards({ response: [webhookGuard, reasoning], streaming: 'windowed' }, acts({}))
    const thought = 'thought '.repeat(200)
    const events = [{ reasoning_content: thought }, { content: 'answer' }]
    await pass(guards, { answer: [sse(events.map((delta) => ({ choices: [{ index: 0, delta }] })))] })
    const sent = guards.calls.flatMap((call) => textsOf(sentTo(call)))
    expect(sent.filter((text) => text.endsWith('answer'))).toHaveLength(1)
    expect(guards.calls.every((call) => textsOf(sentTo(call)).length === 1)).toBe(true)
  })
})
