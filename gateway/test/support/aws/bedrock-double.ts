import type { ServerResponse } from 'node:http'
import { type MockServer, type SeenRequest, sendJson, startMockServer } from '../mock-server.ts'
import { encodeEvent, encodeException } from './event-stream.ts'
import { verifySignature } from './verify-signature.ts'

/** Tokens that the double has billed, one entry for each response. */
export type Billed = { model: string; input: number; output: number; cacheRead: number }

export type BedrockDouble = MockServer & { billed: Billed[] }

type Json = Record<string, unknown>

/** Keys of the double, by id. */
export const awsKeys: Readonly<Record<string, string>> = {
  AKIDTOLLGATE: 'secret-canary-of-bedrock-41c7',
  ASIASESSION: 'secret-canary-of-session-90ad',
}

export const bedrockRegion = 'eu-central-1'

/** Starts a server that answers as Amazon Bedrock Runtime does, and verifies each signature. */
export async function startBedrock(lifetime: 'test' | 'file' = 'test'): Promise<BedrockDouble> {
  const billed: Billed[] = []
  const server = await startMockServer((request, response) => answer(request, response, billed), lifetime)
  return Object.assign(server, { billed })
}

function refuse(response: ServerResponse, status: number, type: string, message: string): void {
  sendJson(response, { status, body: { message }, headers: { 'x-amzn-errortype': type } })
}

function answer(request: SeenRequest, response: ServerResponse, billed: Billed[]) {
  const { method, path, headers, text } = request
  const verified = verifySignature({ method, path, headers, body: text }, (id) => awsKeys[id])
  if (verified.kind === 'invalid') return refuse(response, 403, verified.code, verified.message)
  if (verified.region !== bedrockRegion || verified.service !== 'bedrock')
    return refuse(
      response,
      403,
      'InvalidSignatureException',
      `Credential should be scoped to a valid region.`,
    )
  const [, encoded = '', operation = ''] = /^\/model\/([^/]+)\/([a-z-]+)$/.exec(path) ?? []
  const model = decodeURIComponent(encoded)
  const body = request.json as Json
  if (model === 'missing.model')
    return refuse(response, 404, 'ResourceNotFoundException', 'Could not resolve the foundation model.')
  if (text.includes('throttle me'))
    return refuse(response, 429, 'ThrottlingException', 'Too many requests, please wait before trying again.')
  switch (operation) {
    case 'converse':
    case 'converse-stream': {
      const problem = converseProblem(body)
      if (problem !== undefined) return refuse(response, 400, 'ValidationException', problem)
      const reply = converse(body, model, billed)
      if (operation === 'converse') return sendJson(response, { status: 200, body: reply })
      return sendStream(response, converseEvents(reply, text.includes('break the stream')))
    }
    case 'invoke':
    case 'invoke-with-response-stream':
      return invoke({ body, model, billed, isStream: operation !== 'invoke' }, response)
    case 'count-tokens':
      return sendJson(response, { status: 200, body: { inputTokens: 17 } })
    default:
      return refuse(response, 404, 'UnknownOperationException', 'Unknown operation')
  }
}

const converseFields = [
  ...[
    'messages',
    'system',
    'inferenceConfig',
    'toolConfig',
    'guardrailConfig',
    'outputConfig',
    'serviceTier',
  ],
  ...[
    'additionalModelRequestFields',
    'additionalModelResponseFieldPaths',
    'requestMetadata',
    'performanceConfig',
  ],
]

function converseProblem(body: Json): string | undefined {
  const unknown = Object.keys(body).find((name) => !converseFields.includes(name))
  if (unknown !== undefined) return `extraneous key [${unknown}] is not permitted`
  const messages = body['messages'] as { role: string; content: Json[] }[]
  if (messages.some(({ role }, index) => role !== (index % 2 === 0 ? 'user' : 'assistant')))
    return 'A conversation must alternate between user and assistant roles.'
  const blocks = messages.flatMap(({ content }) => content)
  if (blocks.some((block) => block['text'] === ''))
    return 'The text field in the ContentBlock object is blank.'
  if (body['toolConfig'] === undefined && blocks.some((block) => 'toolUse' in block || 'toolResult' in block))
    return 'The toolConfig field must be defined when using toolUse and toolResult content blocks.'
  return undefined
}

function converse(body: Json, model: string, billed: Billed[]): Json {
  const text = JSON.stringify(body['messages'])
  const usage = {
    inputTokens: 21,
    outputTokens: 9,
    totalTokens: 30,
    cacheReadInputTokens: 0,
    cacheWriteInputTokens: 0,
  }
  if (text.includes('cachePoint')) usage.cacheReadInputTokens = 100
  billed.push({
    model,
    input: usage.inputTokens,
    output: usage.outputTokens,
    cacheRead: usage.cacheReadInputTokens,
  })
  const reply = (content: Json[], stopReason: string) => ({
    output: { message: { role: 'assistant', content } },
    stopReason,
    usage,
    metrics: { latencyMs: 10 },
  })
  if (body['guardrailConfig'] !== undefined && text.includes('forbidden'))
    return reply([{ text: 'Blocked by the guardrail.' }], 'guardrail_intervened')
  if (body['toolConfig'] !== undefined && !text.includes('toolResult')) {
    const call = (id: string, city: string) => ({
      toolUse: { toolUseId: id, name: 'get_weather', input: { city } },
    })
    return reply([call('tooluse_1', 'Paris'), call('tooluse_2', 'Rome')], 'tool_use')
  }
  if (text.includes('think'))
    return reply(
      [
        { reasoningContent: { reasoningText: { text: 'Let me see.', signature: 'c2lnbmVk' } } },
        { reasoningContent: { redactedContent: 'cmVkYWN0ZWQ=' } },
        { text: 'Done.' },
      ],
      'end_turn',
    )
  if (body['outputConfig'] !== undefined) return reply([{ text: '{"city":"Paris"}' }], 'end_turn')
  return reply([{ text: 'Hello from Bedrock' }], 'end_turn')
}

/** The events of a stream with the same content, in two deltas for each block. */
function converseEvents(reply: Json, isBroken: boolean): Buffer[] {
  const { output, stopReason, usage, metrics } = reply as {
    output: { message: { content: Json[] } }
    [name: string]: unknown
  }
  const events = [encodeEvent('messageStart', { role: 'assistant', p: 'abcdef' })]
  for (const [contentBlockIndex, block] of output.message.content.entries()) {
    const { start, deltas } = deltasOf(block)
    if (start) events.push(encodeEvent('contentBlockStart', { contentBlockIndex, start }))
    for (const delta of deltas)
      events.push(encodeEvent('contentBlockDelta', { contentBlockIndex, delta, p: 'ab' }))
    events.push(encodeEvent('contentBlockStop', { contentBlockIndex, p: 'abcd' }))
  }
  if (isBroken)
    return [...events, encodeException('modelStreamErrorException', 'The model stopped unexpectedly.')]
  events.push(encodeEvent('messageStop', { stopReason, p: 'abc' }))
  events.push(encodeEvent('metadata', { usage, metrics, p: 'a' }))
  return events
}

function deltasOf(block: Json): { start?: Json; deltas: Json[] } {
  const halves = (text: string) => [text.slice(0, 4), text.slice(4)]
  if (typeof block['text'] === 'string') return { deltas: halves(block['text']).map((text) => ({ text })) }
  const { toolUse, reasoningContent } = block as { toolUse?: Json; reasoningContent?: Json }
  if (toolUse !== undefined) {
    const { toolUseId, name, input } = toolUse
    return {
      start: { toolUse: { toolUseId, name } },
      deltas: halves(JSON.stringify(input)).map((part) => ({ toolUse: { input: part } })),
    }
  }
  const { reasoningText, redactedContent } = (reasoningContent ?? {}) as {
    reasoningText?: { text: string; signature: string }
    redactedContent?: string
  }
  if (reasoningText === undefined) return { deltas: [{ reasoningContent: { redactedContent } }] }
  const texts = halves(reasoningText.text).map((text) => ({ reasoningContent: { text } }))
  return { deltas: [...texts, { reasoningContent: { signature: reasoningText.signature } }] }
}

type Invocation = { body: Json; model: string; billed: Billed[]; isStream: boolean }

function invoke({ body, model, billed, isStream }: Invocation, response: ServerResponse) {
  if (model.includes('titan-embed')) {
    billed.push({ model, input: 3, output: 0, cacheRead: 0 })
    return sendJson(response, { status: 200, body: { embedding: [0.5, -0.25], inputTextTokenCount: 3 } })
  }
  if (model.includes('cohere.embed')) {
    const embeddings = (body['texts'] as string[]).map(() => [0.5, -0.25])
    billed.push({ model, input: 4, output: 0, cacheRead: 0 })
    const headers = { 'x-amzn-bedrock-input-token-count': '4' }
    return sendJson(response, {
      status: 200,
      body: { id: 'x', embeddings, response_type: 'embeddings_floats' },
      headers,
    })
  }
  if (model.startsWith('meta.')) return generate({ body, model, billed, isStream }, response)
  const unknown = ['model', 'stream', 'service_tier'].find((name) => name in body)
  // Anthropic's SDK sends the version of its own API.
  const version = body['anthropic_version']
  if (unknown !== undefined || (version !== 'bedrock-2023-05-31' && version !== '2026-10-21'))
    return refuse(response, 400, 'ValidationException', `${unknown}: Extra inputs are not permitted`)
  const usage = {
    input_tokens: 12,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 5,
    output_tokens: 7,
  }
  billed.push({ model, input: 12, output: 7, cacheRead: 5 })
  const head = { id: 'msg_bdrk_01', type: 'message', role: 'assistant', model: 'claude-sonnet-4-5' }
  const thinking = { type: 'thinking', thinking: 'Let me see.', signature: 'c2lnbmVk' }
  const text = { type: 'text', text: 'Hello from Claude' }
  const end = { stop_reason: 'end_turn', stop_sequence: null }
  if (!isStream)
    return sendJson(response, { status: 200, body: { ...head, content: [thinking, text], ...end, usage } })
  const block = (index: number, content_block: Json, deltas: Json[]) => [
    { type: 'content_block_start', index, content_block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
  const events: Json[] = [
    {
      type: 'message_start',
      message: {
        ...head,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { ...usage, output_tokens: 1 },
      },
    },
    ...block(0, { type: 'thinking', thinking: '', signature: '' }, [
      { type: 'thinking_delta', thinking: 'Let me see.' },
      { type: 'signature_delta', signature: 'c2lnbmVk' },
    ]),
    ...block(1, { type: 'text', text: '' }, [
      { type: 'text_delta', text: 'Hello' },
      { type: 'text_delta', text: ' from Claude' },
    ]),
    { type: 'message_delta', delta: end, usage: { output_tokens: 7 } },
    {
      type: 'message_stop',
      'amazon-bedrock-invocationMetrics': { inputTokenCount: 12, outputTokenCount: 7 },
    },
  ]
  const isBroken = JSON.stringify(body).includes('break the stream')
  const sent = (isBroken ? events.slice(0, 3) : events).map((event) =>
    encodeEvent('chunk', { bytes: Buffer.from(JSON.stringify(event)).toString('base64'), p: 'abc' }),
  )
  if (isBroken)
    sent.push(encodeException('throttlingException', 'Too many tokens, please wait before trying again.'))
  sendStream(response, sent)
}

/** A model with an API of its own, by `InvokeModel`. */
function generate({ body, model, billed, isStream }: Invocation, response: ServerResponse) {
  if (typeof body['prompt'] !== 'string')
    return refuse(response, 400, 'ValidationException', 'required key [prompt] not found')
  billed.push({ model, input: 8, output: 5, cacheRead: 0 })
  const words = ['Hello', ' from', ' Llama']
  if (!isStream) {
    const headers = { 'x-amzn-bedrock-input-token-count': '8', 'x-amzn-bedrock-output-token-count': '5' }
    return sendJson(response, {
      status: 200,
      body: { generation: words.join(''), stop_reason: 'stop' },
      headers,
    })
  }
  const last = {
    generation: '',
    stop_reason: 'stop',
    'amazon-bedrock-invocationMetrics': { inputTokenCount: 8, outputTokenCount: 5 },
  }
  const chunks = [...words.map((generation) => ({ generation, stop_reason: null })), last]
  sendStream(
    response,
    chunks.map((chunk) =>
      encodeEvent('chunk', { bytes: Buffer.from(JSON.stringify(chunk)).toString('base64') }),
    ),
  )
}

/** In pieces that do not respect the messages. */
function sendStream(response: ServerResponse, messages: Buffer[]): void {
  response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' })
  const bytes = Buffer.concat(messages)
  for (let at = 0; at < bytes.length; at += 97) response.write(bytes.subarray(at, at + 97))
  response.end()
}
