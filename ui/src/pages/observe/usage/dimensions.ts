import type { SummaryGroup } from '../../../api/ledger/summary.ts'

/** A field to group by. `inSums`: hours and days have it, so that any range is exact and can be exported. */
export type Dimension = { readonly field: string; readonly label: string; readonly inSums: boolean }

export const dimensions: readonly Dimension[] = [
  { field: 'servedModel', label: 'Model', inSums: true },
  { field: 'provider', label: 'Provider', inSums: true },
  { field: 'keyId', label: 'Key', inSums: true },
  { field: 'user', label: 'User', inSums: true },
  { field: 'group', label: 'Group', inSums: true },
  { field: 'route', label: 'Route', inSums: true },
  { field: 'mcpTarget', label: 'MCP server', inSums: true },
  { field: 'kind', label: 'Kind', inSums: true },
  { field: 'status', label: 'Status', inSums: true },
  { field: 'requestModel', label: 'Requested model', inSums: false },
  { field: 'mcpItem', label: 'Tool, prompt or resource', inSums: false },
  { field: 'operation', label: 'Operation', inSums: false },
  { field: 'errorCode', label: 'Error code', inSums: false },
  { field: 'client', label: 'Client address', inSums: false },
  { field: 'userAgent', label: 'User agent', inSums: false },
  { field: 'listener', label: 'Listener', inSums: false },
]

export function dimensionOf(field: string | null): Dimension | undefined {
  return dimensions.find((one) => one.field === field)
}

/** Name of a group for people: values, with the name of a key in place of its id. */
export function groupLabel({ group, keyName, other }: SummaryGroup, fields: readonly string[]): string {
  if (other) return 'All others'
  return fields.map((field) => valueLabel(field, group[field], keyName)).join(' · ')
}

export function valueLabel(
  field: string,
  value: string | number | null | undefined,
  keyName: string | undefined,
): string {
  if (value === null || value === undefined || value === '') return '(none)'
  return field === 'keyId' && keyName !== undefined ? keyName : String(value)
}

/** Identity of a group among others with the same fields. */
export function groupKey({ group, other }: SummaryGroup, fields: readonly string[]): string {
  return other ? 'other' : JSON.stringify(fields.map((field) => group[field] ?? null))
}
