import type { BackendPolicies, EndpointConfig } from '../../../upstream/config.ts'
import type { EndpointSlice, Service, ServicePort } from '../../objects/core.ts'
import type { ObjectKey } from '../../objects/meta.ts'
import type { ObjectSet } from '../../objects/object-set.ts'
import type { BackendConfig, GatewayPlan } from '../plan.ts'
import { mergeEndpoints } from './endpoints.ts'
import type { Memo } from './memo.ts'
import { type BackendUse, findPort, protocolOf } from './protocols.ts'
import type { AppliedTls, TlsPolicies } from './tls-policies.ts'

/** The client certificate of a Gateway. */
export type ClientCertificate = GatewayPlan['clientCertificate']

/** A port of a Service as a backend. */
export type ServiceBackend = {
  /** Name in the `backends` section. */
  readonly name: string
  readonly key: ObjectKey
  readonly service: Service
  readonly port: ServicePort
  readonly tls: AppliedTls | undefined
  readonly version: NonNullable<BackendPolicies['http']>['version']
}

export type ServiceReading =
  | { readonly kind: 'service'; readonly backend: ServiceBackend }
  /** `value`: the Service exists, and its type is not supported. */
  | { readonly kind: 'missing' | 'unsupported' | 'value'; readonly message: string }

/** Services as backends. */
export type Services = {
  find(key: ObjectKey, port: number, use: BackendUse): ServiceReading
  /** The backend of a name; undefined if it does not exist. */
  byName(name: string): ServiceBackend | undefined
  /** The entry of the `backends` section. `pair` is the client certificate of the Gateway. */
  config(backend: ServiceBackend, pair: ClientCertificate): BackendConfig
  endpoints(backend: ServiceBackend): readonly EndpointConfig[]
}

const namePattern = /^Service\/([^/]+\/[^/:]+):(\d+)(?:@(grpc|passthrough))?$/

/** Creates the Services of a set of objects. */
export function createServices(objects: ObjectSet, policies: TlsPolicies, memo: Memo): Services {
  /** Backends by name, found in this set of objects. */
  const known = new Map<string, ServiceBackend>()
  let slices: ReadonlyMap<ObjectKey, readonly EndpointSlice[]> | undefined
  const slicesOf = (key: ObjectKey): readonly EndpointSlice[] => {
    slices ??= indexSlices(objects.EndpointSlice.values())
    return slices.get(key) ?? []
  }

  function find(key: ObjectKey, number: number, use: BackendUse): ServiceReading {
    const place = `Service ${key}`
    const service = objects.Service.get(key)
    if (service === undefined) {
      const invalid = objects.invalid.get(`Service/${key}`)
      const message =
        invalid === undefined
          ? `${place} does not exist`
          : `${place} is not valid: ${invalid.mistakes.join('; ')}`
      return { kind: 'missing', message }
    }
    if (service.spec.type === 'ExternalName') {
      const message = `${place} must not have the type ExternalName: use a GatewayBackend with static.hosts`
      return { kind: 'value', message }
    }
    const found = findPort(service, number, place)
    if (found.kind !== 'port') return found
    const tls = use === 'passthrough' ? undefined : policies.of(key, found.port.name)
    const protocol = protocolOf(found.port, use, tls !== undefined)
    if (protocol.kind === 'unsupported')
      return { kind: 'unsupported', message: `${place}: ${protocol.message}` }
    const { port } = found
    const name = `Service/${key}:${number}${variantOf(port, use, policies.of(key, port.name))}`
    const reading = memo<Extract<ServiceReading, { kind: 'service' }>>(
      service,
      `${use} ${name}`,
      [tls, protocol.version],
      () => ({ kind: 'service', backend: { name, key, service, port, tls, version: protocol.version } }),
    )
    // Routes of connections ignore the protocol, which other users of the name do not.
    if (use !== 'connections') known.set(name, reading.backend)
    return reading
  }

  const endpoints = ({ key, service, port }: ServiceBackend): readonly EndpointConfig[] =>
    memo<readonly EndpointConfig[]>(service, `endpoints ${port.port}`, slicesOf(key), (previous) =>
      keepEndpoints(previous, mergeEndpoints(service, port, slicesOf(key))),
    )

  return {
    find,
    byName(name) {
      const backend = known.get(name)
      if (backend !== undefined) return backend
      const [, key = '', port, variant] = namePattern.exec(name) ?? []
      const use = variant === 'grpc' || variant === 'passthrough' ? variant : 'requests'
      const reading = find(key, Number(port), use)
      if (reading.kind === 'service') return { ...reading.backend, name }
      // A name without variant also belongs to routes of connections, for which the protocol has no meaning.
      const asBytes = find(key, Number(port), 'connections')
      return asBytes.kind === 'service' && variant === undefined ? { ...asBytes.backend, name } : undefined
    },
    endpoints,
    config(backend, pair) {
      const { name, service, tls, version } = backend
      // Each client certificate has its own nodes.
      const owner = pair ?? service
      const isPlain = tls === undefined && version === undefined
      const settings = isPlain
        ? undefined
        : memo(owner, `policies ${name}`, [tls, version], () => policiesOf(backend, pair))
      const list = tls?.kind === 'invalid' ? none : endpoints(backend)
      return memo<BackendConfig>(owner, `node ${name}`, [list, settings], () => ({
        name,
        // The Config has mutable types, and nobody changes it.
        endpoints: list as EndpointConfig[],
        ...(settings && { policies: settings }),
      }))
    },
  }
}

const none: readonly EndpointConfig[] = []

function variantOf({ appProtocol = '' }: ServicePort, use: BackendUse, tls: AppliedTls | undefined): string {
  if (use === 'passthrough' && tls !== undefined) return '@passthrough'
  const isImplied = appProtocol === '' || /^(?:https|wss|kubernetes\.io\/wss)$/i.test(appProtocol)
  return use === 'grpc' && isImplied ? '@grpc' : ''
}

function policiesOf({ tls, version }: ServiceBackend, pair: ClientCertificate): BackendPolicies | undefined {
  const backendTLS = tls?.kind === 'tls' ? withPair(tls.config, pair) : undefined
  if (backendTLS === undefined && version === undefined) return undefined
  return { ...(version && { http: { version } }), ...(backendTLS && { backendTLS }) }
}

/** Adds a client certificate to TLS settings without one. */
function withPair(
  tls: NonNullable<BackendPolicies['backendTLS']>,
  pair: ClientCertificate,
): NonNullable<BackendPolicies['backendTLS']> {
  if (pair === undefined || tls.cert !== undefined) return tls
  return { ...tls, ...pair }
}

/** Unchanged endpoints stay the same objects: connections and health belong to them. */
function keepEndpoints(
  previous: readonly EndpointConfig[] | undefined,
  next: readonly EndpointConfig[],
): readonly EndpointConfig[] {
  if (previous === undefined) return next
  const known = new Map(previous.map((endpoint) => [endpoint.host, endpoint]))
  const kept = next.map((endpoint) => known.get(endpoint.host) ?? endpoint)
  const isSame =
    kept.length === previous.length && kept.every((endpoint, index) => endpoint === previous[index])
  return isSame ? previous : kept
}

/** EndpointSlices by Service, in the order of their names: the order of a map has no meaning. */
function indexSlices(all: Iterable<EndpointSlice>): ReadonlyMap<ObjectKey, readonly EndpointSlice[]> {
  const byService = new Map<ObjectKey, EndpointSlice[]>()
  for (const slice of all) {
    const service = slice.metadata.labels?.['kubernetes.io/service-name']
    if (service === undefined) continue
    const key = `${slice.metadata.namespace}/${service}`
    const listed = byService.get(key)
    if (listed === undefined) byService.set(key, [slice])
    else listed.push(slice)
  }
  for (const slices of byService.values()) {
    if (slices.length > 1) slices.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  }
  return byService
}
