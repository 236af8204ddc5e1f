import type { Usage } from '../../../pipeline/exchange.ts'
import type { Picodollars } from './money.ts'

/** What one token of each kind costs; undefined where the catalog does not say. */
export type Rates = {
  readonly input: Picodollars | undefined
  readonly output: Picodollars | undefined
  readonly cacheRead: Picodollars | undefined
  readonly cacheWrite: Picodollars | undefined
  readonly reasoning: Picodollars | undefined
  readonly inputAudio: Picodollars | undefined
  readonly outputAudio: Picodollars | undefined
}

/** Prices of a model: those that hold for prompts of more than some number of tokens, the longest first, and the others. */
export type ModelPrices = {
  readonly rates: Rates
  readonly tiers: readonly { readonly contextOver: number; readonly rates: Rates }[]
}

/**
 * What a call costs; undefined where it used tokens of a kind without a price, since a sum without them would be wrong.
 * Cached, written and audio tokens are parts of the input, reasoning and audio parts of the output; a part without a price of
 * its own costs what the whole does. A long prompt changes the price of every token of the call.
 */
export function costOf(usage: Usage, prices: ModelPrices): Picodollars | undefined {
  const rates = ratesFor(usage.inputTokens, prices)
  const { input, output } = rates
  const rest = { input: usage.inputTokens, output: usage.outputTokens }
  const cacheRead = takeTokens(rest, 'input', usage.cachedInputTokens)
  const cacheWrite = takeTokens(rest, 'input', usage.cacheCreationInputTokens)
  const inputAudio = takeTokens(rest, 'input', usage.inputAudioTokens)
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

/** Providers may count a token as two kinds, cached and audio for example: it is paid for once. */
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
