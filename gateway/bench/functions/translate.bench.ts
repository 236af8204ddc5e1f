import { readKindNames } from '../../src/kubernetes/objects/kinds.ts'
import { keyOf } from '../../src/kubernetes/objects/meta.ts'
import type { ObjectSet } from '../../src/kubernetes/objects/object-set.ts'
import { readObject } from '../../src/kubernetes/objects/read-object.ts'
import { createTranslator } from '../../src/kubernetes/translate/translate.ts'

// CPU time of a translation of 10,000 HTTPRoutes with 20,000 rules, 1,000 Services and 200 policies:
// the first one, and those after a change of one object.

type Json = Readonly<Record<string, unknown>>

const routes = 10_000
const services = 1_000
const policies = 200
const namespaces = 50
const rounds = 20

const gatewayApi = 'gateway.networking.k8s.io'
const namespaceOf = (index: number) => `team-${index % namespaces}`
const time = (index: number) => new Date(1_700_000_000_000 + index * 1_000).toISOString()

function manifest(
  apiVersion: string,
  kind: string,
  namespace: string | undefined,
  name: string,
  rest: Json,
): Json {
  const { labels, ...content } = rest
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace && { namespace }),
      uid: `${kind}-${name}`,
      generation: 1,
      creationTimestamp: time(name.length),
      ...(labels === undefined ? {} : { labels }),
    },
    ...content,
  }
}

function route(index: number, version = 1): Json {
  const backendRefs = [{ name: `service-${index % services}`, port: 80 }]
  return manifest(`${gatewayApi}/v1`, 'HTTPRoute', namespaceOf(index), `route-${index}`, {
    spec: {
      parentRefs: [{ name: 'web', namespace: 'infra' }],
      hostnames: [`host-${index}-${version}.example.com`],
      rules: [
        { matches: [{ path: { type: 'PathPrefix', value: '/' } }], backendRefs },
        {
          matches: [
            { path: { type: 'Exact', value: '/order' }, headers: [{ name: 'x-version', value: '1' }] },
          ],
          filters: [
            {
              type: 'RequestHeaderModifier',
              requestHeaderModifier: { set: [{ name: 'x-team', value: 'a' }] },
            },
          ],
          backendRefs,
        },
      ],
    },
  })
}

function slice(index: number, address = 1): Json {
  return manifest('discovery.k8s.io/v1', 'EndpointSlice', namespaceOf(index), `service-${index}-x`, {
    labels: { 'kubernetes.io/service-name': `service-${index}` },
    addressType: 'IPv4',
    endpoints: [1, 2, 3].map((last) => ({
      addresses: [`10.${index >> 8}.${index & 255}.${last * 10 + address}`],
      conditions: { ready: true },
    })),
    ports: [{ name: '', port: 8080, protocol: 'TCP' }],
  })
}

function policy(index: number, requests = 100): Json {
  const target =
    index === 0 ? { kind: 'Gateway', name: 'web' } : { kind: 'HTTPRoute', name: `route-${index}` }
  return manifest(
    'tollgate.dev/v1alpha1',
    'GatewayPolicy',
    index === 0 ? 'infra' : namespaceOf(index),
    `policy-${index}`,
    {
      spec: {
        targetRefs: [{ group: gatewayApi, ...target }],
        traffic: {
          rateLimit: { local: [{ requests, unit: 'Minutes' }] },
          ...(index % 3 === 0 && { authorization: { matchExpressions: ['request.method == "GET"'] } }),
        },
      },
    },
  )
}

function gateway(listeners: number): Json {
  return manifest(`${gatewayApi}/v1`, 'Gateway', 'infra', 'web', {
    spec: {
      gatewayClassName: 'tollgate',
      listeners: Array.from({ length: listeners }, (_, index) => ({
        name: `http-${index}`,
        port: 80 + index,
        protocol: 'HTTP',
        allowedRoutes: { namespaces: { from: 'All' } },
      })),
    },
  })
}

const manifests: Json[] = [
  manifest(`${gatewayApi}/v1`, 'GatewayClass', undefined, 'tollgate', {
    spec: { controllerName: 'tollgate.dev/controller' },
  }),
  gateway(1),
  ...Array.from({ length: routes }, (_, index) => route(index)),
  ...Array.from({ length: services }, (_, index) =>
    manifest('v1', 'Service', namespaceOf(index), `service-${index}`, {
      spec: { ports: [{ port: 80, targetPort: 8080 }] },
    }),
  ),
  ...Array.from({ length: services }, (_, index) => slice(index)),
  ...Array.from({ length: policies }, (_, index) => policy(index)),
]

/** The objects after a change, in the maps of `before` except for the changed kind. */
function withObject(before: ObjectSet, changed: Json): ObjectSet {
  const outcome = readObject(changed)
  if (outcome.kind !== 'object') throw new Error(JSON.stringify(outcome))
  const { object } = outcome
  return {
    ...before,
    [object.kind]: new Map<string, unknown>(before[object.kind]).set(keyOf(object), object),
  }
}

function allObjects(): ObjectSet {
  const maps = Object.fromEntries(readKindNames.map((kind) => [kind, new Map<string, unknown>()]))
  for (const one of manifests) {
    const outcome = readObject(one)
    if (outcome.kind !== 'object') throw new Error(JSON.stringify(outcome))
    maps[outcome.object.kind]?.set(keyOf(outcome.object), outcome.object)
  }
  // One map for each kind, with objects that `readObject` has validated.
  return { ...maps, invalid: new Map() } as unknown as ObjectSet
}

function report(name: string, times: number[]): void {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) => (sorted[Math.floor((sorted.length - 1) * share)] ?? 0).toFixed(1).padStart(8)
  process.stdout.write(`${name.padEnd(34)} median ${at(0.5)} ms, maximum ${at(1)} ms\n`)
}

function cpuMs(run: () => void): number {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

const objects = allObjects()
const first: number[] = []
for (let round = 0; round < 5; round++) first.push(cpuMs(() => createTranslator()(objects)))
report('first translation', first)

const changes: Record<string, (round: number) => Json> = {
  'route edited': (round) => route(5_000, round + 2),
  'slice changed': (round) => slice(500, (round % 2) + 2),
  'policy of a route edited': (round) => policy(100, round + 200),
  'policy of the Gateway edited': (round) => policy(0, round + 200),
  'listener added or removed': (round) => gateway((round % 2) + 2),
}
const translate = createTranslator()
let current = objects
translate(current)
report(
  'nothing changed',
  Array.from({ length: rounds }, () => cpuMs(() => translate(current))),
)
for (const [name, change] of Object.entries(changes)) {
  const times = Array.from({ length: rounds }, (_, round) => {
    current = withObject(current, change(round))
    return cpuMs(() => translate(current))
  })
  report(name, times)
}
