import type { Lifetime } from './cleanup.ts'
import { words } from './mock-openai.ts'
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

export type AnthropicBehaviour = {
  content: string
  pauseMs: number
  cutAfter: number | undefined
  /** Counts as the service reports them: input without cache reads and writes. */
  usage: { input_tokens: number; cache_read: number; cache_creation: number; output_tokens: number }
}

export type MockAnthropic = MockServer & { behaviour: AnthropicBehaviour }

/** The key the mock accepts. */
export const anthropicKey = 'sk-ant-canary-8e41b7'

function error(status: number, type: string, message: string, headers: Record<string, string> = {}): Answer {
  return jsonAnswer(
    status,
    { type: 'error', error: { type, message }, request_id: 'req_anthropic_1' },
    { 'request-id': 'req_anthropic_1', ...headers },
  )
}

/** Errors in the shapes of the real service. */
export const anthropicErrors = {
  unauthorized: error(401, 'authentication_error', 'invalid x-api-key'),
  noVersion: error(400, 'invalid_request_error', 'anthropic-version: header is required'),
  noMaxTokens: error(400, 'invalid_request_error', 'max_tokens: Field required'),
  noSampling: error(400, 'invalid_request_error', 'temperature, top_p and top_k are not supported'),
  rateLimited: error(429, 'rate_limit_error', 'This request would exceed your rate limit.', {
    'retry-after': '1',
  }),
  overloaded: error(529, 'overloaded_error', 'Overloaded'),
  failed: error(500, 'api_error', 'Internal server error'),
} satisfies Record<string, Answer>

/** A provider that answers as the real one does. */
export async function mockAnthropic(options: { lifetime?: Lifetime } = {}): Promise<MockAnthropic> {
  const behaviour: AnthropicBehaviour = {
    content: 'Bonjour, what can I do for you?',
    pauseMs: 0,
    cutAfter: undefined,
    usage: { input_tokens: 12, cache_read: 6, cache_creation: 4, output_tokens: 11 },
  }
  const server = await startMockServer((request, response) => {
    answerFor(request)(request, response, behaviour)
  }, options.lifetime)
  return { ...server, behaviour }
}

type Handler = (request: SeenRequest, response: Parameters<Answer>[1], behaviour: AnthropicBehaviour) => void

function answerFor(request: SeenRequest): Handler {
  if (!isAuthorized(request)) return anthropicErrors.unauthorized
  if (request.headers['anthropic-version'] === undefined) return anthropicErrors.noVersion
  const [path] = request.path.split('?')
  if (path === '/v1/messages/count_tokens') return jsonAnswer(200, { input_tokens: 14 })
  if (path !== '/v1/messages') return error(404, 'not_found_error', 'Not found')
  if (typeof member(request.json, 'max_tokens') !== 'number') return anthropicErrors.noMaxTokens
  if (request.headers['anthropic-version'] === '2026-10-21' && samplesByHand(request))
    return anthropicErrors.noSampling
  return messages
}

/** The service takes a key in either header. */
function isAuthorized({ headers }: SeenRequest): boolean {
  return headers['x-api-key'] === anthropicKey || headers.authorization === `Bearer ${anthropicKey}`
}

/** Version 2026-10-21 of the API refuses the sampling parameters that the version before took. */
function samplesByHand({ json }: SeenRequest): boolean {
  return ['temperature', 'top_p', 'top_k'].some((name) => member(json, name) !== undefined)
}

function messages(
  request: SeenRequest,
  response: Parameters<Answer>[1],
  behaviour: AnthropicBehaviour,
): void {
  const { usage } = behaviour
  const tool = wantedTool(request.json)
  const input = { city: 'Paris', days: 3 }
  const block = tool
    ? { type: 'tool_use', id: 'toolu_mock1', name: tool, input }
    : { type: 'text', text: behaviour.content }
  const stopReason = tool ? 'tool_use' : 'end_turn'
  const inputUsage = {
    input_tokens: usage.input_tokens,
    cache_creation_input_tokens: usage.cache_creation,
    cache_read_input_tokens: usage.cache_read,
  }
  const message = {
    id: 'msg_mock1',
    type: 'message',
    role: 'assistant',
    model: `${member(request.json, 'model')}-20260101`,
    content: [block],
    stop_reason: stopReason,
    stop_sequence: null,
    usage: { ...inputUsage, output_tokens: usage.output_tokens, service_tier: 'standard' },
    x_unknown_field: { kept: true },
  }
  if (member(request.json, 'stream') !== true) {
    sendJson(response, { status: 200, body: message, headers: { 'request-id': 'req_anthropic_1' } })
    return
  }
  const begun = {
    ...message,
    content: [],
    stop_reason: null,
    usage: { ...inputUsage, output_tokens: 1, service_tier: 'standard' },
  }
  const deltas = tool
    ? (JSON.stringify(input).match(/.{1,6}/g) ?? []).map((part) => ({
        type: 'input_json_delta',
        partial_json: part,
      }))
    : words(behaviour.content).map((text) => ({ type: 'text_delta', text }))
  const opening = tool ? { ...block, input: {} } : { type: 'text', text: '' }
  const events: (Record<string, unknown> & { type: string })[] = [
    { type: 'message_start', message: begun },
    { type: 'content_block_start', index: 0, content_block: opening },
    { type: 'ping' },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index: 0, delta })),
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: stopReason, stop_sequence: null },
      usage: { output_tokens: usage.output_tokens },
    },
    { type: 'message_stop' },
  ]
  sendEvents(
    response,
    events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
    behaviour,
  )
}

/** Calls the first tool, unless the conversation already contains its result. */
function wantedTool(body: unknown): string | undefined {
  const name = member(body, 'tools', 0, 'name')
  const conversation = member(body, 'messages')
  const last: unknown = Array.isArray(conversation) ? conversation.at(-1) : undefined
  const content = member(last, 'content')
  const hasResult = Array.isArray(content) && content.some((part) => member(part, 'type') === 'tool_result')
  return typeof name === 'string' && !hasResult ? name : undefined
}
