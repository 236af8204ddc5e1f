import { formatHostPort, parseHostPort } from '../../../lib/address/host-port.ts'
import type { Provider } from '../providers/provider.ts'

/** An address in parts: `host:port`, and the path prefix in place of the provider's own. */
export type AddressParts = {
  readonly hostOverride?: string | undefined
  readonly pathPrefix?: string | undefined
}

/** Base URL of an address in parts; undefined for the provider's default. */
export function baseUrlOf(
  { hostOverride, pathPrefix = '' }: AddressParts,
  { address }: Provider,
  overTls: boolean,
): string | undefined {
  const host = hostOverride === undefined ? undefined : parseHostPort(hostOverride)
  if (host) {
    const secure = overTls || host.port === 443
    return `${secure ? 'https' : 'http'}://${formatHostPort(host)}${pathPrefix}`
  }
  return address === undefined || pathPrefix === '' ? undefined : new URL(address).origin + pathPrefix
}
