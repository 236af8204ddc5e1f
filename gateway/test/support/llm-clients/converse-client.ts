import { createEventStreamParser } from '../../../src/backends/llm/providers/bedrock/event-stream.ts'
import { type Answer, type ApiClient, type Ask, type Json, joined, system } from './client.ts'

type Cited = { content?: Json[]; citations?: { location?: { web?: { url?: string } } }[] }
type Block = {
  text?: string
  toolUse?: { toolUseId: string; name: string; input: unknown }
  reasoningContent?: { reasoningText?: { text?: string; signature?: string } }
  citationsContent?: Cited
}
type Usage = Record<string, number>
type Delta = {
  text?: string
  toolUse?: { input: string }
  reasoningContent?: { text?: string; signature?: string }
  citation?: NonNullable<Cited['citations']>[number]
}

/** Clients with the Converse API of Amazon Bedrock. */
export const converseClient: ApiClient = {
  api: 'converse',
  path: (model, { streaming }) => `/model/${encodeURIComponent(model)}/converse${streaming ? '-stream' : ''}`,
  body: (_, ask) => ({
    system: [{ text: system }, ...(ask.marked ? [cachePoint] : [])],
    messages: messagesOf(ask),
    inferenceConfig: { maxTokens: 4000, ...(ask.stop && { stopSequences: [ask.stop] }) },
    ...(ask.tool && {
      toolConfig: { tools: [{ toolSpec: { name: ask.tool, inputSchema: { json: ask.schema } } }] },
    }),
    ...(ask.schema &&
      !ask.tool && {
        outputConfig: {
          textFormat: {
            type: 'json_schema',
            structure: { jsonSchema: { name: 'city', schema: JSON.stringify(ask.schema) } },
          },
        },
      }),
    ...(ask.reasons && {
      additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 2000 } },
    }),
  }),
  read({ output, stopReason, usage }) {
    const { message } = output as { message: { content: Block[] } }
    return answerOf(message.content, stopReason, usage as Usage)
  },
  readStream(events) {
    const blocks: Block[] = []
    const inputs: string[] = []
    for (const { event, contentBlockIndex = 0, start, delta } of events) {
      const at = contentBlockIndex as number
      if (event === 'contentBlockStart') blocks[at] = { ...(start as Block) }
      if (event !== 'contentBlockDelta') continue
      const block = blocks[at] ?? {}
      blocks[at] = block
      const { text, toolUse, reasoningContent: thought, citation } = delta as Delta
      if (text !== undefined) block.text = (block.text ?? '') + text
      if (toolUse !== undefined) inputs[at] = (inputs[at] ?? '') + toolUse.input
      if (thought !== undefined) {
        const known = block.reasoningContent?.reasoningText ?? {}
        block.reasoningContent = {
          reasoningText: { ...known, text: (known.text ?? '') + (thought.text ?? '') },
        }
        const { signature = known.signature } = thought
        if (signature !== undefined) Object.assign(block.reasoningContent.reasoningText ?? {}, { signature })
      }
      if (citation !== undefined)
        block.citationsContent = { citations: [...(block.citationsContent?.citations ?? []), citation] }
    }
    for (const [at, text] of inputs.entries()) {
      const call = blocks[at]?.toolUse
      if (text !== undefined && call) call.input = JSON.parse(text)
    }
    const named = (name: string) => events.find(({ event }) => event === name)
    return answerOf(blocks, named('messageStop')?.['stopReason'], named('metadata')?.['usage'] as Usage)
  },
  error({ event = 'exception', type, code, message, output }) {
    if (event !== 'exception' || output !== undefined || typeof message !== 'string') return undefined
    return { type: type ?? code, code: undefined, message }
  },
}

const cachePoint = { cachePoint: { type: 'default' } }

function messagesOf({ text, image, document, audio, marked, previous, results = [] }: Ask): Json[] {
  const content = [
    ...(image ? [{ image: { format: 'png', source: { bytes: image } } }] : []),
    ...(document ? [{ document: { format: 'pdf', name: 'a', source: { bytes: document } } }] : []),
    ...(audio ? [{ audio: { format: 'wav', source: { bytes: audio } } }] : []),
    { text },
    ...(marked ? [cachePoint] : []),
  ]
  const found = results.map((result, index) => ({
    toolResult: { toolUseId: previous?.calls[index]?.id, content: [{ text: result }] },
  }))
  return [
    { role: 'user', content },
    ...(previous
      ? [
          { role: 'assistant', content: previous.turn },
          { role: 'user', content: found },
        ]
      : []),
  ]
}

function textOf({ text, citationsContent: cited }: Block): unknown {
  return text ?? joined((cited?.content ?? []).map((part) => part['text']))
}

function answerOf(blocks: readonly Block[], finish: unknown, usage: Usage | undefined): Answer {
  const { inputTokens = 0, cacheReadInputTokens = 0, cacheWriteInputTokens = 0 } = usage ?? {}
  const text = joined(blocks.map(textOf))
  return {
    text,
    reasoning: joined(blocks.map(({ reasoningContent: thought }) => thought?.reasoningText?.text)),
    calls: blocks.flatMap(({ toolUse: call }) =>
      call ? [{ id: call.toolUseId, name: call.name, input: call.input }] : [],
    ),
    finish,
    citations: blocks.flatMap(({ citationsContent: cited }) =>
      (cited?.citations ?? []).map(({ location }) => location?.web?.url),
    ),
    // The API has no field for the explanation, which some providers have as the text.
    refusal: finish === 'content_filtered' ? text || String(finish) : '',
    logprobs: '',
    tokens: {
      input: inputTokens + cacheReadInputTokens + cacheWriteInputTokens,
      output: usage?.['outputTokens'],
    },
    turn: blocks.filter((block) => textOf(block) !== '' || block.toolUse || block.reasoningContent),
  }
}

/** A binary event stream as server-sent events, whose data has the name of the event. */
export function eventTextOf(bytes: Buffer): string {
  let text = ''
  const parser = createEventStreamParser({
    maxMessageBytes: 1_000_000,
    onMessage({ headers, payload }) {
      const type = headers.get(':exception-type')
      const event = type === undefined ? headers.get(':event-type') : 'exception'
      text += `data: ${JSON.stringify({ event, type, ...JSON.parse(payload.toString()) })}\n\n`
    },
  })
  parser.push(bytes)
  return text
}
