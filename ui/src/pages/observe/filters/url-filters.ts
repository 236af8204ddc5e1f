import type { LogCondition, LogFilters } from '../../../api/ledger/filters.ts'
import { type FilterField, filterField, filterFields } from './fields.ts'

/**
 * A condition of the address: `user=ada&user=ben` (one of the values; an empty one is "none"), `path~=embed`
 * (contains), `durationMs.min=1000`, `streaming=true`.
 */
export type Filter =
  | { readonly kind: 'values'; readonly field: FilterField; readonly values: readonly string[] }
  | { readonly kind: 'contains'; readonly field: FilterField; readonly text: string }
  | { readonly kind: 'range'; readonly field: FilterField; readonly min?: number; readonly max?: number }
  | { readonly kind: 'flag'; readonly field: FilterField; readonly value: boolean }

/** Reads the conditions of an address. Invalid ones are skipped. */
export function readFilters(parameters: URLSearchParams): readonly Filter[] {
  return filterFields.flatMap((field): Filter[] => {
    const { name, kind } = field
    const values = parameters.getAll(name)
    if (kind === 'flag') {
      const [value] = values
      return value === 'true' || value === 'false' ? [{ kind: 'flag', field, value: value === 'true' }] : []
    }
    const found: Filter[] = []
    const usable = kind === 'number' ? values.filter((value) => value === '' || isNumber(value)) : values
    if (usable.length > 0) found.push({ kind: 'values', field, values: usable })
    const contains = parameters.get(`${name}~`)
    if (kind === 'text' && contains) found.push({ kind: 'contains', field, text: contains })
    if (kind !== 'number') return found
    const [min, max] = ['min', 'max'].map((end) => parameters.get(`${name}.${end}`))
    if (isNumber(min) || isNumber(max))
      found.push({
        kind: 'range',
        field,
        ...(isNumber(min) ? { min: Number(min) } : {}),
        ...(isNumber(max) ? { max: Number(max) } : {}),
      })
    return found
  })
}

/** Adds a condition to an address, in place of those of the same field. */
export function withFilter(parameters: URLSearchParams, filter: Filter): URLSearchParams {
  const next = withoutFilter(parameters, filter.field.name)
  const { name } = filter.field
  switch (filter.kind) {
    case 'values':
      for (const value of filter.values) next.append(name, value)
      break
    case 'contains':
      next.set(`${name}~`, filter.text)
      break
    case 'range':
      if (filter.min !== undefined) next.set(`${name}.min`, String(filter.min))
      if (filter.max !== undefined) next.set(`${name}.max`, String(filter.max))
      break
    case 'flag':
      next.set(name, String(filter.value))
  }
  return next
}

/** Removes the conditions on a field, and the page, which belongs to the conditions. */
export function withoutFilter(parameters: URLSearchParams, name: string): URLSearchParams {
  const next = new URLSearchParams(parameters)
  for (const suffix of ['', '~', '.min', '.max']) next.delete(name + suffix)
  next.delete('cursor')
  return next
}

/** The conditions in the form of the API. A field with two conditions has the last one. */
export function apiFilters(filters: readonly Filter[], text: string): LogFilters {
  const conditions = Object.fromEntries(filters.map((filter) => [filter.field.name, conditionOf(filter)]))
  return text === '' ? conditions : { ...conditions, text }
}

function conditionOf(filter: Filter): LogCondition {
  switch (filter.kind) {
    case 'values':
      return filter.values.map((value) => {
        if (value === '') return null
        return filter.field.kind === 'number' ? Number(value) : value
      })
    case 'contains':
      return { contains: filter.text }
    case 'range': {
      const { min, max } = filter
      return { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) }
    }
    case 'flag':
      return filter.value
  }
}

/** A condition as text: `User is ada or ben`. */
export function describeFilter(filter: Filter): string {
  const { label, unit } = filter.field
  const suffix = unit === undefined ? '' : ` ${unit}`
  switch (filter.kind) {
    case 'values':
      return `${label} is ${filter.values.map((value) => (value === '' ? 'none' : value)).join(' or ')}`
    case 'contains':
      return `${label} contains ${filter.text}`
    case 'range': {
      const { min, max } = filter
      if (min === undefined) return `${label} ≤ ${max}${suffix}`
      return max === undefined ? `${label} ≥ ${min}${suffix}` : `${label} ${min} to ${max}${suffix}`
    }
    case 'flag':
      return `${label}: ${filter.value ? 'yes' : 'no'}`
  }
}

/** Address of the requests with these values: empty texts are requests without one. */
export function requestsAddress(
  values: Readonly<Record<string, string | number | null | undefined>>,
  more: Readonly<Record<string, string>> = {},
): string {
  const parameters = new URLSearchParams(more)
  for (const [name, value] of Object.entries(values))
    if (value !== undefined && filterField(name)) parameters.append(name, value === null ? '' : String(value))
  return `/requests?${parameters}`
}

function isNumber(text: string | null | undefined): text is string {
  return typeof text === 'string' && text.trim() !== '' && Number.isFinite(Number(text))
}
