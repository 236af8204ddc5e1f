import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureCallUsage } from '../../../../test/fixtures/llm-catalog.ts'
import { dollarsOf } from '../../../lib/picodollars.ts'
import type { Usage, UsageUnits } from '../../../pipeline/facts/llm-facts.ts'
import type { CatalogModel } from './config.ts'
import { type CostBasis, costOf, type ModelPrices, type Rates } from './cost.ts'
import { parsePrice } from './money.ts'

type Written = Partial<Record<keyof Rates, string>>

function ratesOf(written: Written): Rates {
  const rate = (text: string | undefined) => (text === undefined ? undefined : parsePrice(text))
  return {
    input: rate(written.input),
    output: rate(written.output),
    cacheRead: rate(written.cacheRead),
    cacheWrite: rate(written.cacheWrite),
    reasoning: rate(written.reasoning),
    inputAudio: rate(written.inputAudio),
    outputAudio: rate(written.outputAudio),
    inputImage: rate(written.inputImage),
    outputImage: rate(written.outputImage),
  }
}

const flat = (written: Written): ModelPrices => ({ rates: ratesOf(written), tiers: [] })

const openAi = flat({ input: '2.50', output: '10', cacheRead: '1.25' })
const anthropic = flat({ input: '3', output: '15', cacheRead: '0.30', cacheWrite: '3.75' })
const audio = flat({ input: '0.15', output: '0.60', inputAudio: '10', outputAudio: '20' })
const tiered: ModelPrices = {
  rates: ratesOf({ input: '1.25', output: '10', cacheRead: '0.125' }),
  tiers: [
    { contextOver: 1_000_000, rates: ratesOf({ input: '5', output: '30' }) },
    { contextOver: 200_000, rates: ratesOf({ input: '2.5', output: '15', cacheRead: '0.25' }) },
  ],
}

describe('costOf', () => {
  it.each<[string, ModelPrices, Partial<Usage>, number]>([
    ['input and output', openAi, { inputTokens: 21, outputTokens: 9 }, 0.0001425],
    ['cached input', openAi, { inputTokens: 1000, cachedInputTokens: 800, outputTokens: 100 }, 0.0025],
    ['input that is all cached', openAi, { inputTokens: 800, cachedInputTokens: 800 }, 0.001],
    [
      'cache reads and writes',
      anthropic,
      { inputTokens: 10_000, cachedInputTokens: 7000, cacheCreationInputTokens: 2000, outputTokens: 500 },
      0.0201,
    ],
    [
      'cache writes at the price of input',
      openAi,
      { inputTokens: 100, cacheCreationInputTokens: 40 },
      0.00025,
    ],
    ['reasoning as part of the output', openAi, { outputTokens: 100, reasoningTokens: 90 }, 0.001],
    [
      'reasoning with a price of its own',
      flat({ output: '10', reasoning: '4' }),
      { outputTokens: 100, reasoningTokens: 90 },
      0.00046,
    ],
    [
      'audio both ways',
      audio,
      { inputTokens: 120, inputAudioTokens: 100, outputTokens: 60, outputAudioTokens: 50 },
      0.002009,
    ],
    ['audio at the price of text', openAi, { inputTokens: 100, inputAudioTokens: 100 }, 0.00025],
    ['a prompt of exactly the threshold', tiered, { inputTokens: 200_000, outputTokens: 1000 }, 0.26],
    ['a long prompt', tiered, { inputTokens: 250_000, outputTokens: 1000 }, 0.64],
    ['a long prompt that is cached', tiered, { inputTokens: 250_000, cachedInputTokens: 250_000 }, 0.0625],
    ['the longest prompts', tiered, { inputTokens: 2_000_000 }, 10],
    ['nothing', openAi, {}, 0],
    ['the smallest price', flat({ input: '0.000001' }), { inputTokens: 1 }, 1e-12],
    [
      'the largest of both',
      flat({ output: '999999999999' }),
      { outputTokens: 1_000_000_000 },
      999_999_999_999_000,
    ],
  ])('prices %s', (_title, prices, counts, dollars) => {
    const cost = costOf(fixtureCallUsage(counts), prices)
    expect(cost === undefined ? undefined : dollarsOf(cost.amount)).toBe(dollars)
  })

  it('charges a token of two kinds once', () => {
    const prices = flat({ input: '1', cacheRead: '2', cacheWrite: '4', inputAudio: '8' })
    const cost = costOf(
      fixtureCallUsage({
        inputTokens: 10,
        cachedInputTokens: 6,
        cacheCreationInputTokens: 6,
        inputAudioTokens: 6,
      }),
      prices,
    )
    expect(cost?.amount).toBe(parsePrice('28'))
  })

  it('does not reduce the cost for counts above the total', () => {
    const usage = fixtureCallUsage({ outputTokens: 5, reasoningTokens: 1_000_000 })
    expect(costOf(usage, openAi)?.amount).toBe(50_000_000n)
  })

  it('equals the exact sum of the parts for all prices and counts', () => {
    fc.assert(
      fc.property(fc.array(price(), { minLength: 7, maxLength: 7 }), parts(), (written, counts) => {
        const [input, output, cacheRead, cacheWrite, reasoning, inputAudio, outputAudio] = written
        const prices = flat(
          definedOf({ input, output, cacheRead, cacheWrite, reasoning, inputAudio, outputAudio }),
        )
        const cost = costOf(usageOf(counts), prices)?.amount ?? -1n
        const { plainInput, plainOutput } = counts
        const expected = addAll([
          times(input, plainInput),
          times(cacheRead, counts.cacheRead),
          times(cacheWrite, counts.cacheWrite),
          times(inputAudio, counts.inputAudio),
          times(output, plainOutput),
          times(reasoning, counts.reasoning),
          times(outputAudio, counts.outputAudio),
        ])
        // cost / 10^12 dollars = expected.top / (expected.bottom * 10^6) dollars
        expect(cost * expected.bottom).toBe(expected.top * 1_000_000n)
      }),
    )
  })

  it('is additive over calls', () => {
    fc.assert(
      fc.property(parts(), parts(), (one, other) => {
        const both = Object.fromEntries(
          Object.entries(one).map(([kind, count]) => [
            kind,
            count + (Object.entries(other).find(([k]) => k === kind)?.[1] ?? 0),
          ]),
        )
        const [first, second, sum] = [one, other, { ...one, ...both }].map(
          (counts) => costOf(usageOf(counts), anthropic)?.amount,
        )
        expect((first ?? 0n) + (second ?? 0n)).toBe(sum)
      }),
    )
  })
})

describe('costs of images, audio, searches and batches', () => {
  const units = unitPrices({
    perImage: '0.04',
    images: [{ size: '1024x1024', quality: 'hd', price: '0.08' }],
    perMinute: '0.006',
    perMillionCharacters: '15',
    perThousandSearches: '2',
  })
  const plain = unitPrices({ perImage: '0.02' })
  const search = flat({ input: '3', output: '15' })
  const batch = { ...tiered, batch: ratesOf({ input: '0.625', output: '5' }) }
  it.each<[string, ModelPrices, Partial<Usage>, number, CostBasis]>([
    ['images of one price', plain, { units: imagesOf(3) }, 0.06, 'units'],
    ['images of a size and quality', units, { units: imagesOf(2, '1024x1024', 'hd') }, 0.16, 'units'],
    ['images of another quality', units, { units: imagesOf(2, '1024x1024', 'low') }, 0.08, 'units'],
    ['images of an unknown quality', units, { units: imagesOf(2, '1024x1024') }, 0.08, 'guess'],
    ['seconds of audio', units, { units: { seconds: 12.5 } }, 0.00125, 'units'],
    ['characters of speech', units, { units: { characters: 2000 } }, 0.03, 'units'],
    ['searches of a reranker', units, { inputTokens: 500, units: { searches: 3 } }, 0.006, 'units'],
    ['searches without a price', search, { inputTokens: 500, units: { searches: 3 } }, 0.0015, 'guess'],
    [
      'searches of the web beside tokens',
      { ...search, units: units.units },
      { inputTokens: 1000, units: { webSearches: 2 } },
      0.007,
      'tokens',
    ],
    ['image tokens at the price of text', openAi, { outputTokens: 10, outputImageTokens: 10 }, 1e-4, 'guess'],
    [
      'image tokens',
      flat({ input: '5', output: '10', inputImage: '10', outputImage: '40' }),
      { inputTokens: 300, inputImageTokens: 200, outputTokens: 1000, outputImageTokens: 1000 },
      0.0425,
      'tokens',
    ],
    ['audio without a price', openAi, { inputTokens: 100, inputAudioTokens: 100 }, 0.00025, 'guess'],
    ['a request of a batch', batch, { inputTokens: 1000, batch: 'request' }, 0.000625, 'tokens'],
    ['a long request of a batch', batch, { inputTokens: 300_000, batch: 'request' }, 0.75, 'guess'],
    ['a batch with tiers', batch, { inputTokens: 300_000, batch: 'sum' }, 0.1875, 'unclear'],
    ['a batch without prices of batches', openAi, { inputTokens: 1000, batch: 'sum' }, 0.0025, 'guess'],
  ])('price %s', (_title, prices, counts, dollars, basis) => {
    const cost = costOf(fixtureCallUsage(counts), prices)
    expect([dollarsOf(cost?.amount ?? -1n), cost?.basis]).toEqual([dollars, basis])
  })
})

function imagesOf(count: number, size?: string, quality?: string): UsageUnits {
  return { images: { count, size, quality } }
}

function unitPrices({ images = [], ...prices }: NonNullable<CatalogModel['units']>): ModelPrices {
  const read = (text: string | undefined) => (text === undefined ? undefined : parsePrice(text))
  return {
    rates: ratesOf({}),
    tiers: [],
    units: {
      perImage: read(prices.perImage),
      images: images.map((image) => ({ ...image, price: read(image.price) ?? 0n })),
      perMinute: read(prices.perMinute),
      perMillionCharacters: read(prices.perMillionCharacters),
      perThousandSearches: read(prices.perThousandSearches),
    },
  }
}

describe('parsePrice', () => {
  it.each([
    ['0', 0n],
    ['2.5', 2_500_000n],
    ['2.50', 2_500_000n],
    ['0.000001', 1n],
    ['007', 7_000_000n],
    ['999999999999.999999', 999_999_999_999_999_999n],
  ])('reads %s', (text, rate) => {
    expect(parsePrice(text)).toBe(rate)
  })

  it.each([
    '',
    ' ',
    '-1',
    '+1',
    '1.',
    '.5',
    '1e3',
    '0x1',
    '1,5',
    '1.2345678',
    '1.0000001',
    '1 ',
    'NaN',
    '1\n',
    '٣',
    '1234567890123',
  ])('rejects the price %j', (text) => {
    expect(parsePrice(text)).toBeUndefined()
  })
})

type Parts = {
  plainInput: number
  plainOutput: number
  cacheRead: number
  cacheWrite: number
  reasoning: number
  inputAudio: number
  outputAudio: number
}

function parts(): fc.Arbitrary<Parts> {
  const count = fc.nat({ max: 100_000_000 })
  return fc.record({
    plainInput: count,
    plainOutput: count,
    cacheRead: count,
    cacheWrite: count,
    reasoning: count,
    inputAudio: count,
    outputAudio: count,
  })
}

function usageOf(counts: Parts): Usage {
  const { plainInput, plainOutput, cacheRead, cacheWrite, reasoning, inputAudio, outputAudio } = counts
  return fixtureCallUsage({
    inputTokens: plainInput + cacheRead + cacheWrite + inputAudio,
    outputTokens: plainOutput + reasoning + outputAudio,
    cachedInputTokens: cacheRead,
    cacheCreationInputTokens: cacheWrite,
    reasoningTokens: reasoning,
    inputAudioTokens: inputAudio,
    outputAudioTokens: outputAudio,
  })
}

/** Prices as people write them: with and without decimals, and zeros at their end. */
function price(): fc.Arbitrary<string> {
  return fc
    .tuple(fc.nat({ max: 10_000 }), fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: 6 }))
    .map(([whole, fraction]) => (fraction === '' ? String(whole) : `${whole}.${fraction}`))
}

function definedOf(written: Partial<Record<keyof Rates, string | undefined>>): Written {
  return Object.fromEntries(Object.entries(written).filter(([, text]) => text !== undefined))
}

type Fraction = { top: bigint; bottom: bigint }

function times(written: string | undefined, tokens: number): Fraction {
  const [whole = '', fraction = ''] = (written ?? '').split('.')
  return { top: BigInt(whole + fraction) * BigInt(tokens), bottom: 10n ** BigInt(fraction.length) }
}

function addAll(fractions: Fraction[]): Fraction {
  return fractions.reduce(
    (one, other) => ({
      top: one.top * other.bottom + other.top * one.bottom,
      bottom: one.bottom * other.bottom,
    }),
    { top: 0n, bottom: 1n },
  )
}
