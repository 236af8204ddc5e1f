import type { EndpointSlice, Service } from '../core.ts'
import { keyOf } from '../meta.ts'
import type { ObjectSet } from '../object-set.ts'

/** Label of an EndpointSlice with the name of its Service. */
const serviceNameLabel = 'kubernetes.io/service-name'

/**
 * Adds EndpointSlices for the Services of manifests that have none: a cluster creates them from Pods. Their
 * address is the DNS name of the Service, `<name>.<namespace>.svc`, or its `externalName`. The ports are
 * those of the Service; of a headless Service, whose name resolves to Pods, the target ports.
 */
export function withServiceNames(objects: ObjectSet): ObjectSet {
  const added = slicesByName(objects).map((slice) => [keyOf(slice), slice] as const)
  if (added.length === 0) return objects
  return { ...objects, EndpointSlice: new Map([...objects.EndpointSlice, ...added]) }
}

function slicesByName({ Service: services, EndpointSlice: slices }: ObjectSet): EndpointSlice[] {
  const served = new Set(
    slices
      .values()
      .map(({ metadata: { namespace, labels } }) => `${namespace}/${labels?.[serviceNameLabel]}`),
  )
  return [...services].filter(([key]) => !served.has(key)).map(([, service]) => sliceOf(service))
}

function sliceOf({ metadata: { name, namespace }, spec }: Service): EndpointSlice {
  const isExternal = spec.type === 'ExternalName'
  const host = isExternal ? (spec.externalName ?? '') : `${name}.${namespace}.svc`
  const isHeadless = spec.clusterIP === 'None'
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, ...(namespace !== undefined && { namespace }), labels: { [serviceNameLabel]: name } },
    addressType: 'FQDN',
    endpoints: host === '' ? [] : [{ addresses: [host] }],
    ports: (spec.ports ?? []).map(({ name: portName, port, targetPort, protocol, appProtocol }) => ({
      name: portName,
      port: isHeadless && typeof targetPort === 'number' ? targetPort : port,
      protocol,
      appProtocol,
    })),
  }
}
