import type { FilterField } from '../search/fields.ts'
import type { LedgerFilter, Position } from '../search/filter.ts'
import type { GroupValues } from '../summary/groups.ts'

export type Granularity = 'hour' | 'day' | 'month'

export type ExportFilter = LedgerFilter & { readonly from: number; readonly to: number }

/** Contents of a CSV file. */
export type ExportQuery =
  /** A line for each request, by completion time. */
  | { readonly kind: 'requests'; readonly filter: ExportFilter }
  /**
   * A line for each period and group, by period. The range consists of whole hours, or of whole days in UTC
   * for the other granularities.
   */
  | {
      readonly kind: 'usage'
      readonly filter: ExportFilter
      readonly groupBy: readonly FilterField[]
      readonly granularity: Granularity
    }

export type ExportPosition =
  | { readonly kind: 'requests'; readonly after: Position }
  | { readonly kind: 'usage'; readonly at: UsagePosition }

/** Lines of a CSV file; `next` is undefined at its end. */
export type ExportPage = { readonly csv: string; readonly next: ExportPosition | undefined }

/** Place in an export: a period, and the last group of it that was written. */
export type UsagePosition = { readonly period: number; readonly group: GroupValues | undefined }
