import type { BudgetState } from '../../../api/budgets.ts'

/** Use at the end of the window if it continues as since its start. */
export type Forecast =
  | { readonly kind: 'exceeded' }
  /** Too early in the window. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'within'; readonly share: number }
  /** The limit is reached before the end: at a time in milliseconds since the epoch. */
  | { readonly kind: 'reached'; readonly at: number; readonly share: number }

/** Least part of a window for a forecast. */
const leastPart = 0.02

/** Forecast of a budget at a time, in milliseconds since the epoch. */
export function forecastOf({ usage, limit, window }: BudgetState, now: number): Forecast {
  if (usage.exceeded) return { kind: 'exceeded' }
  const lengthMs = window.end - window.start
  const part = (now - window.start) / lengthMs
  const used = Number(usage.used) / Number(limit.amount)
  if (!(part >= leastPart) || !Number.isFinite(used)) return { kind: 'unknown' }
  const share = used / Math.min(1, part)
  if (share < 1 || part >= 1) return { kind: 'within', share }
  return { kind: 'reached', at: window.start + (now - window.start) / used, share }
}
