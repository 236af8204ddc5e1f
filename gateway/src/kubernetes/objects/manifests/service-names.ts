import type { EndpointSlice, Service } from '../core.ts'
import { keyOf } from '../meta.ts'
import type { ObjectSet } from '../object-set.ts'

/** Label of an EndpointSlice with the name of its Service. */
const serviceNameLabel = 'kubernetes.io/service-name'

/**
 * Returns a function that adds EndpointSlices for the Services of manifests that have none: a cluster creates
 * them from Pods. Their address is the DNS name of the Service, `<name>.<namespace>.svc`. The ports are those
 * of the Service; of a headless Service, whose name resolves to Pods, the target ports.
 */
export function createServiceNames(): (objects: ObjectSet) => ObjectSet {
  const slices = new WeakMap<Service, EndpointSlice>()
  const sliceFor = (service: Service): EndpointSlice => {
    const slice = slices.get(service) ?? sliceOf(service)
    slices.set(service, slice)
    return slice
  }
  return (objects) => {
    const added = unservedServices(objects).map((service) => [keyOf(service), sliceFor(service)] as const)
    // An EndpointSlice of another Service may have the name.
    return { ...objects, EndpointSlice: new Map([...added, ...objects.EndpointSlice]) }
  }
}

function unservedServices({ Service: services, EndpointSlice: slices }: ObjectSet): Service[] {
  const served = new Set(
    slices
      .values()
      .map(({ metadata: { namespace, labels } }) => `${namespace}/${labels?.[serviceNameLabel]}`),
  )
  return [...services.values()].filter(
    (service) => service.spec.type !== 'ExternalName' && !served.has(keyOf(service)),
  )
}

function sliceOf({ metadata: { name, namespace }, spec }: Service): EndpointSlice {
  const isHeadless = spec.clusterIP === 'None'
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, ...(namespace !== undefined && { namespace }), labels: { [serviceNameLabel]: name } },
    addressType: 'FQDN',
    endpoints: [{ addresses: [`${name}.${namespace}.svc`] }],
    ports: (spec.ports ?? []).map(({ name: portName, port, targetPort, protocol, appProtocol }) => ({
      name: portName,
      port: isHeadless && typeof targetPort === 'number' ? targetPort : port,
      protocol,
      appProtocol,
    })),
  }
}
