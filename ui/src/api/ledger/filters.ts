/** Condition on a field of the request log, in the form of `filters` of `/api/logs/*`. */
export type LogCondition =
  | readonly (string | number | null)[]
  | boolean
  | { readonly contains: string }
  | { readonly min?: number; readonly max?: number }

/** Conditions by field, all of which must be true. `text` searches several fields. */
export type LogFilters = { readonly [field: string]: LogCondition | string }

/** Completion times, RFC 3339. `from` is included, `to` is not. */
export type TimeRange = { readonly from?: string; readonly to?: string }
