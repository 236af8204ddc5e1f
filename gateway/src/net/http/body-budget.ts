import type { AdmittedConnection } from '../listener/admission.ts'

/** Memory for the body of one request, where it is collected. */
export type BodyBudget = {
  /** Occupies memory until the request is over; false if a bound is reached. */
  take(bytes: number): boolean
}

/** The budget of one request. `onEnd` registers the function that returns what was taken, when something is. */
export function createBodyBudget(place: AdmittedConnection, onEnd: (end: () => void) => void): BodyBudget {
  let taken = 0
  return {
    take(bytes) {
      if (!place.takeBytes(bytes)) return false
      if (taken === 0) onEnd(() => place.returnBytes(taken))
      taken += bytes
      return true
    },
  }
}
