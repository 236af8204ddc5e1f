import type { Lifetime } from './cleanup.ts'
import {
  type Answer,
  jsonAnswer,
  type MockServer,
  member,
  type SeenRequest,
  sendEvents,
  sendJson,
  startMockServer,
} from './mock-server.ts'

/** Behaviour of the mock that tests may change while it runs. */
export type OpenAiBehaviour = {
  content: string
  /** Pause between two events of a stream. */
  pauseMs: number
  /** Breaks the connection after so many events. */
  cutAfter: number | undefined
  usage: { prompt_tokens: number; completion_tokens: number; cached_tokens: number; reasoning_tokens: number }
}

export type MockOpenAi = MockServer & { behaviour: OpenAiBehaviour }

/** The key the mock accepts. */
export const openAiKey = 'sk-openai-canary-5f2c9d'

/** Errors in the shapes of the real service. */
export const openAiErrors = {
  rateLimited: jsonAnswer(
    429,
    {
      error: {
        message:
          'Rate limit reached for gpt-test in organization org-test on requests per min (RPM): Limit 3.',
        type: 'requests',
        param: null,
        code: 'rate_limit_exceeded',
      },
    },
    { 'retry-after': '1', 'x-request-id': 'req_limited' },
  ),
  failed: jsonAnswer(500, {
    error: {
      message: 'The server had an error while processing your request. Sorry about that!',
      type: 'server_error',
      param: null,
      code: null,
    },
  }),
  contextLength: jsonAnswer(400, {
    error: {
      message: "This model's maximum context length is 8192 tokens.",
      type: 'invalid_request_error',
      param: 'messages',
      code: 'context_length_exceeded',
    },
  }),
  unauthorized: jsonAnswer(401, {
    error: {
      message: 'Incorrect API key provided: sk-wrong.',
      type: 'invalid_request_error',
      param: null,
      code: 'invalid_api_key',
    },
  }),
} satisfies Record<string, Answer>

/** A provider that answers as the real one does. */
export async function mockOpenAi(options: { lifetime?: Lifetime } = {}): Promise<MockOpenAi> {
  const behaviour: OpenAiBehaviour = {
    content: 'Hello there, how may I help?',
    pauseMs: 0,
    cutAfter: undefined,
    usage: { prompt_tokens: 21, completion_tokens: 9, cached_tokens: 5, reasoning_tokens: 2 },
  }
  const server = await startMockServer((request, response) => {
    if (request.headers.authorization !== `Bearer ${openAiKey}`) {
      openAiErrors.unauthorized(request, response)
      return
    }
    const [path] = request.path.split('?')
    const handler = handlers[path ?? '']
    if (!handler) {
      sendJson(response, {
        status: 404,
        body: {
          error: { message: `Invalid URL (${request.method} ${path})`, type: 'invalid_request_error' },
        },
      })
      return
    }
    handler(request, response, behaviour)
  }, options.lifetime)
  return { ...server, behaviour }
}

type Handler = (request: SeenRequest, response: Parameters<Answer>[1], behaviour: OpenAiBehaviour) => void

const handlers: Record<string, Handler | undefined> = {
  '/v1/chat/completions': chat,
  '/v1/completions': legacyCompletion,
  '/v1/embeddings': embeddings,
  '/v1/responses': responses,
}

const created = 1_760_000_000
const serviceHeaders = { 'x-request-id': 'req_openai_1', 'openai-version': '2020-10-01' }

function chat(request: SeenRequest, response: Parameters<Answer>[1], behaviour: OpenAiBehaviour): void {
  const model = `${member(request.json, 'model')}-2026-01-01`
  const call = wantedTool(request.json)
  const message = call
    ? { role: 'assistant', content: null, tool_calls: [call], refusal: null, annotations: [] }
    : { role: 'assistant', content: behaviour.content, refusal: null, annotations: [] }
  const finish = call ? 'tool_calls' : 'stop'
  if (member(request.json, 'stream') !== true) {
    sendJson(response, {
      status: 200,
      headers: serviceHeaders,
      body: {
        id: 'chatcmpl-mock1',
        object: 'chat.completion',
        created,
        model,
        choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
        usage: chatUsage(behaviour),
        service_tier: 'default',
        system_fingerprint: 'fp_mock',
        x_unknown_field: { kept: true },
      },
    })
    return
  }
  const includeUsage = member(request.json, 'stream_options', 'include_usage') === true
  const chunk = (choices: unknown[], usage: unknown = null) =>
    `data: ${JSON.stringify({
      id: 'chatcmpl-mock1',
      object: 'chat.completion.chunk',
      created,
      model,
      service_tier: 'default',
      system_fingerprint: 'fp_mock',
      choices,
      ...(includeUsage && { usage }),
    })}\n\n`
  const delta = (content: object, finish_reason: string | null = null) =>
    chunk([{ index: 0, delta: content, logprobs: null, finish_reason }])
  const events = [
    delta({ role: 'assistant', content: call ? null : '', refusal: null }),
    ...(call
      ? toolDeltas(call).map((part) => delta(part))
      : words(behaviour.content).map((content) => delta({ content }))),
    delta({}, finish),
    ...(includeUsage ? [chunk([], chatUsage(behaviour))] : []),
    'data: [DONE]\n\n',
  ]
  sendEvents(response, events, behaviour)
}

function chatUsage({ usage }: OpenAiBehaviour) {
  return {
    prompt_tokens: usage.prompt_tokens,
    completion_tokens: usage.completion_tokens,
    total_tokens: usage.prompt_tokens + usage.completion_tokens,
    prompt_tokens_details: { cached_tokens: usage.cached_tokens, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoning_tokens,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}

type ToolCall = { id: string; type: 'function'; function: { name: string; arguments: string } }

/** Calls the first tool, unless the conversation already contains its result. */
function wantedTool(body: unknown): ToolCall | undefined {
  const name = member(body, 'tools', 0, 'function', 'name')
  const messages = member(body, 'messages')
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined
  if (typeof name !== 'string' || member(last, 'role') === 'tool') return undefined
  return { id: 'call_mock1', type: 'function', function: { name, arguments: '{"city":"Paris","days":3}' } }
}

function toolDeltas(call: ToolCall): object[] {
  const { name, arguments: text } = call.function
  const head = { index: 0, id: call.id, type: 'function', function: { name, arguments: '' } }
  const parts = text.match(/.{1,6}/g) ?? []
  return [head, ...parts.map((part) => ({ index: 0, function: { arguments: part } }))].map((part) => ({
    tool_calls: [part],
  }))
}

/** Pieces that joined give the text again. */
export function words(text: string): string[] {
  return text.match(/\s*\S+/g) ?? []
}

function legacyCompletion(
  request: SeenRequest,
  response: Parameters<Answer>[1],
  behaviour: OpenAiBehaviour,
): void {
  const model = member(request.json, 'model')
  const base = { id: 'cmpl-mock1', object: 'text_completion', created, model }
  const choice = (text: string, finish_reason: string | null) => ({
    text,
    index: 0,
    logprobs: null,
    finish_reason,
  })
  if (member(request.json, 'stream') === true) {
    const includeUsage = member(request.json, 'stream_options', 'include_usage') === true
    const chunk = (choices: unknown[], usage: unknown = null) =>
      `data: ${JSON.stringify({ ...base, choices, ...(includeUsage && { usage }) })}\n\n`
    sendEvents(
      response,
      [
        ...words(behaviour.content).map((word) => chunk([choice(word, null)])),
        chunk([choice('', 'stop')]),
        ...(includeUsage ? [chunk([], chatUsage(behaviour))] : []),
        'data: [DONE]\n\n',
      ],
      behaviour,
    )
    return
  }
  const body = { ...base, choices: [choice(behaviour.content, 'stop')], usage: chatUsage(behaviour) }
  sendJson(response, { status: 200, headers: serviceHeaders, body })
}

function embeddings(request: SeenRequest, response: Parameters<Answer>[1]): void {
  const input = member(request.json, 'input')
  const inputs: unknown[] = Array.isArray(input) ? input : [input]
  const vector = [0.25, -0.5, 0.125]
  const encoded = Buffer.from(Float32Array.from(vector).buffer).toString('base64')
  const embedding = member(request.json, 'encoding_format') === 'base64' ? encoded : vector
  sendJson(response, {
    status: 200,
    headers: serviceHeaders,
    body: {
      object: 'list',
      data: inputs.map((_, index) => ({ object: 'embedding', index, embedding })),
      model: member(request.json, 'model'),
      usage: { prompt_tokens: 7, total_tokens: 7 },
    },
  })
}

function responses(request: SeenRequest, response: Parameters<Answer>[1], behaviour: OpenAiBehaviour): void {
  const { usage, content } = behaviour
  const part = { type: 'output_text', annotations: [], logprobs: [], text: content }
  const item = { id: 'msg_mock1', type: 'message', status: 'completed', role: 'assistant', content: [part] }
  const base = {
    id: 'resp_mock1',
    object: 'response',
    created_at: created,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    model: member(request.json, 'model'),
    parallel_tool_calls: true,
    previous_response_id: null,
    tool_choice: 'auto',
    tools: [],
    metadata: {},
  }
  const complete = {
    ...base,
    status: 'completed',
    output: [item],
    usage: {
      input_tokens: usage.prompt_tokens,
      input_tokens_details: { cached_tokens: usage.cached_tokens },
      output_tokens: usage.completion_tokens,
      output_tokens_details: { reasoning_tokens: usage.reasoning_tokens },
      total_tokens: usage.prompt_tokens + usage.completion_tokens,
    },
  }
  if (member(request.json, 'stream') !== true) {
    sendJson(response, { status: 200, headers: serviceHeaders, body: complete })
    return
  }
  const place = { item_id: item.id, output_index: 0, content_index: 0 }
  const begun = { ...base, status: 'in_progress', output: [], usage: null }
  const events: [string, object][] = [
    ['response.created', { response: begun }],
    ['response.in_progress', { response: begun }],
    [
      'response.output_item.added',
      { output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
    ],
    ['response.content_part.added', { ...place, part: { ...part, text: '' } }],
    ...words(content).map((delta): [string, object] => [
      'response.output_text.delta',
      { ...place, delta, logprobs: [] },
    ]),
    ['response.output_text.done', { ...place, text: content, logprobs: [] }],
    ['response.content_part.done', { ...place, part }],
    ['response.output_item.done', { output_index: 0, item }],
    ['response.completed', { response: complete }],
  ]
  const lines = events.map(
    ([type, fields], index) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: index, ...fields })}\n\n`,
  )
  sendEvents(response, lines, behaviour)
}
