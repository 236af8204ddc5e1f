import type { Condition } from './conditions.ts'
import type { LiveCounts } from './live-counts.ts'

/** State of one data plane for the console: plain data. */
export type PlaneObservation = {
  readonly counts: LiveCounts
  readonly activeRequests: number
  readonly conditions: readonly Condition[]
  /** Open connections by address. */
  readonly connections: Readonly<Record<string, number>>
}
