import type { ConfigMap, Secret } from '../../objects/core.ts'
import type { BackendReference } from '../../objects/gateway-api.ts'
import { ownGroup } from '../../objects/kinds.ts'
import type { ObjectSet } from '../../objects/object-set.ts'
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

/** A lookup with its result. */
type Recorded = { readonly find: (surroundings: Surroundings) => unknown; readonly found: unknown }

export type RecordedLookups = Lookups & {
  /** Ends the lookups, and releases the objects of their cluster: results live longer. */
  complete(): void
  /** Whether all lookups have the same results in other surroundings. */
  isCurrent(surroundings: Surroundings): boolean
}

/** Creates the lookups of a policy of a namespace. */
export function createLookups(namespace: string, surroundings: Surroundings): RecordedLookups {
  const from = { group: ownGroup, kind: 'GatewayPolicy', namespace }
  const records: Recorded[] = []

  let current: Surroundings | undefined = surroundings

  function record<T>(find: (surroundings: Surroundings) => T): T {
    if (current === undefined) throw new Error('the lookups are complete')
    const found = find(current)
    records.push({ find, found })
    return found
  }

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
    complete() {
      current = undefined
    },
    isCurrent: (others) => records.every(({ find, found }) => isSame(find(others), found)),
  }
}

function foundOr<T>(object: T | undefined, message: string): Found<T> {
  return object === undefined ? missing('InvalidRef', message) : { kind: 'found', object }
}

function missing(reason: string, message: string): { kind: 'missing'; reason: string; message: string } {
  return { kind: 'missing', reason, message }
}

function hasLabels({ metadata: { labels = {} } }: Secret, wanted: Readonly<Record<string, string>>): boolean {
  return Object.entries(wanted).every(
    ([name, value]) => Object.hasOwn(labels, name) && labels[name] === value,
  )
}

/** Compares results by their members, and objects of the cluster by identity. */
function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false
  const entries = Object.entries(one)
  return (
    entries.length === Object.keys(other).length &&
    entries.every(([key, value]) => Reflect.get(other, key) === value)
  )
}

/** Creates surroundings that index Secrets on first use. */
export function surroundingsOf(objects: ObjectSet, references: References): Surroundings {
  let byNamespace: Map<string, Secret[]> | undefined
  return {
    objects,
    references,
    secretsIn(namespace) {
      byNamespace ??= indexSecrets(objects)
      return byNamespace.get(namespace) ?? []
    },
  }
}

function indexSecrets({ Secret: secrets }: ObjectSet): Map<string, Secret[]> {
  const index = new Map<string, Secret[]>()
  for (const secret of secrets.values()) {
    const { namespace = '' } = secret.metadata
    const listed = index.get(namespace)
    if (listed === undefined) index.set(namespace, [secret])
    else listed.push(secret)
  }
  for (const listed of index.values()) listed.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  return index
}
