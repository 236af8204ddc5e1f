import { llmResponseMembers } from '../../pipeline/facts/llm-facts.ts'

/** Kind of traffic of a route. It determines the valid policies and the CEL variables. */
export type TrafficKind = 'http' | 'llm' | 'mcp' | 'ui'

/**
 * Time of an evaluation: before the backend, when a reply exists, or after its last byte (log, traces,
 * metrics).
 */
export type CelPhase = 'request' | 'reply' | 'end'

/** Results of services that decide on requests, and values of transformations, in both spellings. */
const serviceVariables = ['metadata', 'extAuthz', 'extauthz', 'extProc', 'extproc']
/** Variables available for every request after its head is read. */
export const headVariables: ReadonlySet<string> = new Set([
  ...['now', 'request', 'source', 'destination', 'jwt', 'basicAuth', 'apiKey'],
  ...['proxy', 'backend'],
  ...serviceVariables,
])
/** Adds `request.body`, available after the body is read. MCP routes read the body in the backend. */
const httpVariables: ReadonlySet<string> = new Set([...headVariables, 'request.body', 'a2a'])
/** Adds `ui`, the call of the admin API. */
const uiVariables: ReadonlySet<string> = new Set([...httpVariables, 'ui'])
/** Adds `llmRequest` and `llm`, also available after the body is read. */
const llmVariables: ReadonlySet<string> = new Set([...httpVariables, 'llmRequest', 'llm'])

/** Adds the reply. Its body is read for the expressions of policies only. */
const replyVariables: readonly string[] = ['response', 'response.body']

const requestSets: Record<TrafficKind | 'gateway', ReadonlySet<string>> = {
  http: httpVariables,
  gateway: httpVariables,
  llm: llmVariables,
  mcp: headVariables,
  ui: uiVariables,
}

const replySets: Record<TrafficKind | 'gateway', ReadonlySet<string>> = {
  http: new Set([...httpVariables, ...replyVariables]),
  gateway: new Set([...httpVariables, ...replyVariables]),
  llm: new Set([...llmVariables, ...llmResponseMembers, ...replyVariables]),
  mcp: new Set([...headVariables, ...replyVariables]),
  ui: new Set([...uiVariables, ...replyVariables]),
}

/** Variables of the end of every request: expressions of logs, traces and metrics are for all traffic. */
const endVariables: ReadonlySet<string> = new Set([
  ...headVariables,
  ...['request.endTime', 'response', 'llmRequest', 'llm', 'mcp', 'mcp.methodName'],
  ...['mcp.tool.result', 'mcp.tool.error', 'llm.completion'],
  ...llmResponseMembers,
])

/**
 * Returns the variables of expressions on a kind of traffic, by default those of rules and limit keys. Rules
 * on single tools have their own set.
 */
export function celVariablesOf(
  kind: TrafficKind | 'gateway',
  phase: CelPhase = 'request',
): ReadonlySet<string> {
  if (phase === 'end') return endVariables
  return phase === 'reply' ? replySets[kind] : requestSets[kind]
}

/**
 * Returns the variables of policies before the LLM request is parsed: conditions, direct responses and
 * transformations.
 */
export function earlyVariablesOf(kind: TrafficKind | 'gateway'): ReadonlySet<string> {
  return kind === 'llm' ? httpVariables : requestSets[kind]
}

const kinds = ['gateway', 'http', 'llm', 'mcp', 'ui'] as const

/** Variables of every place: the checks of each policy have those of its own. */
export const allVariables: ReadonlySet<string> = new Set(
  kinds.flatMap((kind) => [...celVariablesOf(kind, 'reply'), ...celVariablesOf(kind, 'end')]),
)
