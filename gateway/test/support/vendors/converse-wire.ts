import { encodeEvent } from '../aws/event-stream.ts'
import { type Generated, pieces, signature, textsOf, valuesOf } from './scripted-model.ts'
import type { Json, Wire } from './wire.ts'

/** https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html */
export const converseWire: Wire = {
  name: 'converse',
  reportsReasoning: false,
  streamType: 'application/vnd.amazon.eventstream',
  read(body) {
    const { messages, system, inferenceConfig, outputConfig, toolConfig } = body
    const results = valuesOf(messages, 'toolResult')
    const prompts = JSON.parse(
      JSON.stringify(messages, (name, value) => (name === 'toolResult' ? undefined : value)),
    )
    return {
      text: [...textsOf(system, 'text'), ...textsOf(prompts, 'text')].join('\n'),
      images: textsOf(valuesOf(prompts, 'image'), 'bytes'),
      documents: textsOf(valuesOf(prompts, 'document'), 'bytes'),
      tools: textsOf(valuesOf(toolConfig, 'toolSpec'), 'name'),
      results: textsOf(results, 'text'),
      stops: valuesOf(inferenceConfig, 'stopSequences').flat().map(String),
      hasSchema: valuesOf(outputConfig, 'schema').length > 0,
      reasons:
        valuesOf(outputConfig, 'effort').length > 0 ||
        valuesOf(body['additionalModelRequestFields'], 'thinking').length > 0,
      audio: textsOf(valuesOf(prompts, 'audio'), 'bytes'),
      marks: valuesOf(body, 'cachePoint').length,
      logprobs: false,
      single: false,
      signed: valuesOf(prompts, 'signature').includes(signature),
    }
  },
  whole(generated) {
    const message = { role: 'assistant', content: blocksOf(generated) }
    const metrics = { latencyMs: 10 }
    return { output: { message }, stopReason: stopOf(generated), usage: usageOf(generated), metrics }
  },
  events(generated) {
    return [
      encodeEvent('messageStart', { role: 'assistant', p: 'abcdef' }),
      ...blocksOf(generated).flatMap(blockEvents),
      encodeEvent('messageStop', { stopReason: stopOf(generated), p: 'abc' }),
      encodeEvent('metadata', { usage: usageOf(generated), metrics: { latencyMs: 10 }, p: 'a' }),
    ]
  },
}

function stopOf({ finish }: Generated): string {
  if (finish === 'filtered') return 'content_filtered'
  if (finish === 'blocked') return 'guardrail_intervened'
  return finish === 'tools' ? 'tool_use' : finish === 'stop' ? 'end_turn' : 'stop_sequence'
}

type Cited = { content: { text: string }[]; citations: object[] }
type Block =
  | { text: string }
  | { citationsContent: Cited }
  | { toolUse: { toolUseId: string; name: string; input: unknown } }
  | { reasoningContent: { reasoningText: { text: string; signature: string } } }

function blocksOf({ reasoning, text, calls, citation }: Generated): Block[] {
  const thought = { reasoningContent: { reasoningText: { text: reasoning, signature } } }
  const { url, title } = citation ?? {}
  const location = { web: { url, domain: 'example.com' } }
  const citations = [{ title, sourceContent: [{ text: 'Quiet.' }], location }]
  return [
    ...(reasoning === '' ? [] : [thought]),
    ...(text === '' ? [] : [citation ? { citationsContent: { content: [{ text }], citations } } : { text }]),
    ...calls.map(({ name, input }, index) => ({
      toolUse: { toolUseId: `tooluse_${index}`, name, input },
    })),
  ]
}

function blockEvents(block: Block, contentBlockIndex: number): Buffer[] {
  const delta = (fields: object) =>
    encodeEvent('contentBlockDelta', { contentBlockIndex, delta: fields, p: 'ab' })
  const stop = encodeEvent('contentBlockStop', { contentBlockIndex, p: 'abcd' })
  if ('text' in block) return [...pieces(block.text).map((text) => delta({ text })), stop]
  if ('toolUse' in block) {
    const { input, ...start } = block.toolUse
    const parts = pieces(JSON.stringify(input)).map((part) => delta({ toolUse: { input: part } }))
    return [
      encodeEvent('contentBlockStart', { contentBlockIndex, start: { toolUse: start } }),
      ...parts,
      stop,
    ]
  }
  if ('citationsContent' in block) {
    const { content, citations } = block.citationsContent
    const texts = content.flatMap(({ text }) => pieces(text)).map((text) => delta({ text }))
    return [...texts, ...citations.map((citation) => delta({ citation })), stop]
  }
  const { text } = block.reasoningContent.reasoningText
  const thoughts = pieces(text).map((part) => delta({ reasoningContent: { text: part } }))
  return [...thoughts, delta({ reasoningContent: { signature } }), stop]
}

/** The service counts input without reads of its cache. */
function usageOf({ tokens: { input, cached, output } }: Generated): Json {
  return {
    inputTokens: input - cached,
    outputTokens: output,
    totalTokens: input + output,
    cacheReadInputTokens: cached,
    cacheWriteInputTokens: 0,
  }
}
