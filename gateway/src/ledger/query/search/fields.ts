/** Fields of requests for filters and their columns in `tollgate_requests`. */
export type FieldType =
  /** Compared bytewise. */
  | 'text'
  | 'integer'
  | 'real'
  /** 0 or 1. */
  | 'flag'

type Field = { readonly column: string; readonly type: FieldType }

/** Fields by their name in the API: the members of `LedgerEntry`. */
export const filterFields = {
  id: text('id'),
  kind: text('kind'),
  startedAt: integer('started_at'),
  durationMs: real('duration_ms'),
  firstByteMs: real('first_byte_ms'),
  status: integer('status'),
  errorCode: text('error_code'),
  refusedBy: text('refused_by'),
  method: text('method'),
  path: text('path'),
  route: text('route'),
  listener: text('listener'),
  keyId: text('key_id'),
  keyName: text('key_name'),
  user: text('user_name'),
  group: text('group_name'),
  client: text('client'),
  userAgent: text('user_agent'),
  operation: text('operation'),
  provider: text('provider'),
  requestModel: text('request_model'),
  servedModel: text('served_model'),
  streaming: flag('streaming'),
  cache: text('cache'),
  settles: text('settles'),
  attempts: integer('attempts'),
  inputTokens: integer('input_tokens'),
  outputTokens: integer('output_tokens'),
  totalTokens: integer('total_tokens'),
  cachedInputTokens: integer('cached_input_tokens'),
  cacheCreationInputTokens: integer('cache_creation_tokens'),
  reasoningTokens: integer('reasoning_tokens'),
  tokensEstimated: flag('tokens_estimated'),
  costPicodollars: integer('cost_picodollars'),
  costStatus: text('cost_status'),
  mcpMethod: text('mcp_method'),
  mcpTarget: text('mcp_target'),
  mcpItem: text('mcp_item'),
  guards: text('guards'),
  limits: text('limits'),
  charges: text('charges'),
  traceId: text('trace_id'),
  upstreamRequestId: text('upstream_request_id'),
  incomplete: flag('incomplete'),
  hasPayload: flag('has_payload'),
  hasExplanation: flag('has_explanation'),
} as const satisfies Record<string, Field>

export type FilterField = keyof typeof filterFields

/** Columns that `text` of a filter searches. */
export const searchedColumns = [
  'path',
  'request_model',
  'served_model',
  'key_name',
  'user_name',
  'error_code',
  'refused_by',
  'mcp_target',
  'mcp_item',
] as const

function text(column: string): { column: string; type: 'text' } {
  return { column, type: 'text' }
}

function integer(column: string): { column: string; type: 'integer' } {
  return { column, type: 'integer' }
}

function real(column: string): { column: string; type: 'real' } {
  return { column, type: 'real' }
}

function flag(column: string): { column: string; type: 'flag' } {
  return { column, type: 'flag' }
}
