import type { Usage } from '../../../pipeline/facts/llm-facts.ts'
import type { Picodollars } from './money.ts'
import { searchCostOf, type UnitPrices, unitCostOf } from './unit-cost.ts'

/** Price of one token by kind; undefined if the catalog has none. */
export type Rates = {
  readonly input: Picodollars | undefined
  readonly output: Picodollars | undefined
  readonly cacheRead: Picodollars | undefined
  readonly cacheWrite: Picodollars | undefined
  readonly reasoning: Picodollars | undefined
  readonly inputAudio: Picodollars | undefined
  readonly outputAudio: Picodollars | undefined
  readonly inputImage: Picodollars | undefined
  readonly outputImage: Picodollars | undefined
}

/**
 * Prices of a model: base rates, those of batches, and tiers for prompts above a number of tokens, largest
 * first.
 */
export type ModelPrices = {
  readonly rates: Rates
  readonly batch?: Rates | undefined
  readonly units?: UnitPrices | undefined
  readonly tiers: readonly { readonly contextOver: number; readonly rates: Rates }[]
}

/**
 * `tokens`: as exact as the counts. `units`: exact, from facts of the call. `guess`: with a price of
 * something else, because the catalog lacks the right one. `unclear`: a sum of prompts of unknown sizes, on
 * which prices depend.
 */
export type CostBasis = 'tokens' | 'units' | 'guess' | 'unclear'

/** Cost of a call. */
export type CallCost = { readonly amount: Picodollars; readonly basis: CostBasis }

/**
 * Cost of a call; undefined if it used tokens of a kind without a price, because the sum would be wrong.
 * Units with a price replace tokens, but for searches of the web, which are added.
 */
export function costOf(usage: Usage, prices: ModelPrices): CallCost | undefined {
  const { units } = usage
  const unit = units && prices.units && unitCostOf(units, prices.units)
  if (unit) return { amount: unit.amount, basis: unit.isExact ? 'units' : 'guess' }
  const tokens = tokenCostOf(usage, prices)
  if (tokens === undefined || units === undefined) return tokens
  const ofSearches = searchCostOf(units.webSearches ?? 0, prices.units)
  if (ofSearches === undefined || units.searches !== undefined)
    return { amount: tokens.amount, basis: 'guess' }
  return { amount: tokens.amount + ofSearches, basis: tokens.basis }
}

/**
 * Cost of tokens. Cache reads, cache writes, audio and images are parts of the input; reasoning, audio and
 * images are parts of the output. A part without a separate price has the price of input or output. A tier
 * applies to all tokens of the call.
 */
function tokenCostOf(usage: Usage, prices: ModelPrices): CallCost | undefined {
  const { rates, basis } = ratesFor(usage, prices)
  const { input, output } = rates
  const rest = { input: usage.inputTokens, output: usage.outputTokens }
  const cacheRead = takeTokens(rest, 'input', usage.cachedInputTokens)
  const cacheWrite = takeTokens(rest, 'input', usage.cacheCreationInputTokens)
  // Cached audio is among the cache reads.
  const uncachedAudio = (usage.inputAudioTokens ?? 0) - (usage.cachedInputAudioTokens ?? 0)
  const inputAudio = takeTokens(rest, 'input', Math.max(0, uncachedAudio))
  const inputImage = takeTokens(rest, 'input', usage.inputImageTokens)
  const reasoning = takeTokens(rest, 'output', usage.reasoningTokens)
  const outputAudio = takeTokens(rest, 'output', usage.outputAudioTokens)
  const outputImage = takeTokens(rest, 'output', usage.outputImageTokens)
  const amount = sum([
    priced(cacheRead, rates.cacheRead ?? input),
    priced(cacheWrite, rates.cacheWrite ?? input),
    priced(inputAudio, rates.inputAudio ?? input),
    priced(inputImage, rates.inputImage ?? input),
    priced(rest.input, input),
    priced(reasoning, rates.reasoning ?? output),
    priced(outputAudio, rates.outputAudio ?? output),
    priced(outputImage, rates.outputImage ?? output),
    priced(rest.output, output),
  ])
  if (amount === undefined) return undefined
  // Audio and images have other prices than text everywhere.
  const isGuess =
    (inputAudio > 0 && rates.inputAudio === undefined) ||
    (outputAudio > 0 && rates.outputAudio === undefined) ||
    (inputImage > 0 && rates.inputImage === undefined) ||
    (outputImage > 0 && rates.outputImage === undefined)
  return { amount, basis: isGuess ? 'guess' : basis }
}

/** The rates of a call, and their basis. */
function ratesFor(
  { inputTokens, batch: part }: Usage,
  { rates, batch, tiers }: ModelPrices,
): { readonly rates: Rates; readonly basis: CostBasis } {
  if (part === 'sum') return { rates: batch ?? rates, basis: tiers.length > 0 ? 'unclear' : ofBatch(batch) }
  const tier = tiers.find(({ contextOver }) => inputTokens > contextOver)
  const own = tier?.rates ?? rates
  if (part === undefined) return { rates: own, basis: 'tokens' }
  // Prices of batches have no tiers.
  return tier === undefined ? { rates: batch ?? own, basis: ofBatch(batch) } : { rates: own, basis: 'guess' }
}

function ofBatch(batch: Rates | undefined): CostBasis {
  return batch === undefined ? 'guess' : 'tokens'
}

/** Providers may report a token as two kinds, for example cached and audio; it is charged once. */
function takeTokens(rest: Record<'input' | 'output', number>, of: 'input' | 'output', wanted = 0): number {
  const taken = Math.min(wanted, rest[of])
  rest[of] -= taken
  return taken
}

function priced(tokens: number, rate: Picodollars | undefined): Picodollars | undefined {
  if (tokens === 0) return 0n
  return rate === undefined ? undefined : BigInt(tokens) * rate
}

function sum(amounts: readonly (Picodollars | undefined)[]): Picodollars | undefined {
  let total = 0n
  for (const amount of amounts) {
    if (amount === undefined) return undefined
    total += amount
  }
  return total
}
