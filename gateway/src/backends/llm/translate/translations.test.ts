import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../lib/json/json.ts'
import type { SseEvent } from '../../../net/http/sse.ts'
import type { Endpoint } from '../request/endpoints.ts'
import type { Translation, TranslationContext } from './translate.ts'
import { translationsFrom } from './translations.ts'

// Clients of all conversation APIs with OpenAI's responses, over chat completions.

const context: TranslationContext = { requestModel: 'm', now: () => 1_700_000_000_000, includeUsage: true }

function toResponses(client: Endpoint): Translation {
  const found = translationsFrom(client).find(({ upstream }) => upstream === 'responses')
  if (found === undefined) throw new Error(`no translation of ${client}`)
  return found
}

const messages = toResponses('messages')
const gemini = toResponses('generate_content')
const converse = toResponses('converse')
const hello = { model: 'm', max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }] }
const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }]
const turns = [{ role: 'user', content: [{ text: 'Hi' }] }]

function bodyOf(translation: Translation, request: JsonObject): JsonObject {
  const result = translation.request(request)
  if (result.kind !== 'body') throw new Error(result.message)
  return result.body
}

describe('fields without a counterpart in the Responses API', () => {
  const refused: [string, Translation, JsonObject][] = [
    ['stop_sequences', messages, { ...hello, stop_sequences: ['x'] }],
    ['top_k', messages, { ...hello, top_k: 5 }],
    ['generationConfig.candidateCount', gemini, { contents, generationConfig: { candidateCount: 2 } }],
    ['generationConfig.stopSequences', gemini, { contents, generationConfig: { stopSequences: ['x'] } }],
    ['generationConfig.topK', gemini, { contents, generationConfig: { topK: 5 } }],
    ['generationConfig.seed', gemini, { contents, generationConfig: { seed: 5 } }],
    ['generationConfig.presencePenalty', gemini, { contents, generationConfig: { presencePenalty: 1 } }],
    [
      'generationConfig.responseModalities',
      gemini,
      { contents, generationConfig: { responseModalities: ['IMAGE'] } },
    ],
    [
      'contents[0].parts[0].inlineData.mimeType',
      gemini,
      { contents: [{ parts: [{ inlineData: { mimeType: 'audio/wav', data: '' } }] }] },
    ],
    ['stop_sequences', converse, { messages: turns, inferenceConfig: { stopSequences: ['x'] } }],
  ]

  it.each(refused)('%s is refused by the name of the client', (param, translation, body) => {
    const result = translation.request(body)
    expect(result).toMatchObject({ kind: 'unsupported', param })
    expect(result.kind === 'unsupported' && result.message).toContain('the Responses API')
  })

  it('neutral values pass', () => {
    const generationConfig = { candidateCount: 1, stopSequences: [], presencePenalty: 0, frequencyPenalty: 0 }
    expect(bodyOf(gemini, { contents, generationConfig })).not.toHaveProperty('reasoning')
    expect(bodyOf(messages, { ...hello, stop_sequences: [] })).not.toHaveProperty('reasoning')
  })
})

describe('reasoning', () => {
  const encrypted = ['reasoning.encrypted_content']

  it('is requested by clients with thinking only', () => {
    const of = (more: JsonObject) => bodyOf(messages, { ...hello, ...more })
    expect(of({ thinking: { type: 'adaptive' } })).toMatchObject({
      reasoning: { summary: 'auto' },
      include: encrypted,
    })
    expect(of({ thinking: { type: 'enabled', budget_tokens: 20_000 } })).toMatchObject({
      reasoning: { effort: 'high', summary: 'auto' },
      include: encrypted,
    })
    const silent = of({ thinking: { type: 'disabled' }, output_config: { effort: 'low' } })
    expect([silent.reasoning, silent.include]).toEqual([{ effort: 'low' }, undefined])
  })

  it('is requested by thoughts or a budget of Gemini clients', () => {
    const of = (thinkingConfig: JsonObject) =>
      bodyOf(gemini, { contents, generationConfig: { thinkingConfig } })
    expect(of({ includeThoughts: true })).toMatchObject({
      reasoning: { summary: 'auto' },
      include: encrypted,
    })
    expect(of({ thinkingBudget: 1000 })).toMatchObject({
      reasoning: { effort: 'low', summary: 'auto' },
      include: encrypted,
    })
    const silent = of({ thinkingBudget: 0 })
    expect([silent.reasoning, silent.include]).toEqual([{ effort: 'none' }, undefined])
  })

  it('of other models is omitted', () => {
    const content = [
      { type: 'thinking', thinking: 'x', signature: 'EqQBCkYIBBgC' },
      { type: 'redacted_thinking', data: 'eyJkZXRhaWxzIjpbXX0=' },
      { type: 'text', text: 'Hm' },
    ]
    const turn = { role: 'assistant', content }
    const { input } = bodyOf(messages, { ...hello, messages: [turn, ...hello.messages] })
    expect(input).toEqual([
      { type: 'message', role: 'assistant', content: 'Hm' },
      { type: 'message', role: 'user', content: 'Hi' },
    ])
  })
})

describe('limits', () => {
  it('are those of the client, or of the model', () => {
    expect(bodyOf(messages, hello)).toMatchObject({ max_output_tokens: 50 })
    expect(bodyOf(converse, { messages: turns, inferenceConfig: { maxTokens: 90 } })).toMatchObject({
      max_output_tokens: 90,
    })
    expect(bodyOf(converse, { messages: turns })).not.toHaveProperty('max_output_tokens')
  })
})

describe('media', () => {
  it('stay in the results of tools', () => {
    const source = { type: 'base64', media_type: 'image/png', data: 'AAAA' }
    const result = { type: 'tool_result', tool_use_id: 'call_1', content: [{ type: 'image', source }] }
    const { input } = bodyOf(messages, { ...hello, messages: [{ role: 'user', content: [result] }] })
    const image = { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'auto' }
    expect(input).toEqual([{ type: 'function_call_output', call_id: 'call_1', output: [image] }])
  })
})

type Block = JsonObject & { type: string }

/** The content that a client of messages assembles. */
function contentOf(events: readonly SseEvent[]): Block[] {
  const blocks: Block[] = []
  for (const { data } of events) {
    const { type, index, content_block: block, delta } = JSON.parse(data)
    if (type === 'content_block_start') blocks[index] = { ...block, json: '' }
    const current = blocks[index]
    if (type !== 'content_block_delta' || current === undefined) continue
    for (const name of ['text', 'thinking', 'signature'] as const)
      if (delta[name] !== undefined) current[name] = `${current[name]}${delta[name]}`
    if (delta.partial_json !== undefined) current['json'] = `${current['json']}${delta.partial_json}`
  }
  return blocks.map(({ json, ...block }) =>
    block.type === 'tool_use' ? { ...block, input: JSON.parse(String(json)) } : block,
  )
}

describe('a turn of the model', () => {
  it('returns to the provider in its order, with its encrypted reasoning', () => {
    const item = fc.oneof(
      fc.string({ minLength: 1 }).map((text) => ({
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text, annotations: [] }],
      })),
      fc.dictionary(fc.string(), fc.string()).map((input) => ({
        ...{ type: 'function_call', name: 'f', arguments: JSON.stringify(input) },
      })),
      fc.tuple(fc.string(), fc.string({ minLength: 1 })).map(([text, data]) => ({
        ...{ type: 'reasoning', encrypted_content: data, summary: [{ type: 'summary_text', text }] },
      })),
    )
    fc.assert(
      fc.property(fc.array(item, { maxLength: 8 }), (items) => {
        const output = items.map((each, at) => ({ ...each, id: `id_${at}`, call_id: `call_${at}` }))
        const stream = messages.stream(context)
        const send = (event: JsonObject) => stream.event({ data: JSON.stringify(event) })
        const events = [
          ...send({ type: 'response.created', response: { id: 'resp_1' } }),
          ...output.flatMap((each, at) =>
            send({ type: 'response.output_item.done', output_index: at, item: each }),
          ),
          ...send({ type: 'response.completed', response: { status: 'completed' } }),
          ...stream.end(),
        ]
        const turn = { role: 'assistant', content: contentOf(events) }
        const { input } = bodyOf(messages, { ...hello, messages: [turn, ...hello.messages] })
        const returned = (input as JsonObject[]).slice(0, -1)
        expect(joinedTexts(returned)).toEqual(joinedTexts(expectedInput(output)))
      }),
    )
  })
})

/** Reasoning at the end of a turn is not returned: the provider requires an item after it. */
function expectedInput(output: readonly JsonObject[]): JsonObject[] {
  const last = output.findLastIndex(({ type }) => type !== 'reasoning')
  return output.slice(0, last + 1).map((item): JsonObject => {
    const { type, id, call_id: callId, encrypted_content: data } = item
    if (type === 'reasoning') return { type, id: id ?? '', summary: [], encrypted_content: data ?? '' }
    if (type === 'function_call')
      return { type, call_id: callId ?? '', name: 'f', arguments: item['arguments'] ?? '' }
    const [part] = item['content'] as JsonObject[]
    return { type: 'message', role: 'assistant', content: part?.['text'] ?? '' }
  })
}

/** Texts of a turn, and its calls after them, between two items of reasoning. */
function joinedTexts(items: readonly JsonObject[]): unknown[] {
  const groups: { reasoning: JsonObject[]; text: string; calls: JsonObject[] }[] = []
  for (const item of items) {
    const last = groups.at(-1)
    const isReasoning = item['type'] === 'reasoning'
    const begins = last === undefined || (isReasoning && (last.text !== '' || last.calls.length > 0))
    const group = begins ? { reasoning: [], text: '', calls: [] } : last
    if (begins) groups.push(group)
    if (isReasoning) group.reasoning.push(item)
    else if (item['type'] === 'message') group.text += String(item['content']).replaceAll('\n', '')
    else group.calls.push(item)
  }
  return groups.map((group) => ({ ...group, text: group.text.replaceAll('\n', '') }))
}
