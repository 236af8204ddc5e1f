import type { BackendReference } from '../../objects/gateway-api.ts'
import { ownGroup } from '../../objects/kinds.ts'
import type { ObjectSet } from '../../objects/object-set.ts'
import type { BackendResolution } from '../plan.ts'
import {
  createGatewayBackends,
  type GatewayBackendReading,
  type GatewayBackends,
} from './gateway-backends/gateway-backends.ts'
import { indexGrants, type Permits, type Referent, type Referrer } from './grants.ts'
import { createMemo, type Memo } from './memo.ts'
import { type BackendUse, isAgentPort } from './protocols.ts'
import { createServices, type ServiceReading, type Services } from './services.ts'
import { indexTlsPolicies, type TlsPolicies } from './tls-policies.ts'

/** References between the objects of a set. */
export type References = {
  /**
   * Resolves a reference to a backend: kind, ReferenceGrant, existence, port, protocol. The use follows from
   * the kind of `from`; routes of TLS passthrough name it. Equal results of one References are the same
   * object.
   */
  backend(ref: BackendReference, from: Referrer): BackendResolution
  /**
   * The name of a backend for connections in which clients use TLS with it (passthrough): without the TLS of
   * the gateway.
   */
  passthrough(name: string): string
  /** Whether a reference stays in its namespace or has a ReferenceGrant. */
  readonly permits: Permits
  readonly services: Services
  readonly gatewayBackends: GatewayBackends
  readonly tlsPolicies: TlsPolicies
}

/**
 * Creates the references of a set of objects. Indexes are built at first use. With the memo of a previous
 * set, results of unchanged objects are not computed again.
 */
export function createReferences(objects: ObjectSet, memo: Memo = createMemo()): References {
  let grants: Permits | undefined
  const permits: Permits = (from, to) => {
    if (from.namespace === to.namespace) return true
    grants ??= indexGrants(objects.ReferenceGrant.values())
    return grants(from, to)
  }
  const tlsPolicies = indexTlsPolicies(objects, memo)
  const services = createServices(objects, tlsPolicies, memo)
  const gatewayBackends = createGatewayBackends(objects, { services, permits, memo })
  const results = new Map<string, BackendResolution>()

  function resolve(target: Target, from: Referrer, use: BackendUse): BackendResolution {
    const { group, kind, namespace, name, port } = target
    const isService = group === '' && kind === 'Service'
    if (!isService && !(group === ownGroup && kind === 'GatewayBackend')) {
      return unresolved(target, 'InvalidKind', `${written(target)} must be a Service or a GatewayBackend`)
    }
    if (!permits(from, target)) {
      const message = `no ReferenceGrant in namespace ${namespace} permits objects of kind ${from.kind} in namespace ${from.namespace} to refer to ${kind} ${name}`
      return unresolved(target, 'RefNotPermitted', message)
    }
    const key = `${namespace}/${name}`
    if (!isService) return ofGatewayBackend(gatewayBackends.find(key), target, use)
    if (port === undefined) {
      return unresolved(target, 'UnsupportedValue', `the reference to Service ${key} must have a port`)
    }
    return ofService(services.find(key, port, use), target)
  }

  return {
    permits,
    services,
    gatewayBackends,
    tlsPolicies,
    passthrough(name) {
      const tls = name.startsWith('Service/') ? services.byName(name)?.tls : undefined
      return tls === undefined ? name : `${name}@passthrough`
    },
    backend({ group = '', kind = 'Service', name, namespace, port }, from) {
      const use = useOf(from)
      const target = { group, kind, namespace: namespace ?? from.namespace, name, port }
      const id = `${from.group}/${from.kind}/${from.namespace} ${use} ${written(target)}:${port}`
      const known = results.get(id)
      if (known !== undefined) return known
      const resolution = resolve(target, from, use)
      results.set(id, resolution)
      return resolution
    },
  }
}

type Target = Referent & { readonly port: number | undefined }
type Unresolved = Extract<BackendResolution, { kind: 'unresolved' }>

function useOf({ kind }: Referrer): BackendUse {
  if (kind === 'GRPCRoute') return 'grpc'
  return kind === 'TCPRoute' || kind === 'TLSRoute' ? 'connections' : 'requests'
}

const reasons = {
  missing: 'BackendNotFound',
  unsupported: 'UnsupportedProtocol',
  value: 'UnsupportedValue',
} as const

function ofService(reading: ServiceReading, target: Target): BackendResolution {
  if (reading.kind !== 'service') return unresolved(target, reasons[reading.kind], reading.message)
  const { name, tls, port } = reading.backend
  const failure = tls?.kind === 'invalid' ? tls.message : undefined
  return {
    kind: 'resolved',
    name,
    traffic: 'http',
    ...(isAgentPort(port) && { isAgent: true as const }),
    ...(failure !== undefined && { failure }),
  }
}

function ofGatewayBackend(
  reading: GatewayBackendReading,
  target: Target,
  use: BackendUse,
): BackendResolution {
  if (reading.kind !== 'backend') {
    const reason = reading.kind === 'missing' ? 'BackendNotFound' : 'InvalidBackend'
    return unresolved(target, reason, reading.message)
  }
  const { name, traffic } = reading
  if (use !== 'requests' && traffic !== 'http') {
    const message = `GatewayBackend ${target.namespace}/${target.name} must have static hosts: this route cannot use ai or mcp`
    return unresolved(target, 'UnsupportedProtocol', message)
  }
  return { kind: 'resolved', name, traffic }
}

function unresolved(target: Target, reason: Unresolved['reason'], message: string): Unresolved {
  const { port } = target
  return {
    kind: 'unresolved',
    reason,
    message,
    placeholder: `${placeholderPrefix}${written(target)}${port === undefined ? '' : `:${port}`}`,
  }
}

/** Prefix of the names of backends without endpoints. */
export const placeholderPrefix = 'unresolved/'

function written({ group, kind, namespace, name }: Referent): string {
  return `${group === '' ? '' : `${group}/`}${kind}/${namespace}/${name}`
}
