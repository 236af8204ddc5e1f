import { expect, it } from 'vitest'
import type { EndpointSlice, Service } from '../core.ts'
import { emptyObjectSet } from '../object-set.ts'
import { createServiceNames } from './service-names.ts'

function service(name: string, spec: Service['spec']): Service {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'shop' }, spec }
}

function objectsOf(services: readonly Service[], slices: readonly EndpointSlice[] = []) {
  return {
    ...emptyObjectSet(),
    Service: new Map(services.map((service) => [`shop/${service.metadata.name}`, service])),
    EndpointSlice: new Map(slices.map((slice) => [`shop/${slice.metadata.name}`, slice])),
  }
}

const ports = [{ name: 'web', port: 80, targetPort: 8080 }]

it('adds the DNS name of a Service without EndpointSlices, the same for the same Service', () => {
  const objects = objectsOf([service('a', { ports })])
  const withServiceNames = createServiceNames()
  const slice = withServiceNames(objects).EndpointSlice.get('shop/a')
  expect(slice).toMatchObject({
    addressType: 'FQDN',
    endpoints: [{ addresses: ['a.shop.svc'] }],
    ports: [{ name: 'web', port: 80 }],
  })
  expect(withServiceNames(objects).EndpointSlice.get('shop/a')).toBe(slice)
})

it('adds the target ports of a headless Service, whose name resolves to Pods', () => {
  const objects = objectsOf([service('a', { clusterIP: 'None', ports })])
  expect(createServiceNames()(objects).EndpointSlice.get('shop/a')?.ports).toMatchObject([{ port: 8080 }])
})

it('adds nothing for Services with EndpointSlices and of type ExternalName', () => {
  const slice: EndpointSlice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'x', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'a' } },
  }
  const external = service('b', { type: 'ExternalName', externalName: 'example.com', ports })
  const objects = objectsOf([service('a', { ports }), external], [slice])
  expect([...createServiceNames()(objects).EndpointSlice.values()]).toEqual([slice])
})
