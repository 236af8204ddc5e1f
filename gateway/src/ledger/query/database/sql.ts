import type { SqlValue } from '../../store/columns.ts'

/** SQL with `?` in the places of its values. The text is never made of values. */
export type Sql = { readonly text: string; readonly values: readonly SqlValue[] }

export function sql(text: string, ...values: SqlValue[]): Sql {
  return { text, values }
}

/** Joins parts with a separator. */
export function join(parts: readonly Sql[], separator: string): Sql {
  return {
    text: parts.map(({ text }) => text).join(separator),
    values: parts.flatMap(({ values }) => values),
  }
}

/** Conjunction; true without parts. */
export function all(parts: readonly Sql[]): Sql {
  return parts.length === 0 ? sql('1 = 1') : join(parts, ' and ')
}

/** Disjunction in parentheses; false without parts. */
export function any(parts: readonly Sql[]): Sql {
  return parts.length === 0 ? sql('1 = 0') : wrap('(', join(parts, ' or '), ')')
}

export function wrap(before: string, { text, values }: Sql, after = ''): Sql {
  return { text: before + text + after, values }
}

/** `?, ?, ?` for a list of values. */
export function list(values: readonly SqlValue[]): Sql {
  return { text: values.map(() => '?').join(', '), values }
}
