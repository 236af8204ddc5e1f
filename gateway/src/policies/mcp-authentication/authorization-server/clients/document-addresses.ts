import { type Cidr, compileCidrs, parseCidr, plainAddress } from '../../../../lib/address/cidr.ts'

/** Networks that are not public (IANA special-purpose registries), and forms of IPv6 that lead to IPv4 addresses. */
const refusedNetworks = cidrs([
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '168.63.129.16', '169.254.0.0/16'],
  ...['172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
])
/** Link-local addresses, and others at which clouds hand out credentials: refused whatever is configured. */
const isAlwaysRefused = compileCidrs(
  cidrs(['169.254.0.0/16', '168.63.129.16', '100.100.100.200', '192.0.0.192', 'fe80::/10', 'fd00:ec2::/32']),
)
/** Of IPv6 only global unicast addresses are public, without those that carry an IPv4 address or are for documents. */
const globalUnicastIpv6 = compileCidrs(cidrs(['2000::/3']))
const refusedIpv6 = compileCidrs(cidrs(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']))
const refusedIpv4 = compileCidrs(refusedNetworks)

/**
 * The rule for addresses that client metadata documents are fetched from: public ones, and those of `networks`. Strangers
 * choose these documents, so nothing inside the network of the gateway may be reached (draft-ietf-oauth-client-id-
 * metadata-document, section "SSRF attacks").
 */
export function compileDocumentAddresses(networks: readonly string[]): (address: string) => boolean {
  const isAllowed = compileCidrs(cidrs(networks))
  return (address) => !isAlwaysRefused(address) && (isAllowed(address) || isPublic(address))
}

function isPublic(text: string): boolean {
  const address = plainAddress(text)
  if (address.includes(':')) return globalUnicastIpv6(address) && !refusedIpv6(address)
  return parseCidr(address) !== undefined && !refusedIpv4(address)
}

function cidrs(texts: readonly string[]): Cidr[] {
  return texts.flatMap((text) => parseCidr(text) ?? [])
}
