/**
 * Line of a CSV file (RFC 4180). Texts that a spreadsheet would execute as a formula begin with an
 * apostrophe.
 */
export function csvLine(cells: readonly (string | number | boolean | undefined)[]): string {
  return `${cells.map(cellOf).join(',')}\r\n`
}

/** Beginnings of formulas; spreadsheets ignore white space before them. */
const formula = /^\s*[=+\-@\uff0b\uff0d\uff1d\uff20]|^[\t\r\n]/

function cellOf(value: string | number | boolean | undefined): string {
  if (value === undefined) return ''
  if (typeof value !== 'string') return String(value)
  const text = formula.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
