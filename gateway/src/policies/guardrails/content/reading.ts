import type { Phase } from '../guard.ts'

/** Reading of one body: its phase and the first content of unknown type. */
export type Reading = {
  readonly phase: Phase
  reportUnknown(type: string): void
  /** Returns the first type reported since the last call. */
  takeUnknown(): string | undefined
}

export function createReading(phase: Phase): Reading {
  let first: string | undefined
  return {
    phase,
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
