export type FieldKind = 'text' | 'number' | 'flag'

/** A column of the ledger that requests can be filtered by. */
export type FilterField = {
  readonly name: string
  readonly label: string
  readonly kind: FieldKind
  readonly group: 'Result' | 'Caller' | 'Route' | 'LLM' | 'MCP' | 'Amounts' | 'Decisions'
  /** Values that are always offered. */
  readonly values?: readonly string[]
  readonly unit?: string
}

export const filterFields: readonly FilterField[] = [
  { name: 'status', label: 'Status', kind: 'number', group: 'Result' },
  { name: 'errorCode', label: 'Error code', kind: 'text', group: 'Result' },
  { name: 'refusedBy', label: 'Refused by', kind: 'text', group: 'Result' },
  { name: 'durationMs', label: 'Duration', kind: 'number', group: 'Result', unit: 'ms' },
  { name: 'firstByteMs', label: 'Time to first byte', kind: 'number', group: 'Result', unit: 'ms' },
  { name: 'incomplete', label: 'Incomplete', kind: 'flag', group: 'Result' },
  { name: 'streaming', label: 'Streaming', kind: 'flag', group: 'Result' },
  { name: 'attempts', label: 'Attempts', kind: 'number', group: 'Result' },
  { name: 'kind', label: 'Kind', kind: 'text', group: 'Route', values: ['llm', 'mcp'] },
  { name: 'route', label: 'Route', kind: 'text', group: 'Route' },
  { name: 'listener', label: 'Listener', kind: 'text', group: 'Route' },
  { name: 'method', label: 'Method', kind: 'text', group: 'Route' },
  { name: 'path', label: 'Path', kind: 'text', group: 'Route' },
  { name: 'id', label: 'Request id', kind: 'text', group: 'Route' },
  { name: 'traceId', label: 'Trace id', kind: 'text', group: 'Route' },
  { name: 'keyName', label: 'Key name', kind: 'text', group: 'Caller' },
  { name: 'keyId', label: 'Key id', kind: 'text', group: 'Caller' },
  { name: 'user', label: 'User', kind: 'text', group: 'Caller' },
  { name: 'group', label: 'Group', kind: 'text', group: 'Caller' },
  { name: 'client', label: 'Client address', kind: 'text', group: 'Caller' },
  { name: 'userAgent', label: 'User agent', kind: 'text', group: 'Caller' },
  { name: 'provider', label: 'Provider', kind: 'text', group: 'LLM' },
  { name: 'requestModel', label: 'Requested model', kind: 'text', group: 'LLM' },
  { name: 'servedModel', label: 'Served model', kind: 'text', group: 'LLM' },
  { name: 'operation', label: 'Operation', kind: 'text', group: 'LLM' },
  { name: 'cache', label: 'Response cache', kind: 'text', group: 'LLM', values: ['hit', 'miss'] },
  { name: 'upstreamRequestId', label: 'Request id of the provider', kind: 'text', group: 'LLM' },
  { name: 'mcpTarget', label: 'MCP server', kind: 'text', group: 'MCP' },
  { name: 'mcpItem', label: 'Tool, prompt or resource', kind: 'text', group: 'MCP' },
  { name: 'mcpMethod', label: 'MCP method', kind: 'text', group: 'MCP' },
  { name: 'totalTokens', label: 'Tokens', kind: 'number', group: 'Amounts' },
  { name: 'inputTokens', label: 'Input tokens', kind: 'number', group: 'Amounts' },
  { name: 'outputTokens', label: 'Output tokens', kind: 'number', group: 'Amounts' },
  { name: 'cachedInputTokens', label: 'Cached input tokens', kind: 'number', group: 'Amounts' },
  { name: 'reasoningTokens', label: 'Reasoning tokens', kind: 'number', group: 'Amounts' },
  { name: 'tokensEstimated', label: 'Tokens estimated', kind: 'flag', group: 'Amounts' },
  { name: 'cost', label: 'Cost', kind: 'number', group: 'Amounts', unit: 'USD' },
  {
    name: 'costStatus',
    label: 'Cost status',
    kind: 'text',
    group: 'Amounts',
    values: ['exact', 'estimated', 'unpriced', 'missing'],
  },
  { name: 'limits', label: 'Limits', kind: 'text', group: 'Decisions' },
  { name: 'guards', label: 'Guards', kind: 'text', group: 'Decisions' },
  { name: 'charges', label: 'Budgets', kind: 'text', group: 'Decisions' },
  { name: 'hasPayload', label: 'Content stored', kind: 'flag', group: 'Decisions' },
  { name: 'hasExplanation', label: 'Explanation stored', kind: 'flag', group: 'Decisions' },
]

const byName = new Map(filterFields.map((field) => [field.name, field]))

export function filterField(name: string): FilterField | undefined {
  return byName.get(name)
}
