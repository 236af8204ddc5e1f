import { encodeEvent } from '../aws/event-stream.ts'
import { type Generated, pieces, signature, textsOf, valuesOf } from './scripted-model.ts'
import { type Json, namedEvent, sse, type Wire } from './wire.ts'

/** https://docs.anthropic.com/en/api/messages */
export const messagesWire: Wire = {
  name: 'messages',
  reportsReasoning: false,
  streamType: sse,
  read(body) {
    const blocks = valuesOf(body['messages'], 'content').flat() as (Json | string)[]
    const ofType = (type: string) => blocks.filter((block) => (block as Json)['type'] === type)
    const results = ofType('tool_result')
    const prompts = blocks.filter((block) => !results.includes(block))
    const { thinking, output_config: config } = body
    return {
      text: [
        ...textsOf(prompts, 'text'),
        ...prompts.filter((block) => typeof block === 'string'),
        ...textsOf({ system: body['system'] }, 'system'),
        ...textsOf(body['system'], 'text'),
      ].join('\n'),
      images: textsOf(ofType('image'), 'data'),
      documents: textsOf(ofType('document'), 'data'),
      tools: textsOf(body['tools'] ?? [], 'name'),
      results: [...textsOf(results, 'content'), ...textsOf(results, 'text')],
      stops: (body['stop_sequences'] ?? []) as string[],
      hasSchema: valuesOf(config, 'schema').length > 0,
      reasons:
        valuesOf({ thinking }, 'type').some((type) => type !== 'disabled') ||
        valuesOf(config, 'effort').length > 0,
      audio: [],
      marks: valuesOf(body, 'cache_control').length,
      logprobs: false,
      single: valuesOf(body['tool_choice'], 'disable_parallel_tool_use').includes(true),
      signed: ofType('thinking').some((block) => (block as Json)['signature'] === signature),
    }
  },
  whole(generated, body) {
    const content = blocksOf(generated)
    const usage = { ...inputOf(generated), output_tokens: generated.tokens.output }
    return { ...head(body), content, ...endOf(generated, body), usage }
  },
  events: (generated, body) => eventsOf(generated, body).map(namedEvent),
}

/** The same in Amazon Bedrock, whose streams are binary. */
export const bedrockMessagesWire: Wire = {
  ...messagesWire,
  streamType: 'application/vnd.amazon.eventstream',
  events: (generated, body) =>
    eventsOf(generated, body).map((event) =>
      encodeEvent('chunk', { bytes: Buffer.from(JSON.stringify(event)).toString('base64') }),
    ),
}

function eventsOf(generated: Generated, body: Json): Json[] {
  const usage = { ...inputOf(generated), output_tokens: 1 }
  const message = { ...head(body), content: [], stop_reason: null, stop_sequence: null, usage }
  return [
    { type: 'message_start', message },
    { type: 'ping' },
    ...blocksOf(generated).flatMap((block, index) => blockEvents(block, index)),
    {
      type: 'message_delta',
      delta: endOf(generated, body),
      usage: { output_tokens: generated.tokens.output },
    },
    { type: 'message_stop' },
  ]
}

function head({ model = 'claude' }: Json): Json {
  return { id: 'msg_1', type: 'message', role: 'assistant', model }
}

function endOf({ finish, refusal }: Generated, body: Json): Json {
  const [sequence] = (body['stop_sequences'] ?? []) as string[]
  if (finish === 'filtered' || finish === 'blocked') {
    const details = { type: 'refusal', category: null, explanation: refusal }
    return {
      ...{ stop_reason: 'refusal', stop_sequence: null },
      ...(refusal !== undefined && { stop_details: details }),
    }
  }
  if (finish === 'stop_sequence') return { stop_reason: 'stop_sequence', stop_sequence: sequence }
  return { stop_reason: finish === 'tools' ? 'tool_use' : 'end_turn', stop_sequence: null }
}

function blocksOf({ reasoning, text, calls, citation }: Generated): Json[] {
  const cited = {
    ...{ type: 'web_search_result_location', ...citation },
    ...{ encrypted_index: 'aW5kZXg', cited_text: 'Quiet.' },
  }
  return [
    ...(reasoning === '' ? [] : [{ type: 'thinking', thinking: reasoning, signature }]),
    ...(text === '' ? [] : [{ type: 'text', text, ...(citation && { citations: [cited] }) }]),
    ...calls.map(({ name, input }, index) => ({ type: 'tool_use', id: `toolu_${index}`, name, input })),
  ]
}

function blockEvents(block: Json, index: number): Json[] {
  const [empty, deltas] = partsOf(block)
  return [
    { type: 'content_block_start', index, content_block: { ...block, ...empty } },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
}

function partsOf({ type, thinking, text, input, citations = [] }: Json): [empty: Json, deltas: Json[]] {
  if (type === 'tool_use') {
    const parts = pieces(JSON.stringify(input))
    return [{ input: {} }, parts.map((partial_json) => ({ type: 'input_json_delta', partial_json }))]
  }
  if (type === 'text') {
    const cited = (citations as Json[]).map((citation) => ({ type: 'citations_delta', citation }))
    const texts = pieces(String(text)).map((part) => ({ type: 'text_delta', text: part }))
    return [{ text: '', ...(cited.length > 0 && { citations: [] }) }, [...texts, ...cited]]
  }
  const thoughts = pieces(String(thinking)).map((part) => ({ type: 'thinking_delta', thinking: part }))
  return [{ thinking: '', signature: '' }, [...thoughts, { type: 'signature_delta', signature }]]
}

/** The service counts input without reads of its cache. */
function inputOf({ tokens: { input, cached } }: Generated): Json {
  return {
    input_tokens: input - cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
  }
}
