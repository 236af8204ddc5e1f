import type { ListenerConfig } from '../../../config/traffic/gateway-config.ts'
import type { Gateway, GatewayListener } from '../../objects/gateway-api.ts'
import { gatewayApiGroup } from '../../objects/kinds.ts'
import type { ObjectSet } from '../../objects/object-set.ts'
import type { Memo } from '../backends/memo.ts'
import type { RouteKind } from '../plan.ts'
import { type Finding, satisfied, violated } from '../status/conditions.ts'
import { type AllowedNamespaces, readAllowedNamespaces } from './allowed-namespaces.ts'
import type { CertificateSource, Resolution } from './certificates.ts'
import { readClientValidation } from './client-validation.ts'
import { type Conflict, findConflicts, overlappingListeners } from './conflicts.ts'
import {
  hostnameOf,
  isPassthrough,
  kindsOfProtocol,
  type ListenerProtocol,
  protocolMistake,
  protocolOf,
  reservedPortMistake,
} from './protocols.ts'
import { readTlsOptions } from './tls-options.ts'

/** A listener as plain data. */
export type ListenerFacts = {
  readonly name: string
  readonly port: number
  readonly hostname: string | undefined
  readonly protocol: ListenerProtocol | undefined
  readonly isPassthrough: boolean
  readonly kinds: readonly RouteKind[]
  readonly namespaces: AllowedNamespaces
  readonly findings: readonly Finding[]
  /** Undefined if the listener serves nothing. */
  readonly config: ListenerConfig | undefined
}

export type ListenersInput = {
  readonly gateway: Gateway
  readonly objects: ObjectSet
  readonly certificates: CertificateSource
  readonly memo: Memo
}

/** Reads the listeners of a Gateway. A mistake in one does not affect the others. */
export function readListeners(input: ListenersInput): readonly ListenerFacts[] {
  const { listeners } = input.gateway.spec
  const conflicts = findConflicts(listeners)
  return listeners.map((listener, index) => readListener(listener, input, conflicts.get(index)))
}

function readListener(
  listener: GatewayListener,
  { gateway, objects, certificates, memo }: ListenersInput,
  conflict: Conflict | undefined,
): ListenerFacts {
  const { listeners } = gateway.spec
  const { namespace = '' } = gateway.metadata
  const { kinds, unsupported } = readKinds(listener)
  const namespaces = readAllowedNamespaces(listener, namespace, objects.Namespace, memo)
  const transport = readTransport(listener, gateway, certificates)
  const refused =
    acceptance(listener, listeners) ??
    (conflict && violated('Accepted', conflict.reason, conflict.message)) ??
    (namespaces.kind === 'invalid' ? unsupportedValue(namespaces.message) : undefined) ??
    transport.refused
  const unresolved = unsupported ?? transport.unresolved
  const overlapping = refused === undefined ? overlappingListeners(listener, listeners) : []
  return {
    name: listener.name,
    port: listener.port,
    hostname: hostnameOf(listener),
    protocol: protocolOf(listener),
    isPassthrough: isPassthrough(listener),
    kinds,
    namespaces,
    findings: [
      refused ?? satisfied('Accepted', 'Accepted'),
      conflict === undefined
        ? violated('Conflicted', 'NoConflicts', '')
        : satisfied('Conflicted', conflict.reason, conflict.message),
      unresolved ?? satisfied('ResolvedRefs', 'ResolvedRefs'),
      ...(overlapping.length === 0 ? [] : [overlap(overlapping)]),
    ],
    config: refused === undefined ? transport.config : undefined,
  }
}

function acceptance(listener: GatewayListener, listeners: readonly GatewayListener[]): Finding | undefined {
  if (protocolOf(listener) === undefined) {
    const { protocol } = listener
    return violated(
      'Accepted',
      'UnsupportedProtocol',
      `protocol must be HTTP, HTTPS, TLS or TCP, got "${protocol}"`,
    )
  }
  const reserved = reservedPortMistake(listener.port)
  if (reserved !== undefined) return violated('Accepted', 'PortUnavailable', reserved)
  if (listeners.some((other) => other !== listener && other.name === listener.name)) {
    return unsupportedValue(`name must be unique: another listener is named "${listener.name}"`)
  }
  const mistake = protocolMistake(listener)
  return mistake === undefined ? undefined : unsupportedValue(mistake)
}

function unsupportedValue(message: string): Finding {
  return violated('Accepted', 'UnsupportedValue', message)
}

/** Kinds of routes that may attach, and the finding about kinds that are not supported. */
function readKinds(listener: GatewayListener): {
  kinds: readonly RouteKind[]
  unsupported: Finding | undefined
} {
  const supported = kindsOfProtocol(listener)
  const wanted = listener.allowedRoutes?.kinds ?? []
  if (wanted.length === 0 || supported.length === 0) return { kinds: supported, unsupported: undefined }
  const isSupported = ({ group = gatewayApiGroup, kind }: (typeof wanted)[number]) =>
    group === gatewayApiGroup && supported.some((name) => name === kind)
  const wrong = wanted.filter((entry) => !isSupported(entry)).map(({ kind }) => kind)
  const kinds = supported.filter((name) => wanted.some((entry) => isSupported(entry) && entry.kind === name))
  if (wrong.length === 0) return { kinds, unsupported: undefined }
  const message = `allowedRoutes.kinds must be ${supported.join(' or ')} for protocol ${listener.protocol}, got ${wrong.join(', ')}`
  return { kinds, unsupported: violated('ResolvedRefs', 'InvalidRouteKinds', message) }
}

/** The listener in the Config; without `config` it serves nothing, for the reason in a finding. */
type Transport = {
  readonly config?: ListenerConfig
  readonly refused?: Finding
  readonly unresolved?: Finding
}

function readTransport(
  listener: GatewayListener,
  gateway: Gateway,
  certificates: CertificateSource,
): Transport {
  const { name, tls } = listener
  const protocol = protocolOf(listener)
  if (protocol === undefined || protocolMistake(listener) !== undefined) return {}
  const hostname = hostnameOf(listener)
  const config = { name, ...(hostname === undefined ? {} : { hostname }), protocol }
  if (protocol === 'HTTP' || protocol === 'TCP' || isPassthrough(listener)) return { config }
  const options = readTlsOptions(tls?.options)
  if (options.kind === 'invalid') return { refused: unsupportedValue(options.message) }
  const [reference] = tls?.certificateRefs ?? []
  if (reference === undefined) return {}
  const pair = certificates.keyPair(reference, gateway.metadata.namespace ?? '')
  const clients = readClientValidation(gateway, listener, certificates)
  const [failure] = clients.failures
  const unresolved = certificateFinding(pair) ?? (failure && authorityFinding(failure))
  const refused =
    clients.mistake === undefined
      ? clients.isUnusable
        ? violated('Accepted', 'NoValidCACertificate', noAuthority(failure?.message))
        : undefined
      : unsupportedValue(clients.mistake)
  const findings = { ...(unresolved && { unresolved }), ...(refused && { refused }) }
  if (pair.kind === 'failed') return findings
  const root = clients.root === undefined ? {} : { root: { inline: clients.root } }
  return { ...findings, config: { ...config, tls: { ...pair.value, ...root, ...options.settings } } }
}

function certificateFinding(pair: Resolution<unknown>): Finding | undefined {
  if (pair.kind === 'resolved') return undefined
  const reason = pair.reason === 'notPermitted' ? 'RefNotPermitted' : 'InvalidCertificateRef'
  return violated('ResolvedRefs', reason, `tls.certificateRefs[0]: ${pair.message}`)
}

const authorityReasons = {
  notPermitted: 'RefNotPermitted',
  wrongKind: 'InvalidCACertificateKind',
  invalid: 'InvalidCACertificateRef',
} as const

function authorityFinding({ reason, message }: { reason: keyof typeof authorityReasons; message: string }) {
  return violated('ResolvedRefs', authorityReasons[reason], `caCertificateRefs: ${message}`)
}

function noAuthority(cause = 'the list is empty'): string {
  return `caCertificateRefs must have a valid reference: ${cause}`
}

function overlap(names: readonly string[]): Finding {
  return satisfied(
    'OverlappingTLSConfig',
    'OverlappingHostnames',
    `hostnames of this listener and of ${names.join(', ')} have hosts in common: requests on a connection for another listener are refused with 421`,
  )
}
