import { openAiError } from './chat-client.ts'
import { type Answer, type ApiClient, type Ask, type Json, joined, system } from './client.ts'

type Item = { type: string; content?: Json[]; summary?: Json[]; call_id: string } & Json
type Usage = { input_tokens: number; output_tokens: number }

/** Clients with OpenAI's responses. */
export const responsesClient: ApiClient = {
  api: 'responses',
  path: () => '/v1/responses',
  body: (model, ask) => ({
    model,
    instructions: system,
    input: inputOf(ask),
    store: false,
    ...(ask.streaming && { stream: true }),
    ...(ask.tool && { tools: [{ type: 'function', name: ask.tool, parameters: ask.schema, strict: false }] }),
    ...(ask.schema &&
      !ask.tool && {
        text: { format: { type: 'json_schema', name: 'city', schema: ask.schema, strict: true } },
      }),
    ...(ask.logprobs && { include: ['message.output_text.logprobs'], top_logprobs: 1 }),
    ...(ask.single && { parallel_tool_calls: false }),
    ...(ask.signed && { include: ['reasoning.encrypted_content'] }),
    ...(ask.reasons && { reasoning: { effort: 'high', summary: 'auto' } }),
  }),
  read: (body) => answerOf(body),
  readStream(events) {
    const last = events.at(-1)?.['response'] as Json
    const deltas = events.filter(({ type }) => type === 'response.output_text.delta')
    const answer = answerOf(last ?? { output: [] })
    // Deltas and the final item agree.
    const text = joined(deltas.map(({ delta }) => delta))
    return text === answer.text ? answer : { ...answer, text: `${text} is not ${answer.text}` }
  },
  error(body) {
    if (body['type'] === 'response.failed') return openAiError(body['response'] as Json)
    return body['type'] === 'error' && body['error'] === undefined
      ? { type: 'error', code: body['code'], message: body['message'] }
      : openAiError(body)
  },
}

function inputOf({ text, image, document, audio, previous, results = [] }: Ask): unknown {
  if (!image && !document && !audio && !previous) return text
  const content = [
    { type: 'input_text', text },
    ...(audio ? [{ type: 'input_audio', input_audio: { data: audio, format: 'wav' } }] : []),
    ...(image ? [{ type: 'input_image', image_url: `data:image/png;base64,${image}`, detail: 'auto' }] : []),
    ...(document
      ? [{ type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${document}` }]
      : []),
  ]
  return [
    { role: 'user', content },
    ...(previous ? (previous.turn as Json[]) : []),
    ...results.map((output, index) => ({
      type: 'function_call_output',
      call_id: previous?.calls[index]?.id,
      output,
    })),
  ]
}

function answerOf({ output, usage, status, incomplete_details: details }: Json): Answer {
  const items = output as Item[]
  const ofType = (wanted: string) => items.filter(({ type }) => type === wanted)
  const tokens = usage as Usage | undefined
  const parts = ofType('message').flatMap(({ content = [] }) => content)
  const text = joined(parts.map((part) => part['text']))
  return {
    text,
    refusal: joined(parts.map(({ refusal }) => refusal)),
    // The whole text is cited.
    citations: parts.flatMap(({ annotations = [] }) =>
      (annotations as Json[]).map((cited) =>
        cited['start_index'] === 0 && cited['end_index'] === text.length ? cited['url'] : cited,
      ),
    ),
    logprobs: joined(
      parts.flatMap(({ logprobs = [] }) => logprobs as { token: string }[]).map(({ token }) => token),
    ),
    reasoning: joined(
      ofType('reasoning').flatMap(({ content, summary }) =>
        [...(content ?? []), ...(summary ?? [])].map(({ text }) => text),
      ),
    ),
    calls: ofType('function_call').map((item) => ({
      id: item.call_id,
      name: String(item['name']),
      input: JSON.parse(String(item['arguments'])),
    })),
    finish: status === 'incomplete' ? (details as Json)['reason'] : status,
    tokens: { input: tokens?.input_tokens, output: tokens?.output_tokens },
    turn: items.filter(({ type, encrypted_content: sealed }) => type === 'function_call' || sealed),
  }
}
