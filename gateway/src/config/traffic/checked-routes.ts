import type { TrafficSections } from './sections.ts'

type Surroundings = Pick<TrafficSections, 'gateways' | 'backends' | 'routeGroups'>

/** Routes without issues, by identity: in the next configuration they are not checked again. */
export type CheckedRoutes = {
  /** The routes without issues beside these gateways and backends, on which the checks of a route depend. */
  beside(surroundings: Surroundings): WeakSet<object>
}

export function createCheckedRoutes(): CheckedRoutes {
  let latest: Surroundings | undefined
  let valid = new WeakSet<object>()
  return {
    beside({ gateways, backends, routeGroups }) {
      const isSame = latest?.gateways === gateways && latest.backends === backends
      if (!isSame || latest?.routeGroups !== routeGroups) {
        latest = { gateways, backends, routeGroups }
        valid = new WeakSet()
      }
      return valid
    },
  }
}
