import type { FilterField } from './fields.ts'

/** Selects requests. All parts must be true. */
export type LedgerFilter = {
  /** Completion time in milliseconds since the epoch: `from` is included, `to` is not. */
  readonly from: number | undefined
  readonly to: number | undefined
  readonly conditions: readonly Condition[]
  /** Part of a text, of any case in ASCII, in one of `searchedColumns`. */
  readonly text: string | undefined
}

export type Condition =
  /** One of the values; `null` for requests without one. */
  | {
      readonly kind: 'values'
      readonly field: FilterField
      readonly values: readonly (string | number | null)[]
    }
  /** Bounds are included. */
  | {
      readonly kind: 'range'
      readonly field: FilterField
      readonly min: number | undefined
      readonly max: number | undefined
    }
  /** Part of the text, of any case in ASCII. */
  | { readonly kind: 'contains'; readonly field: FilterField; readonly text: string }

/** Place in the order of requests: newest first, by completion time and then by id. */
export type Position = { readonly completedAt: number; readonly id: string }

/** Most conditions of a filter, and most values of all conditions together. */
export const maxConditions = 50
export const maxValues = 1_000
/** Longest text of a filter, in UTF-16 code units. */
export const maxTextLength = 4_096
