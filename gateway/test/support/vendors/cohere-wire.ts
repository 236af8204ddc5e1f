import { dataUrls, type Generated, pieces, textsOf, valuesOf } from './scripted-model.ts'
import { type Json, namedEvent, sse, type Wire } from './wire.ts'

/** https://docs.cohere.com/v2/reference/chat */
export const cohereWire: Wire = {
  name: 'cohere_chat',
  reportsReasoning: false,
  streamType: sse,
  read({ messages, tools, stop_sequences: stops, response_format: format, thinking }) {
    const all = (messages ?? []) as Json[]
    const prompts = all.filter(({ role }) => role !== 'tool')
    const results = all.filter(({ role }) => role === 'tool')
    return {
      text: [...textsOf(prompts, 'text'), ...textsOf(prompts, 'content')].join('\n'),
      images: dataUrls(prompts, 'image/'),
      documents: [],
      tools: textsOf(tools ?? [], 'name'),
      results: [...textsOf(results, 'content'), ...textsOf(results, 'text')],
      stops: (stops ?? []) as string[],
      hasSchema: valuesOf(format, 'json_schema').length > 0,
      reasons: valuesOf({ thinking }, 'type').includes('enabled'),
      audio: [],
      marks: 0,
      logprobs: false,
      single: false,
      signed: undefined,
    }
  },
  whole: (generated) => ({
    id: 'c14c80c3-18eb-4519-9460-6c92edd8cfb4',
    finish_reason: finishOf(generated),
    message: {
      role: 'assistant',
      ...(generated.calls.length > 0 && {
        tool_plan: 'I call the tool.',
        tool_calls: generated.calls.map((_, index) => toolCall(generated, index)),
      }),
      content: contentOf(generated),
      ...(generated.citation && { citations: [citationOf(generated)] }),
    },
    usage: usageOf(generated),
  }),
  events: (generated) => [...eventsOf(generated).map(namedEvent), 'data: [DONE]\n\n'],
}

function eventsOf(generated: Generated): Json[] {
  const { reasoning, refusal } = generated
  const text = generated.text || (refusal ?? '')
  const hasReasoning = reasoning !== ''
  return [
    {
      type: 'message-start',
      id: 'c14c80c3-18eb-4519-9460-6c92edd8cfb4',
      delta: {
        message: { role: 'assistant', content: [], tool_plan: '', tool_calls: [], citations: [] },
      },
    },
    ...(hasReasoning ? contentEvents('thinking', 0, reasoning) : []),
    ...(text === '' ? [] : contentEvents('text', hasReasoning ? 1 : 0, text)),
    ...(generated.citation
      ? [
          {
            ...{ type: 'citation-start', index: 0 },
            delta: { message: { citations: citationOf(generated) } },
          },
          { type: 'citation-end', index: 0 },
        ]
      : []),
    ...(generated.calls.length > 0
      ? [{ type: 'tool-plan-delta', delta: { message: { tool_plan: 'I call the tool.' } } }]
      : []),
    ...generated.calls.flatMap((_, index) => callEvents(generated, index)),
    { type: 'message-end', delta: { finish_reason: finishOf(generated), usage: usageOf(generated) } },
  ]
}

function contentEvents(kind: 'text' | 'thinking', index: number, text: string): Json[] {
  const delta = (content: Json) => ({ delta: { message: { content } } })
  return [
    { type: 'content-start', index, ...delta({ type: kind, [kind]: '' }) },
    ...pieces(text).map((part) => ({ type: 'content-delta', index, ...delta({ [kind]: part }) })),
    { type: 'content-end', index },
  ]
}

function callEvents(generated: Generated, index: number): Json[] {
  const call = toolCall(generated, index)
  const delta = (tool_calls: Json) => ({ delta: { message: { tool_calls } } })
  const { name, arguments: text } = call.function
  return [
    { type: 'tool-call-start', index, ...delta({ ...call, function: { name, arguments: '' } }) },
    ...pieces(text).map((part) => ({
      ...{ type: 'tool-call-delta', index },
      ...delta({ function: { arguments: part } }),
    })),
    { type: 'tool-call-end', index },
  ]
}

/** A refusal is a text. */
function contentOf({ reasoning, text: generated, refusal }: Generated): Json[] {
  const text = generated || (refusal ?? '')
  return [
    ...(reasoning === '' ? [] : [{ type: 'thinking', thinking: reasoning }]),
    ...(text === '' ? [] : [{ type: 'text', text }]),
  ]
}

function toolCall({ calls }: Generated, index: number) {
  const { name = '', input = {} } = calls[index] ?? {}
  return { id: `call_${index}`, type: 'function', function: { name, arguments: JSON.stringify(input) } }
}

/** The whole text is cited. */
function citationOf({ text, reasoning, citation }: Generated): Json {
  const document = { url: citation?.url, title: citation?.title }
  return {
    ...{ start: 0, end: text.length, text, type: 'TEXT_CONTENT', content_index: reasoning === '' ? 0 : 1 },
    sources: [{ type: 'document', id: 'doc-1', document }],
  }
}

function finishOf({ finish }: Generated): string {
  if (finish === 'filtered' || finish === 'blocked') return 'ERROR'
  if (finish === 'stop_sequence') return 'STOP_SEQUENCE'
  return finish === 'tools' ? 'TOOL_CALL' : 'COMPLETE'
}

/** The service adds instructions of its own, which it does not bill. */
function usageOf({ tokens: { input, cached, output } }: Generated): Json {
  return {
    billed_units: { input_tokens: input, output_tokens: output },
    tokens: { input_tokens: input + 480, output_tokens: output + 2 },
    cached_tokens: cached,
  }
}
