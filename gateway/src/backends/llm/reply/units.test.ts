import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../lib/json/json.ts'
import type { UsageUnits } from '../../../pipeline/facts/llm-facts.ts'
import type { Endpoint } from '../request/endpoints.ts'
import { unitsIn } from './units.ts'
import { usageIn } from './usage.ts'

describe('units of a response', () => {
  it.each<[Endpoint, JsonObject, UsageUnits | undefined]>([
    ['images', { data: [{}, {}] }, { images: { count: 2, size: undefined, quality: undefined } }],
    [
      'image_edits',
      { data: [{}], size: '1024x1024', quality: 'low' },
      { images: { count: 1, size: '1024x1024', quality: 'low' } },
    ],
    ['transcriptions', { text: 'a', usage: { type: 'duration', seconds: 7 } }, { seconds: 7 }],
    ['translations', { text: 'a', duration: '7.25' }, { seconds: 7.25 }],
    ['transcriptions', { text: 'a', duration: -1 }, undefined],
    ['rerank_v2', { meta: { billed_units: { search_units: 2 } } }, { searches: 2 }],
    ['messages', { usage: { server_tool_use: { web_search_requests: 3 } } }, { webSearches: 3 }],
    ['messages', { usage: { server_tool_use: { web_search_requests: 0 } } }, undefined],
    [
      'responses',
      {
        output: [
          { type: 'web_search_call', action: { type: 'search' } },
          { type: 'web_search_call', action: { type: 'open_page' } },
          { type: 'message' },
        ],
      },
      { webSearches: 1 },
    ],
    ['chat', { choices: [] }, undefined],
  ])('are counted for %s', (endpoint, message, units) => {
    expect(unitsIn(endpoint, message)).toEqual(units)
  })

  it('include image tokens, which are the whole output unless its details differ', () => {
    const usage = { input_tokens: 50, input_tokens_details: { image_tokens: 40 }, output_tokens: 1000 }
    expect(usageIn('images', { usage })).toMatchObject({ inputImageTokens: 40, outputImageTokens: 1000 })
    const details = { ...usage, output_tokens_details: { image_tokens: 900, text_tokens: 100 } }
    expect(usageIn('images', { usage: details })).toMatchObject({ outputImageTokens: 900 })
  })

  it('of a stream event are those of its message', () => {
    const usage = { output_tokens: 5, server_tool_use: { web_search_requests: 1 } }
    expect(usageIn('messages', { type: 'message_delta', usage })?.units).toEqual({ webSearches: 1 })
  })
})
