import { isIP } from 'node:net'
import { compileCidrs, parseCidr } from '../../lib/address/cidr.ts'
import { formatHostPort } from '../../lib/address/host-port.ts'
import type { EgressPolicy, EgressTarget } from './egress.ts'
import { addressesWithin } from './embedded-addresses.ts'
import { isMetadataAddress } from './metadata-addresses.ts'

export type EgressOptions = {
  /** Port of this process's admin address, 0 before it listens. */
  adminPort(): number
  /** `config.storage.allowMetadataAddresses`. */
  readonly allowsMetadata: boolean
  /** `config.storage.allowMachineIdentity`, or `ALLOW_MACHINE_IDENTITY` of the environment. */
  readonly allowsMachineIdentity: boolean
  /** `config.storage.allowFileCredentials`. */
  readonly allowsFileCredentials: boolean
  /** Whether the config API writes into the configuration file (`config.storage.mode: file`). */
  readonly fileIsWritable: boolean
  /** Source of the configuration. */
  readonly origin: ConfigOriginKind
}

/**
 * A file, which one person writes; manifests, which a user applies to a process of their own; or objects of a
 * cluster, with authors of several namespaces.
 */
export type ConfigOriginKind = 'file' | 'manifests' | 'cluster'

/** Egress policies by the source of the destination. */
export type EgressPolicies = {
  /** Destinations in the configuration file. */
  readonly file: EgressPolicy
  /** Destinations set through the config API. */
  readonly api: EgressPolicy
  /** Destinations from a fetched document, such as the endpoints of an identity provider. */
  readonly document: EgressPolicy
}

/**
 * No policy permits the admin address. Destinations from the API or a document must not be metadata
 * addresses. If the API writes into the file, its records are indistinguishable from others after a restart:
 * names must then not resolve to metadata addresses, while literal addresses are allowed, because the API
 * rejects those on write. Objects of a cluster have many authors: no destination may be a metadata address,
 * and no name may resolve to this machine, where other containers of the Pod listen. Addresses of Pods and
 * Services are permitted. Only the file may name Unix domain sockets: others could reach those of container
 * engines. Likewise, only the file may use identities of this machine, unless it permits others to do so, who
 * cannot send the tokens to hosts of their choice. Credentials in the file are not sent to hosts of records.
 */
export function createEgressPolicies(options: EgressOptions): EgressPolicies {
  const { allowsMetadata, fileIsWritable, origin } = options
  const ofAdmin = (target: EgressTarget) => refuseAdmin(target, options.adminPort())
  const ofAll = (target: EgressTarget) => ofAdmin(target) ?? refuseMetadata(target)
  const ofNames = (target: EgressTarget) =>
    ofAdmin(target) ?? (isIP(target.host) === 0 ? refuseMetadata(target) : undefined)
  const ofObjects = (target: EgressTarget) => ofAdmin(target) ?? refuseForObjects(target, origin)
  const permitted = options.allowsMachineIdentity ? 'cloud' : undefined
  if (origin !== 'file') return ofOrigin({ key: origin, refuses: ofObjects, identityHosts: permitted })
  const strict = allowsMetadata ? ofAdmin : ofAll
  return {
    file: {
      key: '',
      refuses: fileIsWritable && !allowsMetadata ? ofNames : ofAdmin,
      // The API rejects sockets on write.
      allowsSockets: true,
      // The API rejects such identities on write, unless they are permitted.
      identityHosts: fileIsWritable ? (permitted ?? 'own') : 'any',
      isOfOperator: true,
    },
    api: {
      key: 'api',
      refuses: strict,
      identityHosts: permitted,
      isOfOperator: options.allowsFileCredentials,
    },
    document: { key: 'document', refuses: strict },
  }
}

/** Documents are fetched from destinations of objects, and are no more trusted. */
function ofOrigin(policy: EgressPolicy): EgressPolicies {
  return { file: policy, api: policy, document: policy }
}

function refuseForObjects(target: EgressTarget, origin: ConfigOriginKind): string | undefined {
  const { host, address } = target
  if (isMetadataAddress(address))
    return `${nameOf(target)} is a link-local or metadata address, which is not a destination`
  if (origin !== 'cluster' || isIP(host) !== 0 || !addressesWithin(address).some(isThisMachine))
    return undefined
  return `${nameOf(target)} is an address of this machine, which no name of a destination may have`
}

/** Loopback addresses, and the unspecified ones, which systems connect to loopback. */
const isThisMachine = compileCidrs(
  ['127.0.0.0/8', '0.0.0.0/8', '::1', '::'].flatMap((text) => parseCidr(text) ?? []),
)

function refuseAdmin(target: EgressTarget, adminPort: number): string | undefined {
  const { address, port } = target
  if (port !== adminPort || !addressesWithin(address).some(isThisMachine)) return undefined
  return `${nameOf(target)} is the admin address of this gateway, which is not a destination`
}

function refuseMetadata(target: EgressTarget): string | undefined {
  if (!isMetadataAddress(target.address)) return undefined
  return `${nameOf(target)} is a link-local or metadata address: config.storage.allowMetadataAddresses allows it`
}

function nameOf({ host, address, port }: EgressTarget): string {
  const endpoint = formatHostPort({ host, port })
  return host === address ? endpoint : `${endpoint} (${address})`
}
