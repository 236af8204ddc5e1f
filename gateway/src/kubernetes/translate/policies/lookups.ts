import type { ConfigMap, Secret } from '../../objects/core.ts'
import type { BackendReference } from '../../objects/gateway-api.ts'
import { ownGroup } from '../../objects/kinds.ts'
import type { ObjectSet } from '../../objects/object-set.ts'
import {
  createLookupRecord,
  hasLabels,
  indexByNamespace,
  type LookupRecord,
} from '../backends/recorded-lookups.ts'
import type { References } from '../backends/references.ts'
import type { BackendResolution } from '../plan.ts'

/** The objects that references of policies lead to. */
export type Surroundings = {
  readonly objects: ObjectSet
  readonly references: References
  /** Secrets of a namespace, sorted by name. */
  secretsIn(namespace: string): readonly Secret[]
}

/** A referenced object, or the reason against it. */
export type Found<T> =
  | { readonly kind: 'found'; readonly object: T }
  | { readonly kind: 'missing'; readonly reason: string; readonly message: string }

/** Resolves references of one policy and records them, so that its translation is valid until one changes. */
export type Lookups = {
  backend(reference: BackendReference): BackendResolution
  secret(reference: { readonly name: string; readonly namespace?: string | undefined }): Found<Secret>
  configMap(name: string): Found<ConfigMap>
  secretsWith(labels: Readonly<Record<string, string>>): readonly Secret[]
}

/** Lookups with the record of their results. */
export type RecordedLookups = Lookups & Omit<LookupRecord<Surroundings>, 'record'>

/** Creates the lookups of a policy of a namespace. */
export function createLookups(namespace: string, surroundings: Surroundings): RecordedLookups {
  const from = { group: ownGroup, kind: 'GatewayPolicy', namespace }
  const { record, complete, isCurrent } = createLookupRecord(surroundings)
  return {
    backend: (reference) => record(({ references }) => references.backend(reference, from)),
    secret: (reference) =>
      record(({ objects, references }) => {
        const place = reference.namespace ?? namespace
        const { name } = reference
        const to = { group: '', kind: 'Secret', namespace: place, name }
        if (!references.permits(from, to))
          return missing('RefNotPermitted', `no ReferenceGrant permits Secret ${place}/${name}`)
        return foundOr(objects.Secret.get(`${place}/${name}`), `Secret ${place}/${name} is not found`)
      }),
    configMap: (name) =>
      record(({ objects }) => {
        const key = `${namespace}/${name}`
        return foundOr(objects.ConfigMap.get(key), `ConfigMap ${key} is not found`)
      }),
    secretsWith: (labels) =>
      record((here) => here.secretsIn(namespace).filter((secret) => hasLabels(secret, labels))),
    complete,
    isCurrent,
  }
}

function foundOr<T>(object: T | undefined, message: string): Found<T> {
  return object === undefined ? missing('InvalidRef', message) : { kind: 'found', object }
}

function missing(reason: string, message: string): { kind: 'missing'; reason: string; message: string } {
  return { kind: 'missing', reason, message }
}

/** Creates surroundings that index Secrets on first use. */
export function surroundingsOf(objects: ObjectSet, references: References): Surroundings {
  let byNamespace: ReadonlyMap<string, readonly Secret[]> | undefined
  return {
    objects,
    references,
    secretsIn(namespace) {
      byNamespace ??= indexByNamespace(objects.Secret.values())
      return byNamespace.get(namespace) ?? []
    },
  }
}
