/**
 * Array of Postgres as text: one column of every row. Native JSON has the same form unless a text contains
 * quotes, backslashes or control characters; the driver's conversion takes several times as long.
 */
export function arrayLiteral(rows: readonly (readonly unknown[])[], column: number): string {
  const values = rows.map((row) => row[column])
  const json = JSON.stringify(values)
  const elements = json.includes('\\') ? values.map(elementOf).join(',') : json.slice(1, -1)
  return `{${elements}}`
}

function elementOf(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  return typeof value === 'string' ? `"${value.replace(/["\\]/g, '\\$&')}"` : String(value)
}
