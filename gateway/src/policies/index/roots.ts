/** What a route carries: it decides which policies mean something, and which variables exist. */
export type TrafficKind = 'http' | 'llm' | 'mcp'

/** Variables that exist for every request, as soon as its head is there. */
const headRoots: ReadonlySet<string> = new Set(['request', 'source', 'jwt', 'apiKey'])
/** `llmRequest` and `llm` exist once the body is read. */
const llmRoots: ReadonlySet<string> = new Set([...headRoots, 'llmRequest', 'llm'])

/** Variables that rules and keys of limits may name. Rules on single tools have their own. */
export function rootsOf(kind: TrafficKind | 'gateway'): ReadonlySet<string> {
  return kind === 'llm' ? llmRoots : headRoots
}
