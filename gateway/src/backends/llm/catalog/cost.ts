import type { Usage } from '../../../pipeline/facts/llm-facts.ts'
import type { Picodollars } from './money.ts'

/** Price of one token by kind; undefined if the catalog has none. */
export type Rates = {
  readonly input: Picodollars | undefined
  readonly output: Picodollars | undefined
  readonly cacheRead: Picodollars | undefined
  readonly cacheWrite: Picodollars | undefined
  readonly reasoning: Picodollars | undefined
  readonly inputAudio: Picodollars | undefined
  readonly outputAudio: Picodollars | undefined
}

/** Prices of a model: base rates, and tiers for prompts above a number of tokens, largest first. */
export type ModelPrices = {
  readonly rates: Rates
  readonly tiers: readonly { readonly contextOver: number; readonly rates: Rates }[]
}

/**
 * Cost of a call; undefined if it used tokens of a kind without a price, because the sum would be wrong.
 * Cache reads, cache writes and audio are parts of the input; reasoning and audio are parts of the output. A
 * part without a separate price has the price of input or output. A tier applies to all tokens of the call.
 */
export function costOf(usage: Usage, prices: ModelPrices): Picodollars | undefined {
  const rates = ratesFor(usage.inputTokens, prices)
  const { input, output } = rates
  const rest = { input: usage.inputTokens, output: usage.outputTokens }
  const cacheRead = takeTokens(rest, 'input', usage.cachedInputTokens)
  const cacheWrite = takeTokens(rest, 'input', usage.cacheCreationInputTokens)
  // Cached audio is among the cache reads.
  const uncachedAudio = (usage.inputAudioTokens ?? 0) - (usage.cachedInputAudioTokens ?? 0)
  const inputAudio = takeTokens(rest, 'input', Math.max(0, uncachedAudio))
  const reasoning = takeTokens(rest, 'output', usage.reasoningTokens)
  const outputAudio = takeTokens(rest, 'output', usage.outputAudioTokens)
  return sum([
    priced(cacheRead, rates.cacheRead ?? input),
    priced(cacheWrite, rates.cacheWrite ?? input),
    priced(inputAudio, rates.inputAudio ?? input),
    priced(rest.input, input),
    priced(reasoning, rates.reasoning ?? output),
    priced(outputAudio, rates.outputAudio ?? output),
    priced(rest.output, output),
  ])
}

function ratesFor(contextTokens: number, { rates, tiers }: ModelPrices): Rates {
  for (const tier of tiers) if (contextTokens > tier.contextOver) return tier.rates
  return rates
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
