import { compileCidrs, parseCidr } from './cidr.ts'

/** Reach of an address: this machine, a network without public routes, or the internet. */
export type AddressScope = 'loopback' | 'private' | 'public'

const isLoopback = compileRanges(['127.0.0.0/8', '::1'])
/** RFC 1918, RFC 3927, RFC 6598 (carriers and overlay networks), RFC 4193 and RFC 4291 link-local. */
const isPrivate = compileRanges([
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '169.254.0.0/16',
  '100.64.0.0/10',
  'fc00::/7',
  'fe80::/10',
])

/** Scope of an IP address. Other text counts as private, because checks are stricter there. */
export function addressScope(address: string): AddressScope {
  if (isLoopback(address)) return 'loopback'
  return address === '' || isPrivate(address) ? 'private' : 'public'
}

function compileRanges(ranges: readonly string[]): (address: string) => boolean {
  return compileCidrs(ranges.flatMap((range) => parseCidr(range) ?? []))
}
