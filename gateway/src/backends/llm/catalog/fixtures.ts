import type { Usage } from '../../../pipeline/exchange.ts'

/** The counts of a call in tests, all zero but for what is said. */
export function fixtureCallUsage(counts: Partial<Usage>): Usage {
  const { inputTokens = 0, outputTokens = 0 } = counts
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cachedInputTokens: 0,
    cacheCreationInputTokens: 0,
    reasoningTokens: 0,
    estimated: false,
    ...counts,
  }
}
