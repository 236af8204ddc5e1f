import type { Phase } from '../guard.ts'

/** The reading of one body: its direction, and a note of content that is of no known type. */
export type Reading = {
  readonly phase: Phase
  reportUnknown(type: string): void
  /** The first type that was reported since the last call. */
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
