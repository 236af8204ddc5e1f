import { compileCidrs, parseCidr } from '../../lib/address/cidr.ts'
import { addressesWithin } from './embedded-addresses.ts'

const isListed = compileCidrs(
  [
    // Link-local: AWS, Google Cloud, Azure, Oracle, DigitalOcean, OpenStack, Tencent and others.
    '169.254.0.0/16',
    'fe80::/10',
    // AWS.
    'fd00:ec2::/32',
    // Google Cloud.
    'fd20:ce::254',
    // Azure: the host agent, which issues certificates and extension settings.
    '168.63.129.16',
    // Alibaba Cloud.
    '100.100.100.200',
    // Oracle Cloud.
    '192.0.0.192',
    'fd00:c1::a9fe:a9fe',
    // Scaleway.
    'fd00:42::42',
  ].flatMap((text) => parseCidr(text) ?? []),
)

/**
 * Whether an IP address is link-local or a cloud metadata address, which issues credentials; also checks IPv4
 * addresses embedded in IPv6.
 */
export function isMetadataAddress(address: string): boolean {
  return addressesWithin(address).some(isListed)
}
