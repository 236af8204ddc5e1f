import { dataUrls, type Generated, logprobsOf, pieces, textsOf, valuesOf } from './scripted-model.ts'
import { type Json, namedEvent, sse, type Wire } from './wire.ts'

/** https://platform.openai.com/docs/api-reference/responses */
export const responsesWire: Wire = {
  name: 'responses',
  reportsReasoning: true,
  streamType: sse,
  read({ input, instructions, tools, text, reasoning, include = [], parallel_tool_calls: parallel }) {
    const items = Array.isArray(input) ? (input as Json[]) : []
    const prompts = items.filter(({ type }) => type !== 'function_call_output')
    return {
      text: [String(instructions ?? ''), typeof input === 'string' ? input : '']
        .concat(textsOf(prompts, 'text'), textsOf(prompts, 'content'))
        .join('\n'),
      images: dataUrls(prompts, 'image/'),
      documents: dataUrls(prompts, 'application/pdf'),
      tools: textsOf(tools ?? [], 'name'),
      results: textsOf(items, 'output'),
      stops: [],
      hasSchema: valuesOf(text, 'schema').length > 0,
      reasons: valuesOf(reasoning, 'effort').some((effort) => effort !== 'none'),
      audio: textsOf(valuesOf(prompts, 'input_audio'), 'data'),
      marks: 0,
      logprobs: (include as string[]).includes('message.output_text.logprobs'),
      single: parallel === false,
      signed: undefined,
    }
  },
  whole(generated, body) {
    const output = outputOf(generated, body)
    return { ...head(body), ...endOf(generated), output, usage: usageOf(generated) }
  },
  events(generated, body) {
    const begun = { ...head(body), status: 'in_progress', output: [], usage: null }
    const events: Json[] = [
      { type: 'response.created', response: begun },
      { type: 'response.in_progress', response: begun },
      ...outputOf(generated, body).flatMap((item, index) => itemEvents(item, index)),
      { type: `response.${endOf(generated).status}`, response: responsesWire.whole(generated, body) },
    ]
    return events.map((event, index) => namedEvent({ ...event, sequence_number: index }))
  },
}

function head({ model }: Json): Json {
  return {
    ...{ id: 'resp_1', object: 'response', created_at: 1_760_000_000, model, error: null },
    ...{ incomplete_details: null, instructions: null, metadata: {}, parallel_tool_calls: true },
    ...{ temperature: 1, tool_choice: 'auto', tools: [], top_p: 1 },
  }
}

function endOf({ finish, refusal }: Generated) {
  if ((finish !== 'filtered' && finish !== 'blocked') || refusal !== undefined) return { status: 'completed' }
  return { status: 'incomplete', incomplete_details: { reason: 'content_filter' } }
}

/** Reasoning that clients return. */
export const encrypted = 'gAAAAAB-reasoning'

function outputOf(generated: Generated, { include }: Json): Json[] {
  const isEncrypted = Array.isArray(include) && include.includes('reasoning.encrypted_content')
  const { reasoning, text, calls, citation, refusal } = generated
  const thought = {
    type: 'reasoning',
    id: 'rs_1',
    status: 'completed',
    summary: [{ type: 'summary_text', text: reasoning }],
    ...(isEncrypted && { encrypted_content: encrypted }),
  }
  const annotations = citation
    ? [{ type: 'url_citation', start_index: 0, end_index: text.length, ...citation }]
    : []
  const logprobs = logprobsOf(generated, text)?.content ?? []
  const part =
    refusal === undefined
      ? { type: 'output_text', annotations, logprobs, text }
      : { type: 'refusal', refusal }
  const message = { type: 'message', id: 'msg_1', status: 'completed', role: 'assistant', content: [part] }
  return [
    ...(reasoning === '' ? [] : [thought]),
    ...(text === '' && refusal === undefined ? [] : [message]),
    ...calls.map(({ name, input }, index) => ({
      ...{ type: 'function_call', id: `fc_${index}`, call_id: `call_${index}`, name },
      ...{ arguments: JSON.stringify(input), status: 'completed' },
    })),
  ]
}

function itemEvents(item: Json, output_index: number): Json[] {
  const place = { item_id: item['id'], output_index }
  const added = (fields: Json) => ({ type: 'response.output_item.added', output_index, item: fields })
  const done = { type: 'response.output_item.done', output_index, item }
  if (item['type'] === 'function_call') {
    const text = String(item['arguments'])
    const type = 'response.function_call_arguments'
    return [
      added({ ...item, arguments: '', status: 'in_progress' }),
      ...pieces(text).map((delta) => ({ type: `${type}.delta`, ...place, delta })),
      { type: `${type}.done`, ...place, arguments: text, name: item['name'] },
      done,
    ]
  }
  const isMessage = item['type'] === 'message'
  if (isMessage && (item['content'] as Json[])[0]?.['type'] === 'refusal')
    return [added({ ...item, content: [] }), done]
  const [field, type, kind] = isMessage
    ? ['content', 'response.content_part', 'response.output_text']
    : ['summary', 'response.reasoning_summary_part', 'response.reasoning_summary_text']
  const [part] = item[field] as [Json]
  const at = { ...place, [isMessage ? 'content_index' : 'summary_index']: 0 }
  const text = String(part['text'])
  const given = isMessage ? (part['logprobs'] as { token: string }[]) : undefined
  const probable = (delta: string) => given && { logprobs: given.filter(({ token }) => token === delta) }
  const annotations = (part['annotations'] ?? []) as Json[]
  return [
    added({ ...item, [field]: [], status: 'in_progress' }),
    { type: `${type}.added`, ...at, part: { ...part, text: '' } },
    ...pieces(text).map((delta) => ({ type: `${kind}.delta`, ...at, delta, ...probable(delta) })),
    ...annotations.map((annotation, annotation_index) => ({
      ...{ type: 'response.output_text.annotation.added', ...at, annotation_index, annotation },
    })),
    { type: `${kind}.done`, ...at, text, ...(given && { logprobs: given }) },
    { type: `${type}.done`, ...at, part },
    done,
  ]
}

function usageOf({ tokens }: Generated): Json {
  return {
    input_tokens: tokens.input,
    input_tokens_details: { cached_tokens: tokens.cached },
    output_tokens: tokens.output,
    output_tokens_details: { reasoning_tokens: tokens.reasoning },
    total_tokens: tokens.input + tokens.output,
  }
}
