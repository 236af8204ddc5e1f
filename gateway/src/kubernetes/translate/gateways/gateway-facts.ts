import type { ListenerConfig } from '../../../config/traffic/gateway-config.ts'
import type { Gateway } from '../../objects/gateway-api.ts'
import type { ObjectSet } from '../../objects/object-set.ts'
import type { KeyPair } from '../../objects/tls-content.ts'
import type { GatewayParametersSpec } from '../../own-kinds/gateway-parameters.ts'
import type { Memo } from '../backends/memo.ts'
import { type Finding, satisfied, violated } from '../status/conditions.ts'
import type { CertificateSource, Resolution } from './certificates.ts'
import { allowsInsecureFallback } from './client-validation.ts'
import { type ListenerFacts, readListeners } from './listeners.ts'
import {
  type Combined,
  combineParameters,
  type ParametersResolution,
  resolveParameters,
} from './parameters.ts'

/** A Gateway as plain data, so that equal facts of two calls can be the same object. */
export type GatewayFacts = {
  readonly listeners: readonly ListenerFacts[]
  readonly findings: readonly Finding[]
  /** `gateways` of the Config. */
  readonly gateways: Readonly<Record<string, PortConfig>>
  readonly clientCertificate: KeyPair | undefined
  /** Undefined if a reference to parameters is broken. */
  readonly parameters: GatewayParametersSpec | undefined
}

type PortConfig = { readonly port: number; readonly listeners: readonly ListenerConfig[] }

export type GatewayInput = {
  readonly gateway: Gateway
  readonly classParameters: ParametersResolution
  readonly objects: ObjectSet
  readonly certificates: CertificateSource
  readonly memo: Memo
}

/** Reads a Gateway with the objects that it refers to. */
export function readGateway(input: GatewayInput): GatewayFacts {
  const { gateway, classParameters, objects, certificates, memo } = input
  const { namespace = '' } = gateway.metadata
  const listeners = readListeners({ gateway, objects, certificates, memo })
  const reference = gateway.spec.infrastructure?.parametersRef
  const parameters = combineParameters(classParameters, resolveParameters(reference, namespace, objects))
  const clientRef = gateway.spec.tls?.backend?.clientCertificateRef
  const clientCertificate = clientRef && certificates.keyPair(clientRef, namespace)
  return {
    listeners,
    findings: [
      gatewayRefusal(gateway, parameters) ?? acceptedListeners(listeners),
      clientCertificateFinding(clientCertificate) ?? resolvedListeners(listeners),
      ...(allowsInsecureFallback(gateway) ? [insecureMode] : []),
    ],
    gateways: gatewaysConfig(listeners),
    clientCertificate: clientCertificate?.kind === 'resolved' ? clientCertificate.value : undefined,
    parameters: parameters.kind === 'invalid' ? undefined : parameters.spec,
  }
}

function gatewayRefusal({ spec }: Gateway, parameters: Combined): Finding | undefined {
  if (parameters.kind === 'invalid') return violated('Accepted', 'InvalidParameters', parameters.message)
  const other = (spec.addresses ?? []).find(({ type = 'IPAddress' }) => type !== 'IPAddress')
  if (other === undefined) return undefined
  return violated('Accepted', 'UnsupportedAddress', `addresses must have type IPAddress, got "${other.type}"`)
}

function acceptedListeners(listeners: readonly ListenerFacts[]): Finding {
  const refused = namesWith(listeners, 'Accepted')
  if (refused.length === 0) return satisfied('Accepted', 'Accepted')
  if (refused.length === listeners.length) {
    return violated('Accepted', 'ListenersNotValid', `no listener is accepted: ${refused.join(', ')}`)
  }
  return satisfied('Accepted', 'ListenersNotValid', `listeners not accepted: ${refused.join(', ')}`)
}

function resolvedListeners(listeners: readonly ListenerFacts[]): Finding {
  const unresolved = namesWith(listeners, 'ResolvedRefs')
  if (unresolved.length === 0) return satisfied('ResolvedRefs', 'ResolvedRefs')
  const message = `listeners with references that do not resolve: ${unresolved.join(', ')}`
  return violated('ResolvedRefs', 'ListenersNotResolved', message)
}

/** Names of the listeners with a condition that is false. */
function namesWith(listeners: readonly ListenerFacts[], type: string): string[] {
  return listeners
    .filter(({ findings }) => findings.some((finding) => finding.type === type && finding.status === 'False'))
    .map(({ name }) => name)
}

function clientCertificateFinding(resolution: Resolution<KeyPair> | undefined): Finding | undefined {
  if (resolution === undefined || resolution.kind === 'resolved') return undefined
  const reason = resolution.reason === 'notPermitted' ? 'RefNotPermitted' : 'InvalidClientCertificateRef'
  return violated('ResolvedRefs', reason, `tls.backend.clientCertificateRef: ${resolution.message}`)
}

const insecureMode = satisfied(
  'InsecureFrontendValidationMode',
  'ConfigurationChanged',
  'tls.frontend has mode AllowInsecureFallback: connections without a valid client certificate are accepted',
)

/** One entry for each port with usable listeners, named by the port. */
function gatewaysConfig(listeners: readonly ListenerFacts[]): Record<string, PortConfig> {
  const ports: Record<string, { port: number; listeners: ListenerConfig[] }> = {}
  for (const { port, config } of listeners) {
    if (config === undefined) continue
    const name = String(port)
    const known = ports[name]
    if (known === undefined) ports[name] = { port, listeners: [config] }
    else known.listeners.push(config)
  }
  return ports
}
