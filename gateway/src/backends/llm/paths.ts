/** Path prefixes that LLM traffic takes at a gateway it shares with others: all that no other route is for. */
export const llmPaths: readonly string[] = ['/']
