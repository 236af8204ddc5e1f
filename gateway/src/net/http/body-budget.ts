import type { AdmittedConnection } from '../listener/admission.ts'

/** Memory for the body of one request, where it is collected. */
export type BodyBudget = {
  /** Occupies memory until the request is over; false if a bound is reached. */
  acquire(bytes: number): boolean
}

/** The budget of one request. `onEnd` registers the function that returns what was taken, when something is. */
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
