import { requestColumns } from '../../src/ledger/store/columns.ts'
import { countColumns, dimensionColumns } from '../../src/ledger/store/usage-columns.ts'

const dayMs = 86_400_000

/** End of the rows, a whole day in UTC, and their start 30 days before. */
export const lastTime = Date.UTC(2026, 10, 1)
export const firstTime = lastTime - 30 * dayMs

/** Size of the sums: combinations of dimensions for each hour and each day, and days. */
type SumSize = { readonly hourGroups: number; readonly dayGroups: number; readonly days: number }

const yearOfSums: SumSize = { hourGroups: 100, dayGroups: 500, days: 365 }

type Kind = 'sqlite' | 'postgres'

export type FillOptions = {
  /** End of the rows and of the sums; default `lastTime`. */
  readonly endTime?: number
  readonly sums?: SumSize
}

/** Statements that insert requests of 30 days, and sums of a year. Values depend on the number of a row. */
export function fillSql(kind: Kind, rows: number, options: FillOptions = {}): readonly string[] {
  const { endTime = lastTime, sums = yearOfSums } = options
  const chunk = 1_000_000
  const requests: string[] = []
  for (let start = 0; start < rows; start += chunk)
    requests.push(insertRequests(kind, { start, end: Math.min(rows, start + chunk), rows, endTime }))
  const { hourGroups, dayGroups, days } = sums
  return [
    ...requests,
    insertSums(kind, 'hours', { unitMs: 3_600_000, groups: hourGroups, days, endTime }),
    insertSums(kind, 'days', { unitMs: dayMs, groups: dayGroups, days, endTime }),
  ]
}

type Range = {
  readonly start: number
  readonly end: number
  readonly rows: number
  readonly endTime: number
}

function insertRequests(kind: Kind, { start, end, rows, endTime }: Range): string {
  const stepMs = (lastTime - firstTime) / rows
  const completed = `${endTime - (lastTime - firstTime)} + cast(floor(x * ${stepMs}) as bigint)`
  const isMcp = 'x % 20 = 0'
  const llm = (value: string) => `case when ${isMcp} then null else ${value} end`
  const mcp = (value: string) => `case when ${isMcp} then ${value} end`
  const failed = 'case when x % 97 = 0 then 500 when x % 31 = 0 then 429 else 200 end'
  const expressions: Readonly<Record<string, string>> = {
    id: text(kind, '01930000-0000-7000-8000-%s', hex(kind, 'x', 12)),
    kind: `case when ${isMcp} then 'mcp' else 'llm' end`,
    started_at: `${completed} - x % 3000`,
    completed_at: completed,
    duration_ms: 'x % 3000 + 0.5',
    first_byte_ms: 'x % 900 + 0.25',
    status: failed,
    error_code: `case when x % 1000003 = 7 then 'rare_error' when x % 97 = 0 then 'upstream_reset' when x % 31 = 0 then 'rate_limited' end`,
    refused_by: `case when x % 31 = 0 then 'rate-limit: llm: per team' end`,
    method: "'POST'",
    path: `case when ${isMcp} then '/mcp' else '/v1/chat/completions' end`,
    route: `case when x % 3 = 0 then 'route-' || (x % 10) else 'llm' end`,
    listener: "'llm'",
    key_id: "'key-' || (x * 7919 % 1000)",
    key_name: "'name-' || (x * 7919 % 1000)",
    user_name: "'user-' || (x * 7919 % 5000)",
    group_name: "'team-' || (x * 7919 % 50)",
    client: "'10.0.' || (x % 8) || '.' || (x * 31 % 250)",
    user_agent: "'openai-python/2.1.0'",
    operation: llm("'chat'"),
    provider: llm("case x % 3 when 0 then 'openai' when 1 then 'anthropic' else 'gemini' end"),
    request_model: llm("'model-' || (x % 12)"),
    served_model: llm("'served-' || (x % 12)"),
    streaming: 'x % 2',
    attempts: '1',
    input_tokens: llm('x % 4000'),
    output_tokens: llm('x % 700'),
    total_tokens: llm('x % 4000 + x % 700'),
    cached_input_tokens: llm('0'),
    cache_creation_tokens: llm('0'),
    reasoning_tokens: llm('0'),
    tokens_estimated: '0',
    cost_picodollars: llm('x % 4000 * 2500000 + x % 700 * 10000000'),
    cost_status: llm("'exact'"),
    mcp_method: mcp("'tools/call'"),
    mcp_target: mcp("'target-' || (x / 20 % 7)"),
    mcp_item: mcp("'tool-' || (x / 20 % 40)"),
    trace_id: `case when x % 10 = 0 then ${hex(kind, 'x', 32)} end`,
    incomplete: '0',
    has_payload: '0',
    has_explanation: '0',
  }
  const values = requestColumns.map(({ name }) => expressions[name] ?? 'null')
  const columns = requestColumns.map(({ name }) => name).join(', ')
  return `insert into tollgate_requests (${columns}) select ${values.join(', ')} from ${series(kind, start, end)}`
}

type Sums = {
  readonly unitMs: number
  readonly groups: number
  readonly days: number
  readonly endTime: number
}

function insertSums(kind: Kind, table: 'hours' | 'days', { unitMs, groups, days, endTime }: Sums): string {
  const periods = (days * dayMs) / unitMs
  const first = Math.floor(endTime / unitMs) * unitMs - days * dayMs
  const dimensions: Readonly<Record<string, string>> = {
    kind: "'llm'",
    key_id: `'key-' || (x * 7919 % ${groups * 2})`,
    user_name: `'user-' || (x * 7919 % ${groups * 2})`,
    group_name: "'team-' || (x * 7919 % 50)",
    route: "'llm'",
    provider: "case x % 3 when 0 then 'openai' when 1 then 'anthropic' else 'gemini' end",
    model: "'served-' || (x % 12)",
    mcp_target: "''",
    status: 'case when x % 10 = 0 then 429 else 200 end',
  }
  const counts = countColumns.map((column) => (column === 'cost_picodollars' ? '1' : '1000'))
  const values = [
    `${first} + x / ${groups} * ${unitMs}`,
    hex(kind, 'x', 32),
    ...dimensionColumns.map((column) => dimensions[column] ?? "''"),
    ...counts,
  ]
  const columns = ['start', 'id', ...dimensionColumns, ...countColumns].join(', ')
  return `insert into tollgate_usage_${table} (${columns}) select ${values.join(', ')} from ${series(kind, 0, periods * groups)}`
}

function series(kind: Kind, start: number, end: number): string {
  return kind === 'postgres'
    ? `generate_series(${start}::bigint, ${end - 1}::bigint) as s(x)`
    : `(with recursive s(x) as (select ${start} union all select x + 1 from s where x < ${end - 1}) select x from s)`
}

function hex(kind: Kind, value: string, digits: number): string {
  return kind === 'postgres' ? `lpad(to_hex(${value}), ${digits}, '0')` : `printf('%0${digits}x', ${value})`
}

function text(kind: Kind, format: string, value: string): string {
  return kind === 'postgres' ? `'${format.replace('%s', '')}' || ${value}` : `printf('${format}', ${value})`
}
