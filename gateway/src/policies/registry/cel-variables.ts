/** What a route carries: it decides which policies mean something, and which variables exist. */
export type TrafficKind = 'http' | 'llm' | 'mcp'

/** Variables that exist for every request, as soon as its head is there. */
const headRoots: ReadonlySet<string> = new Set(['now', 'request', 'source', 'jwt', 'apiKey'])
/** `request.body` exists once the body is read, which MCP servers do themselves. */
const httpRoots: ReadonlySet<string> = new Set([...headRoots, 'request.body'])
/** So do `llmRequest` and `llm`. */
const llmRoots: ReadonlySet<string> = new Set([...httpRoots, 'llmRequest', 'llm'])

/** Variables that rules and keys of limits may name. Rules on single tools have their own. */
export function rootsOf(kind: TrafficKind | 'gateway'): ReadonlySet<string> {
  if (kind === 'mcp') return headRoots
  return kind === 'llm' ? llmRoots : httpRoots
}
