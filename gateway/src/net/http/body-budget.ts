import type { AdmittedConnection } from '../listener/admission.ts'

/** Memory budget of one buffered request body. */
export type BodyBudget = {
  /** Reserves memory until the request is over; false at a limit. */
  acquire(bytes: number): boolean
}

/** Creates the budget of one request. `onEnd` registers the release of reserved memory, if any. */
export function createBodyBudget(admitted: AdmittedConnection, onEnd: (end: () => void) => void): BodyBudget {
  let taken = 0
  return {
    acquire(bytes) {
      if (!admitted.acquireBytes(bytes)) return false
      if (taken === 0) onEnd(() => admitted.releaseBytes(taken))
      taken += bytes
      return true
    },
  }
}
