import { networkInterfaces } from 'node:os'
import { type Cidr, compileCidrs, parseCidr, plainAddress } from '../../lib/address/cidr.ts'
import { addressScope } from '../../lib/address/scope.ts'
import type { EgressPolicy, EgressTarget } from './egress.ts'
import { addressesWithin } from './embedded-addresses.ts'
import { isMetadataAddress } from './metadata-addresses.ts'

export type ClientChosenOptions = {
  /** Ranges that are permitted besides public addresses. */
  readonly allowed: readonly Cidr[]
  /** Whether this gateway listens on a port. */
  isOwnPort(port: number): boolean
}

/** Ranges without hosts of the internet, besides private ones (IANA special-purpose address registries). */
const isSpecial = compileCidrs(
  [
    ...['0.0.0.0/8', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '198.18.0.0/15', '198.51.100.0/24'],
    ...['203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4', '::', '100::/64', '2001:db8::/32', 'fec0::/10'],
    'ff00::/8',
  ].flatMap((text) => parseCidr(text) ?? []),
)

/**
 * Policy of destinations that clients choose: public addresses and allowed ranges. Metadata addresses, which
 * issue credentials, and listeners of this gateway are refused in every case.
 */
export function compileClientChosenPolicy(base: EgressPolicy, options: ClientChosenOptions): EgressPolicy {
  const { allowed, isOwnPort } = options
  const isAllowed = compileCidrs(allowed)
  const ranges = allowed.map(({ bytes, bits }) => `${bytes.join('.')}/${bits}`).join()
  return {
    key: `client ${ranges} ${base.key}`,
    identityHosts: base.identityHosts && 'cloud',
    isOfOperator: base.isOfOperator,
    refuses(target) {
      const reason = base.refuses(target)
      if (reason !== undefined) return reason
      const within = addressesWithin(target.address)
      if (within.some(isMetadataAddress)) return `${nameOf(target)} is a link-local or metadata address`
      if (isOwnPort(target.port) && within.some(isOfThisMachine))
        return `${nameOf(target)} is a listener of this gateway`
      if (isAllowed(plainAddress(target.address)) || within.every(isPublic)) return undefined
      return `${nameOf(target)} is not a public address: dynamic.allowNetworks permits it`
    },
  }
}

function isPublic(address: string): boolean {
  return addressScope(address) === 'public' && !isSpecial(address)
}

function isOfThisMachine(address: string): boolean {
  if (addressScope(address) === 'loopback' || isSpecial(address)) return true
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return own.some((one) => plainAddress(one.address) === plainAddress(address))
}

function nameOf({ host, address, port }: EgressTarget): string {
  return host === address ? `${address} port ${port}` : `${host} (${address}) port ${port}`
}
