/** Kind of traffic of a route. It determines the valid policies and the CEL variables. */
export type TrafficKind = 'http' | 'llm' | 'mcp' | 'ui'

/** Variables available for every request after its head is read. */
const headVariables: ReadonlySet<string> = new Set(['now', 'request', 'source', 'jwt', 'basicAuth', 'apiKey'])
/** Adds `request.body`, available after the body is read. MCP routes read the body in the backend. */
const httpVariables: ReadonlySet<string> = new Set([...headVariables, 'request.body'])
/** Adds `ui`, the call of the admin API. */
const uiVariables: ReadonlySet<string> = new Set([...httpVariables, 'ui'])
/** Adds `llmRequest` and `llm`, also available after the body is read. */
const llmVariables: ReadonlySet<string> = new Set([...httpVariables, 'llmRequest', 'llm'])

/** Returns the variables of rules and limit keys. Rules on single tools have their own set. */
export function celVariablesOf(kind: TrafficKind | 'gateway'): ReadonlySet<string> {
  if (kind === 'mcp') return headVariables
  if (kind === 'ui') return uiVariables
  return kind === 'llm' ? llmVariables : httpVariables
}
