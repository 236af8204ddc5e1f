import { dataUrls, type Generated, logprobsOf, pieces, textsOf, valuesOf } from './scripted-model.ts'
import { dataEvent, type Json, sse, type Wire } from './wire.ts'

/** https://platform.openai.com/docs/api-reference/chat */
export const chatWire: Wire = {
  name: 'chat',
  reportsReasoning: true,
  streamType: sse,
  read(body) {
    const messages = (body['messages'] ?? []) as Json[]
    const prompts = messages.filter(({ role }) => role !== 'tool')
    const results = messages.filter(({ role }) => role === 'tool')
    const { reasoning_effort: effort, thinking, stop } = body
    return {
      text: [...textsOf(prompts, 'text'), ...textsOf(prompts, 'content')].join('\n'),
      images: dataUrls(prompts, 'image/'),
      documents: dataUrls(prompts, 'application/pdf'),
      tools: textsOf(body['tools'] ?? [], 'name'),
      results: [...textsOf(results, 'content'), ...textsOf(results, 'text')],
      stops: stop === undefined ? [] : [stop].flat().map(String),
      hasSchema: valuesOf(body['response_format'], 'schema').length > 0,
      reasons: thinking !== undefined || (typeof effort === 'string' && effort !== 'none'),
      audio: textsOf(valuesOf(prompts, 'input_audio'), 'data'),
      marks: valuesOf(messages, 'cache_control').length,
      logprobs: body['logprobs'] === true,
      single: body['parallel_tool_calls'] === false,
      signed: undefined,
    }
  },
  whole(generated, body) {
    const { reasoning, text, calls, refusal = null, citation } = generated
    const message = {
      role: 'assistant',
      content: calls.length > 0 ? null : text,
      refusal,
      ...(citation && { annotations: [annotationOf(generated)] }),
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      ...(calls.length > 0 && { tool_calls: calls.map((_, index) => toolCall(generated, index)) }),
    }
    const choice = {
      index: 0,
      message,
      logprobs: logprobsOf(generated, text),
      finish_reason: finishOf(generated),
    }
    return { ...head(body), object: 'chat.completion', choices: [choice], usage: usageOf(generated) }
  },
  events(generated, body) {
    const chunk = (choices: Json[], more: Json = {}) =>
      dataEvent({ ...head(body), object: 'chat.completion.chunk', choices, ...more })
    const delta = (fields: Json, finish_reason: string | null = null) => {
      const logprobs = logprobsOf(generated, fields['content'])
      return chunk([{ index: 0, delta: fields, ...(logprobs && { logprobs }), finish_reason }])
    }
    const options = body['stream_options'] as { include_usage?: boolean } | undefined
    return [
      delta({ role: 'assistant', content: generated.calls.length > 0 ? null : '' }),
      ...pieces(generated.reasoning).map((reasoning_content) => delta({ reasoning_content })),
      ...pieces(generated.text).map((content) => delta({ content })),
      ...pieces(generated.refusal ?? '').map((refusal) => delta({ refusal })),
      ...(generated.citation ? [delta({ annotations: [annotationOf(generated)] })] : []),
      ...generated.calls.flatMap((_, index) => callDeltas(generated, index)).map((fields) => delta(fields)),
      delta({}, finishOf(generated)),
      ...(options?.include_usage === true ? [chunk([], { usage: usageOf(generated) })] : []),
      'data: [DONE]\n\n',
    ]
  },
}

/** The whole text is cited. */
function annotationOf({ text, citation }: Generated): Json {
  return { type: 'url_citation', url_citation: { start_index: 0, end_index: text.length, ...citation } }
}

function head({ model }: Json): Json {
  return { id: 'chatcmpl-1', created: 1_760_000_000, model }
}

function finishOf({ finish, refusal }: Generated): string {
  if (finish === 'filtered' || finish === 'blocked') return refusal === undefined ? 'content_filter' : 'stop'
  return finish === 'tools' ? 'tool_calls' : 'stop'
}

function toolCall({ calls }: Generated, index: number) {
  const call = calls[index]
  return {
    id: `call_${index}`,
    type: 'function',
    function: { name: call?.name, arguments: JSON.stringify(call?.input) },
  }
}

function callDeltas(generated: Generated, index: number): Json[] {
  const call = toolCall(generated, index)
  const { name, arguments: text } = call.function
  return [
    { tool_calls: [{ index, ...call, function: { name, arguments: '' } }] },
    ...pieces(text).map((part) => ({ tool_calls: [{ index, function: { arguments: part } }] })),
  ]
}

function usageOf({ tokens }: Generated): Json {
  return {
    prompt_tokens: tokens.input,
    completion_tokens: tokens.output,
    total_tokens: tokens.input + tokens.output,
    prompt_tokens_details: { cached_tokens: tokens.cached },
    completion_tokens_details: { reasoning_tokens: tokens.reasoning },
  }
}
