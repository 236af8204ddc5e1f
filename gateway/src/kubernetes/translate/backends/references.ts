import type { BackendReference } from '../../objects/gateway-api.ts'
import type { ObjectSet } from '../../objects/object-set.ts'
import type { BackendResolution } from '../plan.ts'

/** The object with a reference. */
export type Referrer = { readonly group: string; readonly kind: string; readonly namespace: string }

/** The object that a reference names. */
export type Referent = {
  readonly group: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
}

export type References = {
  /** Resolves a reference to a backend: permission, kind, existence, port. */
  backend(reference: BackendReference, from: Referrer): BackendResolution
  /** Whether a ReferenceGrant permits the reference, or both objects are in one namespace. */
  permits(from: Referrer, to: Referent): boolean
}

/** Resolves the references of one set of objects. */
export function createReferences(objects: ObjectSet): References {
  return {
    backend: ({ name }) => ({
      kind: 'unresolved',
      reason: 'BackendNotFound',
      message: `backend ${name} is not found`,
      placeholder: 'unresolved',
    }),
    permits: (from, to) => from.namespace === to.namespace || isGranted(objects, from, to),
  }
}

function isGranted(objects: ObjectSet, from: Referrer, to: Referent): boolean {
  for (const { metadata, spec } of objects.ReferenceGrant.values()) {
    if (metadata.namespace !== to.namespace) continue
    const isFrom = spec.from.some(
      (entry) => entry.group === from.group && entry.kind === from.kind && entry.namespace === from.namespace,
    )
    const isTo = spec.to.some(
      (entry) =>
        entry.group === to.group &&
        entry.kind === to.kind &&
        (entry.name === undefined || entry.name === to.name),
    )
    if (isFrom && isTo) return true
  }
  return false
}
