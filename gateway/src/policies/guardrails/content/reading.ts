import type { Phase } from '../guard.ts'
import type { ContentScope } from './scopes/content-scope.ts'

/** Reading of one body: its phase and the first content of unknown type. */
export type Reading = {
  readonly phase: Phase
  /** Scopes that guards name; undefined if no guard has scopes. */
  readonly scopes: ReadonlySet<ContentScope> | undefined
  reportUnknown(type: string): void
  /** Returns the first type reported since the last call. */
  takeUnknown(): string | undefined
}

export function createReading(phase: Phase, scopes?: ReadonlySet<ContentScope>): Reading {
  let first: string | undefined
  return {
    phase,
    scopes,
    reportUnknown(type) {
      first ??= type
    },
    takeUnknown() {
      const taken = first
      first = undefined
      return taken
    },
  }
}
