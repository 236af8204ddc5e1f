import { describe, expect, it } from 'vitest'
import type { EndpointSlice, Service } from '../../objects/core.ts'
import type { Gateway, ReferenceGrant } from '../../objects/gateway-api.ts'
import { emptyObjectSet, type ObjectSet } from '../../objects/object-set.ts'
import type { BackendsConfig } from '../plan.ts'
import { createBackendTranslator } from './backends.ts'
import { createMemo } from './memo.ts'
import { createReferences } from './references.ts'

const route = { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: 'app' }

function service(spec: Partial<Service['spec']> = {}, namespace = 'app'): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace },
    spec: { clusterIP: '10.0.0.1', ports: [{ port: 80, name: 'http', targetPort: 8080 }], ...spec },
  }
}

function slice(addresses: readonly string[], name = 'web-1'): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace: 'app', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: addresses.map((address) => ({ addresses: [address] })),
  }
}

function grant(to: ReferenceGrant['spec']['to'][number]): ReferenceGrant {
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'ReferenceGrant',
    metadata: { name: 'grant', namespace: 'other' },
    spec: { from: [route], to: [to] },
  }
}

function objectsOf(parts: Partial<ObjectSet>): ObjectSet {
  return { ...emptyObjectSet(), ...parts }
}

function withService(value: Service, ...slices: readonly EndpointSlice[]): ObjectSet {
  return objectsOf({
    Service: new Map([[`${value.metadata.namespace}/web`, value]]),
    EndpointSlice: new Map(slices.map((slice) => [`app/${slice.metadata.name}`, slice])),
  })
}

/** Translates backends of one Gateway. */
function backendsOf(
  names: readonly string[],
  objects: ObjectSet,
  { memo = createMemo(), translate = createBackendTranslator() } = {},
): BackendsConfig | undefined {
  const references = createReferences(objects, memo)
  const plans = [{ key: 'app/public', gateway, listeners: [], clientCertificate: undefined }]
  const used = new Map([['app/public', new Set(names)]])
  return translate({ objects, references, plans, used }).backends.get('app/public')
}

const gateway: Gateway = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'Gateway',
  metadata: { name: 'public', namespace: 'app' },
  spec: { gatewayClassName: 'tollgate', listeners: [] },
}

describe('references', () => {
  it('resolves a Service of the same namespace by its port', () => {
    const references = createReferences(withService(service()))
    const resolution = references.backend({ name: 'web', port: 80 }, route)
    expect(resolution).toEqual({ kind: 'resolved', name: 'Service/app/web:80', traffic: 'http' })
  })

  it.each([
    [{ name: 'web', port: 81 }, 'BackendNotFound', 'Service app/web has no port 81: its ports are 80'],
    [{ name: 'web' }, 'UnsupportedValue', 'the reference to Service app/web must have a port'],
    [{ name: 'none', port: 80 }, 'BackendNotFound', 'Service app/none does not exist'],
    [
      { name: 'web', port: 80, kind: 'Pod' },
      'InvalidKind',
      'Pod/app/web must be a Service or a GatewayBackend',
    ],
    [
      { name: 'web', port: 80, namespace: 'other' },
      'RefNotPermitted',
      'no ReferenceGrant in namespace other permits objects of kind HTTPRoute in namespace app to refer to Service web',
    ],
  ])('reports %o as %s', (ref, reason, message) => {
    const references = createReferences(withService(service()))
    expect(references.backend(ref, route)).toMatchObject({ kind: 'unresolved', reason, message })
  })

  it.each([
    [{ group: '', kind: 'Service' }, 'resolved'],
    [{ group: '', kind: 'Service', name: 'web' }, 'resolved'],
    [{ group: '', kind: 'Service', name: '' }, 'resolved'],
    [{ group: '', kind: 'Service', name: 'api' }, 'unresolved'],
    [{ group: '', kind: 'Secret' }, 'unresolved'],
  ])('decides on another namespace by the grant %o', (to, kind) => {
    const other = service({}, 'other')
    const objects = objectsOf({
      Service: new Map([['other/web', other]]),
      ReferenceGrant: new Map([['other/grant', grant(to)]]),
    })
    const resolution = createReferences(objects).backend({ name: 'web', namespace: 'other', port: 80 }, route)
    expect(resolution.kind).toBe(kind)
  })

  it('refuses Services of type ExternalName', () => {
    const references = createReferences(
      withService(service({ type: 'ExternalName', externalName: 'db.example.com' })),
    )
    expect(references.backend({ name: 'web', port: 80 }, route)).toMatchObject({
      reason: 'UnsupportedValue',
      message: expect.stringContaining('use a GatewayBackend'),
    })
  })

  it.each([
    ['HTTPRoute', undefined, { name: 'Service/app/web:80' }],
    ['HTTPRoute', 'kubernetes.io/h2c', { name: 'Service/app/web:80' }],
    ['HTTPRoute', 'kubernetes.io/ws', { name: 'Service/app/web:80' }],
    ['HTTPRoute', 'HTTP', { name: 'Service/app/web:80' }],
    ['HTTPRoute', 'kubernetes.io/wss', { reason: 'UnsupportedProtocol' }],
    ['HTTPRoute', 'https', { reason: 'UnsupportedProtocol' }],
    ['HTTPRoute', 'mysql', { reason: 'UnsupportedProtocol' }],
    ['GRPCRoute', undefined, { name: 'Service/app/web:80@grpc' }],
    ['GRPCRoute', 'kubernetes.io/h2c', { name: 'Service/app/web:80' }],
    ['GRPCRoute', 'http', { reason: 'UnsupportedProtocol' }],
    ['TCPRoute', 'mysql', { name: 'Service/app/web:80' }],
    ['TLSRoute', 'kubernetes.io/wss', { name: 'Service/app/web:80' }],
  ])('resolves for %s and appProtocol %s', (kind, appProtocol, expected) => {
    const references = createReferences(withService(service({ ports: [{ port: 80, appProtocol }] })))
    expect(references.backend({ name: 'web', port: 80 }, { ...route, kind })).toMatchObject(expected)
  })

  it('prefers the TCP port of a number with several protocols, and refuses UDP alone', () => {
    const udp = { port: 80, protocol: 'UDP', name: 'udp' }
    const mixed = createReferences(withService(service({ ports: [udp, { port: 80, name: 'tcp' }] })))
    expect(mixed.backend({ name: 'web', port: 80 }, route).kind).toBe('resolved')
    const only = createReferences(withService(service({ ports: [udp] })))
    expect(only.backend({ name: 'web', port: 80 }, route)).toMatchObject({ reason: 'UnsupportedProtocol' })
  })
})

describe('backends of a Gateway', () => {
  it('lists Services with their endpoints, and names without backend without any', () => {
    const objects = withService(
      service({ ports: [{ port: 80, name: 'http', appProtocol: 'kubernetes.io/h2c' }] }),
      slice(['10.1.0.2', '10.1.0.1']),
    )
    const names = ['unresolved/Service/app/none:80', 'Service/app/web:80']
    expect(backendsOf(names, objects)).toEqual([
      {
        name: 'Service/app/web:80',
        endpoints: [{ host: '10.1.0.1:8080' }, { host: '10.1.0.2:8080' }],
        policies: { http: { version: 'HTTP/2' } },
      },
      { name: 'unresolved/Service/app/none:80', endpoints: [] },
    ])
  })

  it('keeps all nodes but the endpoints when endpoints change', () => {
    const caches = { memo: createMemo(), translate: createBackendTranslator() }
    const web = service({ ports: [{ port: 80, name: 'http', appProtocol: 'kubernetes.io/h2c' }] })
    const config = (...slices: EndpointSlice[]) =>
      backendsOf(['Service/app/web:80'], withService(web, ...slices), caches)?.[0]
    const first = slice(['10.1.0.1', '10.1.0.2'])
    const before = config(first)
    expect(config(first)).toBe(before)
    const after = config(slice(['10.1.0.2', '10.1.0.3']))
    expect(after?.policies).toBe(before?.policies)
    expect(after?.endpoints?.[0]).toBe(before?.endpoints?.[1])
    expect(after?.endpoints?.map(({ host }) => host)).toEqual(['10.1.0.2:8080', '10.1.0.3:8080'])
  })
})
