import type { Mistake } from './mistakes.ts'

/** A state that needs attention. `code` is stable. */
export type Problem = {
  readonly code: string
  readonly severity: 'error' | 'warning'
  readonly title: string
  /** Cause and remedy. */
  readonly detail: string
  /** ISO 8601. */
  readonly since?: string
  readonly mistakes?: readonly Mistake[]
  /** Page of the console, relative to `/ui`. */
  readonly link?: string
  /** Page of the documentation. */
  readonly doc?: string
}
