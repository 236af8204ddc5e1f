import type { EgressSources, IdentityHosts } from '../../../net/egress/egress.ts'
import type { BackendTlsConfig } from '../../connection-config.ts'
import type { AuthorizedRequest } from '../placement.ts'
import type { UsedIdentity } from './machine-identity.ts'

/** Configuration of the credential and of the destination of requests. */
export type CredentialUse = {
  /** The object that configures the credential, or whose provider implies it. */
  readonly source: object
  /** The object that names the host; undefined for a credential that is never sent. */
  readonly destination: object | undefined
  /**
   * The object that a change of the config API replaces with the destination in it. Default: the destination.
   */
  readonly owner?: object | undefined
  /** Policies of connections to the destination, which may be configured elsewhere. */
  readonly connection?: DestinationConnection | undefined
}

export type DestinationConnection = {
  readonly backendTLS?: BackendTlsConfig | undefined
  readonly backendTunnel?: object | undefined
}

/** Returns the reason why a request must not have the token; undefined if it may. */
export type RefuseIdentity = (request: Pick<AuthorizedRequest, 'origin'>) => string | undefined

/**
 * Compiles the check of requests with a token of an identity of this machine. Only configuration of the file
 * may use one, unless the file permits others; the token is sent to hosts of the cloud, and to hosts that the
 * file names.
 */
export function compileIdentityCheck(
  { name, identity }: UsedIdentity,
  use: CredentialUse,
  egress: Pick<EgressSources, 'of'>,
): RefuseIdentity {
  if (egress.of(use.source).identityHosts === undefined) {
    const reason = `backendAuth.${name}: ${identityRestriction} unless it has config.storage.allowMachineIdentity: true (in a cluster: ALLOW_MACHINE_IDENTITY=true in the environment of the proxy)`
    return () => reason
  }
  if (permitsHost(use, egress)) return () => undefined
  const isVerified = verifiesCloud(use.connection?.backendTLS)
  const isCloudOrigin = (origin: string) =>
    isVerified && origin.startsWith('https://') && identity.isCloudHost(hostOf(origin))
  // Requests of a destination have one origin, or a few.
  let permitted: string | undefined
  return ({ origin = '' }) => {
    if (permitted !== undefined && origin === permitted) return undefined
    if (!isCloudOrigin(origin))
      return `backendAuth.${name}: ${origin || 'the destination'} must be a host of the cloud with verified TLS: other hosts receive tokens of this machine only if a file that the config API does not write names them`
    permitted = origin
    return undefined
  }
}

/**
 * The reason why a credential of the configuration must not be sent to its destination; undefined if it may.
 * Credentials of the operator are sent to hosts that the operator names, over connections that the operator
 * configures.
 */
export function refusedCredential(
  { source, destination, connection }: CredentialUse,
  egress: Pick<EgressSources, 'of'>,
): string | undefined {
  if (destination === undefined || egress.of(source).isOfOperator !== true) return undefined
  const parts = [destination, connection?.backendTLS, connection?.backendTunnel]
  if (parts.every((part) => part === undefined || egress.of(part).isOfOperator === true)) return undefined
  return 'credentials of the configuration file are sent to hosts that the file names only: set a credential in the record with the host, or config.storage.allowFileCredentials: true in the file'
}

/** Reason of a rejected identity. */
const identityRestriction = 'identities of this machine can be used by the configuration file only,'

/** Whether the file names the destination, and the way to it. */
function permitsHost(use: CredentialUse, egress: Pick<EgressSources, 'of'>): boolean {
  const { source, destination, owner = destination, connection } = use
  if (destination === undefined || owner === undefined) return false
  const parts = [destination, connection?.backendTLS, connection?.backendTunnel]
  return parts.every((part) => {
    if (part === undefined) return true
    const hosts: IdentityHosts | undefined = egress.of(part).identityHosts
    return hosts === 'any' || (hosts === 'own' && isWithin(part, owner) && isWithin(source, owner))
  })
}

/** Levels from a route to the policies of a provider. */
const maxDepth = 10

/** Whether `owner` is or contains the part. */
function isWithin(part: object, owner: unknown, depth = maxDepth): boolean {
  if (part === owner) return true
  if (typeof owner !== 'object' || owner === null || depth === 0) return false
  return Object.values(owner).some((member: unknown) => isWithin(part, member, depth - 1))
}

/** Whether TLS proves the host: certificates of the well-known authorities for its own name. */
function verifiesCloud(tls: BackendTlsConfig | undefined): boolean {
  if (tls === undefined) return true
  const { root, hostname, subjectAltNames, insecure, insecureHost } = tls
  return (root ?? hostname ?? subjectAltNames) === undefined && insecure !== true && insecureHost !== true
}

function hostOf(origin: string): string {
  const { hostname } = URL.parse(origin) ?? { hostname: '' }
  return hostname.replace(/\.$/, '')
}
