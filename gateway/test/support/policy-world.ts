import type { ObjectMeta } from '../../src/kubernetes/objects/meta.ts'
import { emptyObjectSet, type ObjectSet } from '../../src/kubernetes/objects/object-set.ts'
import { readObject } from '../../src/kubernetes/objects/read-object.ts'
import { createReferences } from '../../src/kubernetes/translate/backends/references.ts'
import type { GatewayPlan, ListenerPlan } from '../../src/kubernetes/translate/plan.ts'
import {
  createPolicyIndexer,
  type PolicyIndex,
  type PolicyPlace,
} from '../../src/kubernetes/translate/policies/policies.ts'

/**
 * Policies with the Gateway `g` (listeners `http`, `other`), the HTTPRoute `r` (rule `first`) and the Service
 * `guard`.
 */
export type PolicyWorld = {
  readonly index: PolicyIndex
  /** The next pass over the same objects, or over others. */
  again(objects?: readonly unknown[]): PolicyWorld
}

export function createPolicyWorld(objects: readonly unknown[], indexer = createPolicyIndexer()): PolicyWorld {
  const read = readAll([...base, ...objects])
  return worldOf(read, indexer)
}

function worldOf(objects: ObjectSet, indexer: ReturnType<typeof createPolicyIndexer>): PolicyWorld {
  return {
    index: indexer({ objects, references: createReferences(objects), plans: [plan] }),
    again: (others) =>
      others === undefined ? worldOf(objects, indexer) : createPolicyWorld(others, indexer),
  }
}

type PolicyOptions = {
  /** `<kind>/<name>` or `<kind>/<name>/<section>`. */
  readonly targets: readonly string[]
  readonly traffic?: object
  readonly backend?: object
  readonly uid?: string
  /** In years; older policies win. */
  readonly age?: number
}

/** A GatewayPolicy of the namespace `default`. */
export function policy(name: string, { targets, traffic, backend, uid, age }: PolicyOptions) {
  const targetRefs = targets.map((target) => {
    const [kind, of, sectionName] = target.split('/')
    return { group: 'gateway.networking.k8s.io', kind, name: of, ...(sectionName && { sectionName }) }
  })
  const creationTimestamp = age === undefined ? {} : { creationTimestamp: `${2025 - age}-01-01T00:00:00Z` }
  return {
    apiVersion: 'tollgate.dev/v1alpha1',
    kind: 'GatewayPolicy',
    metadata: { name, namespace: 'default', ...(uid && { uid }), ...creationTimestamp },
    spec: { targetRefs, ...(traffic && { traffic }), ...(backend && { backend }) },
  }
}

/** The place of the rule `first` of the route `r` at the listener `http`. */
export function place(changes: Partial<PolicyPlace> = {}): PolicyPlace {
  const route = { kind: 'HTTPRoute', key: 'default/r' } as const
  return { gateway: 'default/g', listener: 'http', route, rule: 'first', traffic: 'http', ...changes }
}

const api = 'gateway.networking.k8s.io/v1'
const parentRefs = [{ name: 'g' }]
const base = [
  {
    apiVersion: api,
    kind: 'HTTPRoute',
    metadata: { name: 'r', namespace: 'default' },
    spec: { parentRefs, rules: [{ name: 'first' }, {}] },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'guard', namespace: 'default' },
    spec: { ports: [{ port: 8000 }] },
  },
]

function listener(name: string, port: number): ListenerPlan {
  return {
    gateway: 'default/g',
    name,
    port,
    hostname: undefined,
    protocol: 'HTTP',
    isPassthrough: false,
    kinds: ['HTTPRoute'],
    allowsNamespace: () => true,
    reference: `${port}/${name}`,
  }
}

const listeners = [listener('http', 80), listener('other', 81)]
const gateway = {
  apiVersion: api,
  kind: 'Gateway',
  metadata: { name: 'g', namespace: 'default' },
  spec: {
    gatewayClassName: 'tollgate',
    listeners: listeners.map(({ name, port }) => ({ name, port, protocol: 'HTTP' })),
  },
} as const
const plan: GatewayPlan = { key: 'default/g', gateway, listeners, clientCertificate: undefined }

function readAll(values: readonly unknown[]): ObjectSet {
  const objects = emptyObjectSet()
  for (const value of values) {
    const read = readObject(value)
    if (read.kind === 'object') add(objects[read.object.kind as 'Secret'], read.object)
    else if (read.kind === 'invalid') add(objects.invalid, read.invalid, `${read.invalid.kind}/`)
    else throw new Error(JSON.stringify(read))
  }
  return objects
}

function add(map: ReadonlyMap<string, unknown>, object: { readonly metadata: ObjectMeta }, prefix = '') {
  const { namespace, name } = object.metadata
  // The maps of an empty set.
  ;(map as Map<string, unknown>).set(`${prefix}${namespace}/${name}`, object)
}
