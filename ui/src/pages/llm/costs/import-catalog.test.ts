import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { entryOf, withEntry, withRates } from './catalog-edit.ts'
import { readPriceList } from './import-catalog.ts'

const known = ['openai', 'anthropic', 'gemini', 'togetherai']
const read = (list: object) => readPriceList(JSON.stringify(list), known)

describe('readPriceList', () => {
  it('reads a catalog', () => {
    const catalog = { providers: { openai: { models: { m: { rates: { input: '2.50' } } } } } }
    expect(read(catalog)).toEqual({ kind: 'catalog', format: 'catalog', catalog, models: 1 })
  })

  it('reads the list of models.dev, with the names of this gateway', () => {
    const list = {
      google: {
        id: 'google',
        models: {
          'gemini-2.5-pro': {
            cost: { input: 1.25, output: 10, cache_read: 0.31 },
            limit: { context: 1_048_576, output: 65_536 },
          },
          free: { cost: {} },
        },
      },
      unknown: { models: { m: { cost: { input: 1, output: 1 } } } },
    }
    expect(read(list)).toEqual({
      kind: 'catalog',
      format: 'models.dev',
      models: 1,
      catalog: {
        providers: {
          gemini: {
            models: {
              'gemini-2.5-pro': {
                rates: { input: '1.25', output: '10', cacheRead: '0.31' },
                limits: { contextWindow: 1_048_576, maxOutputTokens: 65_536 },
              },
            },
          },
        },
      },
    })
  })

  it('reads the list of LiteLLM, whose prices are per token', () => {
    const list = {
      sample_spec: { litellm_provider: 'one of the providers' },
      'gpt-4o': { litellm_provider: 'openai', input_cost_per_token: 2.5e-6, output_cost_per_token: 1e-5 },
      'whisper-1': { litellm_provider: 'openai', mode: 'audio_transcription', input_cost_per_second: 1e-4 },
      'gpt-batch': {
        ...{ litellm_provider: 'openai', input_cost_per_token: 2.5e-6 },
        ...{ input_cost_per_token_batches: 1.25e-6, output_cost_per_token_batches: 5e-6 },
      },
      'together_ai/qwen': { litellm_provider: 'together_ai', input_cost_per_token: 6e-8 },
    }
    expect(read(list)).toMatchObject({
      format: 'LiteLLM',
      models: 4,
      catalog: {
        providers: {
          openai: {
            models: {
              'gpt-4o': { rates: { input: '2.5', output: '10' } },
              'whisper-1': { units: { perMinute: '0.006' } },
              'gpt-batch': { rates: { input: '2.5' }, batch: { input: '1.25', output: '5' } },
            },
          },
          togetherai: { models: { qwen: { rates: { input: '0.06' } } } },
        },
      },
    })
  })

  it.each([['not JSON'], ['[]'], ['{}'], ['{"a":1}'], ['{"providers":{"other":{"models":{"m":{}}}}}']])(
    'reports %s',
    (text) => {
      expect(readPriceList(text, known).kind).toBe('invalid')
    },
  )

  it('accepts any JSON without an exception', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        readPriceList(text, known)
      }),
    )
  })
})

describe('withEntry', () => {
  const place = { provider: 'openai', model: 'm' }

  it('adds, replaces and removes the entry of a model', () => {
    const added = withEntry(undefined, place, { rates: { input: '1' } })
    expect(entryOf(added, place)).toEqual({ rates: { input: '1' } })
    expect(withEntry(added, place, undefined)).toEqual({ providers: {} })
  })

  it('retains other models, also with names of object members', () => {
    const catalog = withEntry(undefined, { provider: '__proto__', model: 'constructor' }, { rates: {} })
    const both = withEntry(catalog, place, { rates: {} })
    expect(entryOf(both, { provider: '__proto__', model: 'constructor' })).toEqual({ rates: {} })
    expect(entryOf(both, { provider: 'openai', model: 'toString' })).toBeUndefined()
  })

  it('retains tiers, limits and tags with other prices', () => {
    const entry = { rates: { input: '1' }, tags: ['fast'] }
    expect(withRates(entry, { output: '2' })).toEqual({ tags: ['fast'], rates: { output: '2' } })
    expect(withRates({ rates: { input: '1' } }, {})).toBeUndefined()
  })
})
