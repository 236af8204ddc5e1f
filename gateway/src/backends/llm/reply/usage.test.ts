import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isJsonObject } from '../../../lib/json/json.ts'
import { estimateTokens, estimateUsage, generatedTextBytes, mergeUsage, usageIn } from './usage.ts'

const none = { cachedInputTokens: 0, cacheCreationInputTokens: 0, reasoningTokens: 0, estimated: false }

describe('usageIn', () => {
  it('reads chat completions, whose prompt tokens include cached ones', () => {
    const usage = {
      prompt_tokens: 100,
      completion_tokens: 20,
      total_tokens: 120,
      prompt_tokens_details: { cached_tokens: 60 },
      completion_tokens_details: { reasoning_tokens: 5 },
    }
    expect(usageIn('chat', { usage })).toEqual({
      ...none,
      inputTokens: 100,
      outputTokens: 20,
      totalTokens: 120,
      cachedInputTokens: 60,
      reasoningTokens: 5,
    })
  })

  it.each([
    [{ prompt_tokens: 5, completion_tokens: 10, total_tokens: 65 }, 60, 50],
    [{ prompt_tokens: 5, completion_tokens: -1, total_tokens: 65 }, 60, 60],
    [{ prompt_tokens: 5, completion_tokens: 10, total_tokens: 3 }, 10, 0],
    [{ prompt_tokens: 5, completion_tokens: 10, total_tokens: 'many' }, 10, 0],
  ])('counts tokens that only the total includes as output: %j', (usage, outputTokens, reasoningTokens) => {
    expect(usageIn('chat', { usage })).toMatchObject({
      inputTokens: 5,
      outputTokens,
      totalTokens: 5 + outputTokens,
      reasoningTokens,
    })
  })

  it('reads audio tokens as parts of input and output', () => {
    const usage = {
      prompt_tokens: 100,
      completion_tokens: 20,
      prompt_tokens_details: { audio_tokens: 40 },
      completion_tokens_details: { audio_tokens: 15 },
    }
    expect(usageIn('chat', { usage })).toMatchObject({
      inputTokens: 100,
      outputTokens: 20,
      inputAudioTokens: 40,
      outputAudioTokens: 15,
    })
  })

  it('adds cache reads and writes to the input of messages', () => {
    const usage = {
      input_tokens: 10,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 50,
      output_tokens: 7,
    }
    const expected = {
      ...none,
      inputTokens: 160,
      outputTokens: 7,
      totalTokens: 167,
      cachedInputTokens: 100,
      cacheCreationInputTokens: 50,
    }
    expect(usageIn('messages', { usage })).toEqual(expected)
    expect(usageIn('messages', { type: 'message_start', message: { usage } })).toEqual(expected)
    expect(usageIn('messages', { type: 'message_delta', usage })).toEqual(expected)
  })

  it('reads responses, unstreamed and as the last event', () => {
    const usage = {
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens: 6,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 16,
    }
    const expected = {
      ...none,
      inputTokens: 10,
      outputTokens: 6,
      totalTokens: 16,
      cachedInputTokens: 4,
      reasoningTokens: 2,
    }
    expect(usageIn('responses', { usage })).toEqual(expected)
    expect(usageIn('responses', { type: 'response.completed', response: { usage } })).toEqual(expected)
  })

  it('reads embeddings, which have no output', () => {
    expect(usageIn('embeddings', { usage: { prompt_tokens: 8, total_tokens: 8 } })).toEqual({
      ...none,
      inputTokens: 8,
      outputTokens: 0,
      totalTokens: 8,
    })
  })

  it.each([
    null,
    'x',
    3,
    [],
    {},
    { prompt_tokens: '9' },
    { prompt_tokens: -1 },
    { prompt_tokens: 1.5 },
    { prompt_tokens: 1e300 },
  ])('ignores %j', (usage) => {
    expect(usageIn('chat', { usage })).toBeUndefined()
  })

  it('ignores single invalid counts', () => {
    const usage = { prompt_tokens: 9, completion_tokens: '∞', prompt_tokens_details: { cached_tokens: -5 } }
    expect(usageIn('chat', { usage })).toEqual({ ...none, inputTokens: 9, outputTokens: 0, totalTokens: 9 })
  })

  it('returns only non-negative integers', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('chat', 'messages', 'responses', 'embeddings'),
        fc.jsonValue(),
        (endpoint, value) => {
          const text = JSON.stringify({ usage: value, message: { usage: value }, response: value })
          const usage = usageIn(endpoint, JSON.parse(text))
          for (const [name, count] of Object.entries(usage ?? {})) {
            if (name !== 'estimated') expect(Number.isSafeInteger(count) && Number(count) >= 0).toBe(true)
          }
        },
      ),
    )
  })
})

describe('mergeUsage', () => {
  it('uses the input of the first report and the output of the last one', () => {
    const opening = usageIn('messages', {
      usage: { input_tokens: 10, cache_read_input_tokens: 5, output_tokens: 1 },
    })
    const closing = usageIn('messages', { usage: { output_tokens: 40 } })
    if (!opening || !closing) throw new Error('both are usage')
    expect(mergeUsage(opening, closing)).toMatchObject({
      inputTokens: 15,
      outputTokens: 40,
      totalTokens: 55,
      cachedInputTokens: 5,
    })
  })
})

describe('estimates', () => {
  const request = { model: 'a-model-name', messages: [{ role: 'user', content: 'x'.repeat(400) }] }

  it('count a quarter of the bytes of texts', () => {
    expect(estimateUsage(undefined, estimateTokens(request), 80)).toEqual({
      ...none,
      inputTokens: 101,
      outputTokens: 20,
      totalTokens: 121,
      estimated: true,
    })
  })

  it('preserve the reported input and the larger output', () => {
    const reported = usageIn('messages', { usage: { input_tokens: 10, output_tokens: 50 } })
    expect(estimateUsage(reported, 101, 80)).toMatchObject({
      inputTokens: 10,
      outputTokens: 50,
      estimated: true,
    })
    expect(estimateUsage(reported, 101, 800)).toMatchObject({ inputTokens: 10, outputTokens: 200 })
  })

  it('accept a response with unlimited nesting', () => {
    const depth = 200_000
    const answer: unknown = JSON.parse(`{"text":"four","deep":${'['.repeat(depth)}${']'.repeat(depth)}}`)
    expect(isJsonObject(answer) && generatedTextBytes('chat', answer)).toBe(4)
  })

  it('count documents as text, whose members have any names', () => {
    const data = { url: 'x'.repeat(400) }
    const inResult = { role: 'tool', content: [{ type: 'document', document: { data } }] }
    expect(estimateTokens({ documents: [{ id: 'd', data }], messages: [] })).toBe(101)
    expect(estimateTokens({ messages: [inResult] })).toBeGreaterThan(100)
  })

  it('do not count images as text', () => {
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(1_000_000)}` } }
    expect(estimateTokens({ messages: [{ role: 'user', content: [image] }] })).toBeLessThan(20)
  })
})
