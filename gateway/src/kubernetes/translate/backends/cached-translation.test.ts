import fc from 'fast-check'
import { expect, it } from 'vitest'
import { shareStructure } from '../../../config/live/structural-share.ts'
import { createServiceNames } from '../../objects/manifests/service-names.ts'
import { keyOf } from '../../objects/meta.ts'
import { emptyObjectSet, type ObjectSet } from '../../objects/object-set.ts'
import { readObject } from '../../objects/read-object.ts'
import { createTranslator } from '../translate.ts'

// Objects that come and go in any order: a translator with caches gives what a new one gives.

const gatewayApi = 'gateway.networking.k8s.io/v1'
const own = 'tollgate.dev/v1alpha1'
const names = ['a', 'b'] as const

const base = [
  {
    apiVersion: gatewayApi,
    kind: 'GatewayClass',
    metadata: { name: 'tollgate' },
    spec: { controllerName: 'tollgate.dev/controller' },
  },
  {
    apiVersion: gatewayApi,
    kind: 'Gateway',
    metadata: { name: 'web', namespace: 'app' },
    spec: {
      gatewayClassName: 'tollgate',
      listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
    },
  },
  ...['app', 'other'].flatMap((namespace) =>
    names.map((name) => ({
      apiVersion: gatewayApi,
      kind: 'HTTPRoute',
      metadata: { name: `${namespace}-${name}`, namespace: 'app' },
      spec: {
        parentRefs: [{ name: 'web' }],
        rules: [
          { backendRefs: [{ name, namespace, port: 80 }] },
          { backendRefs: [{ group: 'tollgate.dev', kind: 'GatewayBackend', name, namespace }] },
        ],
      },
    })),
  ),
]

const place = { name: fc.constantFrom(...names), namespace: fc.constantFrom('app', 'other') }
const metadata = fc.record(place)
const secretRef = fc.constantFrom(...names).map((name) => ({ name }))

const service = fc.record({
  apiVersion: fc.constant('v1'),
  kind: fc.constant('Service'),
  metadata: fc.record({ ...place, labels: fc.constantFrom({}, { mcp: 'yes' }) }),
  spec: fc.record({
    type: fc.constantFrom('ClusterIP', 'ExternalName'),
    clusterIP: fc.constantFrom('10.96.0.1', '10.96.0.2', 'None'),
    ports: fc
      .constantFrom(undefined, 'https', 'kubernetes.io/h2c', 'mysql')
      .map((appProtocol) => [{ name: 'web', port: 80, ...(appProtocol && { appProtocol }) }]),
  }),
})
const slice = fc
  .record({ ...place, last: fc.integer({ min: 1, max: 3 }), ready: fc.boolean() })
  .map(({ name, namespace, last, ready }) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-1`, namespace, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'web', port: 8080 }],
    endpoints: [{ addresses: [`10.0.0.${last}`], conditions: { ready } }],
  }))
const tlsPolicy = fc
  .record({
    ...place,
    target: fc.constantFrom(...names),
    wellKnown: fc.constantFrom('System', 'x.example/y'),
  })
  .map(({ name, namespace, target, wellKnown }) => ({
    apiVersion: gatewayApi,
    kind: 'BackendTLSPolicy',
    metadata: { name, namespace },
    spec: {
      targetRefs: [{ group: '', kind: 'Service', name: target }],
      validation: { hostname: `${name}.example.com`, wellKnownCACertificates: wellKnown },
    },
  }))
const grant = fc.record({
  apiVersion: fc.constant(gatewayApi),
  kind: fc.constant('ReferenceGrant'),
  metadata: fc.constant({ name: 'grant', namespace: 'other' }),
  spec: fc
    .constantFrom({ group: '', kind: 'Service' }, { group: 'tollgate.dev', kind: 'GatewayBackend' })
    .map((to) => ({
      from: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: 'app' }],
      to: [to],
    })),
})
const secret = fc.record({
  apiVersion: fc.constant('v1'),
  kind: fc.constant('Secret'),
  metadata,
  stringData: fc.constantFrom({ Authorization: 'one' }, { Authorization: 'two' }, {}),
})
const serviceTarget = fc.constantFrom(...names).map((name) => ({ name, backendRef: { name, port: 80 } }))
const backend = fc.record({
  apiVersion: fc.constant(own),
  kind: fc.constant('GatewayBackend'),
  metadata,
  spec: fc.oneof(
    secretRef.map((ref) => ({ ai: { provider: { openAI: {} }, policies: { auth: { secretRef: ref } } } })),
    serviceTarget.map(({ backendRef }) => ({ ai: { provider: { custom: {} }, backendRef } })),
    serviceTarget.map((target) => ({ mcp: { targets: [target] } })),
    fc.constant({ mcp: { targets: [{ name: 'all', selector: { matchLabels: { mcp: 'yes' } } }] } }),
    fc.constant({ static: { hosts: [{ host: 'a.other.svc', port: 80 }] } }),
  ),
})

const edit = fc.record({
  value: fc.oneof(service, slice, tlsPolicy, grant, secret, backend),
  isRemoved: fc.boolean(),
})

function apply(objects: ObjectSet, value: unknown, isRemoved: boolean): ObjectSet {
  const outcome = readObject(value)
  if (outcome.kind !== 'object') throw new Error(JSON.stringify(outcome))
  const { object } = outcome
  const map = new Map<string, unknown>(objects[object.kind])
  if (isRemoved) map.delete(keyOf(object))
  else map.set(keyOf(object), object)
  return { ...objects, [object.kind]: map }
}

it('equals the translation without caches after any edits, and keeps equal backends', () => {
  const start = base.reduce<ObjectSet>((objects, value) => apply(objects, value, false), emptyObjectSet())
  fc.assert(
    fc.property(fc.array(edit, { minLength: 1, maxLength: 16 }), (edits) => {
      const translate = createTranslator()
      const withNames = createServiceNames()
      let objects = start
      let before = translate(withNames(objects))
      for (const { value, isRemoved } of edits) {
        objects = apply(objects, value, isRemoved)
        const named = withNames(objects)
        const cached = translate(named)
        expect(cached).toEqual(createTranslator()(named))
        // A backend that has not changed is the same node.
        const [one, other] = [before, cached].map(({ gateways }) => gateways.get('app/web')?.config.backends)
        const shared = shareStructure(one, other)
        for (const [index, entry] of (other ?? []).entries()) {
          const isKept = one?.includes(shared?.[index] as never) === true
          const isOfChanged = entry.name.includes(
            String((value as { metadata: { name: string } }).metadata.name),
          )
          if (isKept && !isOfChanged) expect(one).toContain(entry)
        }
        before = cached
      }
    }),
    { numRuns: 60 },
  )
})
