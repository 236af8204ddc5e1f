import type { ConfigMap, Secret, Service } from '../../../objects/core.ts'
import { ownGroup } from '../../../objects/kinds.ts'
import type { ObjectSet } from '../../../objects/object-set.ts'
import type { ServiceRef } from '../../../own-kinds/gateway-backend.ts'
import type { Permits, Referent } from '../grants.ts'
import { createLookupRecord, hasLabels, indexByNamespace, type LookupRecord } from '../recorded-lookups.ts'
import type { ServiceReading, Services } from '../services.ts'

/** The objects that GatewayBackends refer to. */
export type Surroundings = {
  readonly objects: ObjectSet
  readonly services: Services
  readonly permits: Permits
  /** Services of a namespace, sorted by name. */
  servicesIn(namespace: string): readonly Service[]
}

/** A referenced object, or the reason against it. */
export type Found<T> =
  | { readonly kind: 'found'; readonly value: T }
  | { readonly kind: 'missing'; readonly reason: string; readonly message: string }

/** Resolves the references of one GatewayBackend. */
export type Lookups = {
  readonly namespace: string
  permits(to: Referent): boolean
  secret(reference: { readonly name: string; readonly namespace?: string | undefined }): Found<Secret>
  configMap(name: string): Found<ConfigMap>
  service(reference: ServiceRef): ServiceReading | Extract<Found<never>, { kind: 'missing' }>
  servicesWith(labels: Readonly<Record<string, string>>): readonly Service[]
  hasNamespace(name: string): boolean
}

/** Lookups with the record of their results. */
export type RecordedLookups = Lookups & Omit<LookupRecord<Surroundings>, 'record'>

/** Creates the lookups of a GatewayBackend of a namespace. */
export function createLookups(namespace: string, surroundings: Surroundings): RecordedLookups {
  const from = { group: ownGroup, kind: 'GatewayBackend', namespace }
  const { record, complete, isCurrent } = createLookupRecord(surroundings)
  const permits = (to: Referent) => record((here) => here.permits(from, to))
  const denied = ({ kind, namespace: there, name }: Referent) => {
    const message = `no ReferenceGrant in namespace ${there} permits GatewayBackends of namespace ${namespace} to refer to ${kind} ${name}`
    return { kind: 'missing', reason: 'RefNotPermitted', message } as const
  }

  return {
    namespace,
    permits,
    secret({ name, namespace: there = namespace }) {
      const to = { group: '', kind: 'Secret', namespace: there, name }
      if (!permits(to)) return denied(to)
      const object = record(({ objects }) => objects.Secret.get(`${there}/${name}`))
      return foundOr(object, `Secret ${there}/${name} does not exist`)
    },
    configMap(name) {
      const object = record(({ objects }) => objects.ConfigMap.get(`${namespace}/${name}`))
      return foundOr(object, `ConfigMap ${namespace}/${name} does not exist`)
    },
    service({ name, namespace: there = namespace, port }) {
      const to = { group: '', kind: 'Service', namespace: there, name }
      if (!permits(to)) return denied(to)
      return record(({ services }) => services.find(`${there}/${name}`, port, 'requests'))
    },
    servicesWith: (labels) =>
      record((here) => here.servicesIn(namespace).filter((service) => hasLabels(service, labels))),
    hasNamespace: (name) => record(({ objects }) => objects.Namespace.has(name)),
    complete,
    isCurrent,
  }
}

function foundOr<T>(value: T | undefined, message: string): Found<T> {
  return value === undefined ? { kind: 'missing', reason: 'InvalidRef', message } : { kind: 'found', value }
}

/** Creates surroundings that index Services on first use. */
export function surroundingsOf(
  objects: ObjectSet,
  { services, permits }: { services: Services; permits: Permits },
): Surroundings {
  let byNamespace: ReadonlyMap<string, readonly Service[]> | undefined
  return {
    objects,
    services,
    permits,
    servicesIn(namespace) {
      byNamespace ??= indexByNamespace(objects.Service.values())
      return byNamespace.get(namespace) ?? []
    },
  }
}
