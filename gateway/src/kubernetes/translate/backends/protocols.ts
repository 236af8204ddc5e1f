import type { BackendPolicies } from '../../../upstream/config.ts'
import type { Service, ServicePort } from '../../objects/core.ts'

/**
 * Content of the connections to a backend: HTTP requests, gRPC calls, bytes of any protocol, or the TLS
 * connections of clients.
 */
export type BackendUse = 'requests' | 'grpc' | 'connections' | 'passthrough'

/** Protocol of a Service port, or the reason why it does not fit the use. */
export type Protocol =
  | { readonly kind: 'protocol'; readonly version: NonNullable<BackendPolicies['http']>['version'] }
  | { readonly kind: 'unsupported'; readonly message: string }

type Application = { readonly version: 'HTTP/1.1' | 'HTTP/2'; readonly needsTls?: boolean }

const http1: Application = { version: 'HTTP/1.1' }
const http2: Application = { version: 'HTTP/2' }

/**
 * Values of `appProtocol` (GEP-1911), in lower case: those of Kubernetes, and names that Services use for the
 * same protocols.
 */
const applications: ReadonlyMap<string, Application> = new Map([
  ['kubernetes.io/h2c', http2],
  ['h2c', http2],
  ['http2', http2],
  ['grpc', http2],
  ['kubernetes.io/ws', http1],
  ['ws', http1],
  ['http', http1],
  ['tollgate.dev/mcp', http1],
  ['tollgate.dev/a2a', http1],
  ['tollgate.dev/mcp-sse', http1],
  ['https', { ...http1, needsTls: true }],
  ['kubernetes.io/wss', { ...http1, needsTls: true }],
  ['wss', { ...http1, needsTls: true }],
])

/**
 * Selects the HTTP version of a Service port. `https` and `wss` need a BackendTLSPolicy: without one the
 * gateway has no name to verify, and plain text never replaces TLS.
 */
export function protocolOf(
  { appProtocol = '', port }: ServicePort,
  use: BackendUse,
  hasTls: boolean,
): Protocol {
  if (use === 'connections' || use === 'passthrough') return { kind: 'protocol', version: undefined }
  if (appProtocol === '') return { kind: 'protocol', version: use === 'grpc' ? 'HTTP/2' : undefined }
  const application = applications.get(appProtocol.toLowerCase())
  if (application === undefined) {
    return unsupported(
      `appProtocol ${appProtocol} of port ${port} is not supported: use kubernetes.io/h2c, kubernetes.io/ws, http or https`,
    )
  }
  if (application.needsTls === true && !hasTls) {
    return unsupported(`appProtocol ${appProtocol} of port ${port} needs a BackendTLSPolicy for the Service`)
  }
  if (use === 'requests') {
    return { kind: 'protocol', version: application.version === 'HTTP/2' ? 'HTTP/2' : undefined }
  }
  if (application.version === 'HTTP/1.1' && application.needsTls !== true) {
    return unsupported(
      `appProtocol ${appProtocol} of port ${port} cannot transport gRPC: use kubernetes.io/h2c`,
    )
  }
  return { kind: 'protocol', version: 'HTTP/2' }
}

/** Whether a port declares agents with the A2A protocol. */
export function isAgentPort({ appProtocol = '' }: ServicePort): boolean {
  return appProtocol.toLowerCase() === 'tollgate.dev/a2a'
}

function unsupported(message: string): Protocol {
  return { kind: 'unsupported', message }
}

/** A port of a Service, or the reason why it is not a backend. */
export type PortReading =
  | { readonly kind: 'port'; readonly port: ServicePort }
  | { readonly kind: 'missing' | 'unsupported'; readonly message: string }

/** Finds a TCP port of a Service by its number. */
export function findPort({ spec }: Service, number: number, place: string): PortReading {
  const ports = spec.ports ?? []
  const ofNumber = ports.filter(({ port }) => port === number)
  const port = ofNumber.find(({ protocol = 'TCP' }) => protocol === 'TCP')
  if (port !== undefined) return { kind: 'port', port }
  const [other] = ofNumber
  if (other !== undefined) {
    return {
      kind: 'unsupported',
      message: `port ${number} of ${place} must be a TCP port, it is ${other.protocol}`,
    }
  }
  const known = ports.map(({ port }) => port).join(', ')
  return {
    kind: 'missing',
    message: `${place} has no port ${number}${known === '' ? '' : `: its ports are ${known}`}`,
  }
}
