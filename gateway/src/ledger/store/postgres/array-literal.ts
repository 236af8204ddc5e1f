/**
 * Array of Postgres as text: an element for each value, the same column of every row. The driver's conversion
 * takes several times as long.
 */
export function arrayLiteral(rows: readonly (readonly unknown[])[], column: number): string {
  let text = '{'
  for (const row of rows) text += `${text.length > 1 ? ',' : ''}${elementOf(row[column])}`
  return `${text}}`
}

function elementOf(value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value !== 'string') return String(value)
  return /["\\]/.test(value) ? `"${value.replace(/["\\]/g, '\\$&')}"` : `"${value}"`
}
