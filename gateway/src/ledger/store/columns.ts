import type { BudgetCharge, LedgerEntry, TokenCounts } from '../entry.ts'

export type SqlValue = string | number | null

/** A column of `tollgate_requests`. */
export type RequestColumn = {
  readonly name: string
  readonly type: 'text' | 'integer' | 'real'
  readonly read: (entry: LedgerEntry) => SqlValue
}

/** Columns of `tollgate_requests`, in the order of the table. Flags are 0 or 1. */
export const requestColumns: readonly RequestColumn[] = [
  text('id', (entry) => entry.id),
  text('kind', (entry) => entry.kind),
  integer('started_at', (entry) => entry.startedAt),
  integer('completed_at', (entry) => entry.completedAt),
  real('duration_ms', (entry) => entry.durationMs),
  real('first_byte_ms', (entry) => entry.firstByteMs),
  integer('status', (entry) => entry.status),
  text('error_code', (entry) => entry.errorCode),
  text('refused_by', (entry) => entry.refusedBy),
  text('method', (entry) => entry.method),
  text('path', (entry) => entry.path),
  text('route', (entry) => entry.route),
  text('listener', (entry) => entry.listener),
  text('key_id', (entry) => entry.keyId),
  text('key_name', (entry) => entry.keyName),
  text('user_name', (entry) => entry.user),
  text('group_name', (entry) => entry.group),
  text('client', (entry) => entry.client),
  text('user_agent', (entry) => entry.userAgent),
  text('operation', (entry) => entry.operation),
  text('provider', (entry) => entry.provider),
  text('request_model', (entry) => entry.requestModel),
  text('served_model', (entry) => entry.servedModel),
  flag('streaming', (entry) => entry.streaming),
  integer('attempts', (entry) => entry.attempts),
  integer('input_tokens', (entry) => entry.tokens?.input),
  integer('output_tokens', (entry) => entry.tokens?.output),
  integer('total_tokens', (entry) => entry.tokens?.total),
  integer('cached_input_tokens', (entry) => entry.tokens?.cachedInput),
  integer('cache_creation_tokens', (entry) => entry.tokens?.cacheCreationInput),
  integer('reasoning_tokens', (entry) => entry.tokens?.reasoning),
  flag('tokens_estimated', (entry) => entry.tokensEstimated),
  integer('cost_picodollars', (entry) => entry.costPicodollars),
  text('cost_status', (entry) => entry.costStatus),
  text('mcp_method', (entry) => entry.mcpMethod),
  text('mcp_target', (entry) => entry.mcpTarget),
  text('mcp_item', (entry) => entry.mcpItem),
  text('guards', (entry) => entry.guards),
  text('limits', (entry) => entry.limits),
  text('trace_id', (entry) => entry.traceId),
  text('upstream_request_id', (entry) => entry.upstreamRequestId),
  flag('incomplete', (entry) => entry.incomplete),
  text('charges', ({ charges }) => (charges.length === 0 ? undefined : JSON.stringify(charges))),
  flag('has_payload', ({ details }) => details.request !== undefined || details.response !== undefined),
  flag('has_explanation', ({ details }) => details.explanation !== undefined),
  text('cache', (entry) => entry.cache),
  text('settles', (entry) => entry.settles),
]

/** Columns with an index `(column, completed_at)`, for filters. */
export const indexedColumns = [
  'status',
  'error_code',
  'route',
  'listener',
  'key_id',
  'key_name',
  'user_name',
  'group_name',
  'client',
  'provider',
  'request_model',
  'served_model',
  'mcp_target',
  'mcp_item',
  'trace_id',
] as const

/** Column names of `tollgate_requests` for a `select`, in the order that `decodeRequest` expects. */
export const requestColumnList = requestColumns.map(({ name }) => name).join(', ')

/** A row of `tollgate_requests`. Its details are in `tollgate_request_details`. */
export type StoredRequest = {
  readonly entry: LedgerEntry
  readonly hasPayload: boolean
  readonly hasExplanation: boolean
}

const positions = new Map(requestColumns.map(({ name }, index) => [name, index]))

/** Decodes the values of `requestColumnList`. Postgres returns integers as texts. */
export function decodeRequest(row: readonly unknown[]): StoredRequest {
  const read = (name: string): unknown => row[positions.get(name) ?? -1]
  const textOf = (name: string): string | undefined => optional(read(name), String)
  const numberOf = (name: string): number | undefined => optional(read(name), Number)
  const requiredText = (name: string): string => textOf(name) ?? ''
  const requiredNumber = (name: string): number => numberOf(name) ?? 0
  const isSet = (name: string): boolean => requiredNumber(name) === 1
  const charges = textOf('charges')
  const entry: LedgerEntry = {
    id: requiredText('id'),
    kind: requiredText('kind') === 'mcp' ? 'mcp' : 'llm',
    startedAt: requiredNumber('started_at'),
    completedAt: requiredNumber('completed_at'),
    durationMs: requiredNumber('duration_ms'),
    firstByteMs: numberOf('first_byte_ms'),
    status: requiredNumber('status'),
    errorCode: textOf('error_code'),
    refusedBy: textOf('refused_by'),
    method: requiredText('method'),
    path: requiredText('path'),
    route: requiredText('route'),
    listener: requiredText('listener'),
    keyId: textOf('key_id'),
    keyName: textOf('key_name'),
    user: textOf('user_name'),
    group: textOf('group_name'),
    client: requiredText('client'),
    userAgent: textOf('user_agent'),
    operation: textOf('operation'),
    provider: textOf('provider'),
    requestModel: textOf('request_model'),
    servedModel: textOf('served_model'),
    streaming: isSet('streaming'),
    cache: cacheResult(textOf('cache')),
    settles: textOf('settles'),
    attempts: requiredNumber('attempts'),
    tokens: decodeTokens(numberOf),
    tokensEstimated: isSet('tokens_estimated'),
    costPicodollars: numberOf('cost_picodollars'),
    costStatus: textOf('cost_status') as LedgerEntry['costStatus'],
    mcpMethod: textOf('mcp_method'),
    mcpTarget: textOf('mcp_target'),
    mcpItem: textOf('mcp_item'),
    guards: textOf('guards'),
    limits: textOf('limits'),
    traceId: textOf('trace_id'),
    upstreamRequestId: textOf('upstream_request_id'),
    incomplete: isSet('incomplete'),
    charges: charges === undefined ? [] : (JSON.parse(charges) as BudgetCharge[]),
    details: {},
  }
  return { entry, hasPayload: isSet('has_payload'), hasExplanation: isSet('has_explanation') }
}

function cacheResult(text: string | undefined): LedgerEntry['cache'] {
  return text === 'hit' || text === 'miss' ? text : undefined
}

function decodeTokens(numberOf: (name: string) => number | undefined): TokenCounts | undefined {
  const total = numberOf('total_tokens')
  if (total === undefined) return undefined
  return {
    input: numberOf('input_tokens') ?? 0,
    output: numberOf('output_tokens') ?? 0,
    total,
    cachedInput: numberOf('cached_input_tokens') ?? 0,
    cacheCreationInput: numberOf('cache_creation_tokens') ?? 0,
    reasoning: numberOf('reasoning_tokens') ?? 0,
  }
}

function optional<T>(value: unknown, convert: (value: unknown) => T): T | undefined {
  return value === null || value === undefined ? undefined : convert(value)
}

function text(name: string, read: (entry: LedgerEntry) => string | undefined): RequestColumn {
  return { name, type: 'text', read: (entry) => read(entry) ?? null }
}

function integer(name: string, read: (entry: LedgerEntry) => number | undefined): RequestColumn {
  return { name, type: 'integer', read: (entry) => read(entry) ?? null }
}

function real(name: string, read: (entry: LedgerEntry) => number | undefined): RequestColumn {
  return { name, type: 'real', read: (entry) => read(entry) ?? null }
}

function flag(name: string, read: (entry: LedgerEntry) => boolean): RequestColumn {
  return { name, type: 'integer', read: (entry) => (read(entry) ? 1 : 0) }
}
