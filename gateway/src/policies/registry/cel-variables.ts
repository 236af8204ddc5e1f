/** What a route carries: it decides which policies mean something, and which variables exist. */
export type TrafficKind = 'http' | 'llm' | 'mcp'

/** Variables that exist for every request, as soon as its head is there. */
const headVariables: ReadonlySet<string> = new Set(['now', 'request', 'source', 'jwt', 'apiKey'])
/** `request.body` exists once the body is read, which MCP servers do themselves. */
const httpVariables: ReadonlySet<string> = new Set([...headVariables, 'request.body'])
/** So do `llmRequest` and `llm`. */
const llmVariables: ReadonlySet<string> = new Set([...httpVariables, 'llmRequest', 'llm'])

/** Variables that rules and keys of limits may name. Rules on single tools have their own. */
export function celVariablesOf(kind: TrafficKind | 'gateway'): ReadonlySet<string> {
  if (kind === 'mcp') return headVariables
  return kind === 'llm' ? llmVariables : httpVariables
}
