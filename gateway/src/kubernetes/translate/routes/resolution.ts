import type { BackendReference } from '../../objects/gateway-api.ts'
import { gatewayApiGroup } from '../../objects/kinds.ts'
import type { References } from '../backends/references.ts'
import type { BackendResolution } from '../plan.ts'
import type { AttachingRoute } from './attachment/attachment.ts'
import type { Unresolved } from './route-status.ts'

/** The references of a route with their results, in order of their use. */
export type Resolutions = {
  resolve(reference: BackendReference, at: string): BackendResolution
  readonly unresolved: readonly Unresolved[]
  /** Whether every reference has an equal result now. */
  areCurrent(references: References): boolean
}

/** Resolves the references of a route, and records them. */
export function createResolutions(route: AttachingRoute, references: References): Resolutions {
  const from = { group: gatewayApiGroup, kind: route.kind, namespace: route.metadata.namespace ?? '' }
  const used: { readonly reference: BackendReference; readonly result: BackendResolution }[] = []
  const unresolved: Unresolved[] = []
  return {
    unresolved,
    resolve(reference, at) {
      const result = references.backend(reference, from)
      used.push({ reference, result })
      if (result.kind === 'unresolved')
        unresolved.push({ reason: result.reason, message: `${at}: ${result.message}` })
      return result
    },
    areCurrent: (now) =>
      used.every(({ reference, result }) => areEqual(result, now.backend(reference, from))),
  }
}

function areEqual(one: BackendResolution, other: BackendResolution): boolean {
  if (one === other) return true
  if (one.kind === 'resolved')
    return other.kind === 'resolved' && one.name === other.name && one.traffic === other.traffic
  return other.kind === 'unresolved' && one.reason === other.reason && one.message === other.message
}
