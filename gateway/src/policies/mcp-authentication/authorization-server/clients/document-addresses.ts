import { type Cidr, compileCidrs, parseCidr, plainAddress } from '../../../../lib/address/cidr.ts'

/** Networks that are not public (IANA special-purpose registries), and IPv6 forms of IPv4 addresses. */
const refusedNetworks = cidrs([
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '168.63.129.16', '169.254.0.0/16'],
  ...['172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
])
/** Link-local addresses, and metadata services of clouds: refused even if configured. */
const isAlwaysRefused = compileCidrs(
  cidrs(['169.254.0.0/16', '168.63.129.16', '100.100.100.200', '192.0.0.192', 'fe80::/10', 'fd00:ec2::/32']),
)
/** Public IPv6 addresses: global unicast, except those that embed IPv4 addresses or are for documentation. */
const globalUnicastIpv6 = compileCidrs(cidrs(['2000::/3']))
const refusedIpv6 = compileCidrs(cidrs(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']))
const refusedIpv4 = compileCidrs(refusedNetworks)

/**
 * Compiles the address filter for fetches of client metadata documents: public addresses, and those of
 * `networks`. Clients choose the URLs, so the internal network of the gateway must be unreachable
 * (draft-ietf-oauth-client-id-metadata-document, section "SSRF attacks").
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
