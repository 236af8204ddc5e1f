/** Headers of proxies and content delivery networks for the client address, besides `x-forwarded-*`. */
const addresses: ReadonlySet<string> = new Set([
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'client-ip',
  'fastly-client-ip',
  'fly-client-ip',
  'forwarded',
  'true-client-ip',
  'x-azure-clientip',
  'x-azure-socketip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-envoy-external-address',
  'x-original-forwarded-for',
  'x-originating-ip',
  'x-real-ip',
  'x-remote-addr',
  'x-remote-ip',
])

/** Headers that frameworks read as the method or path of the request, which would bypass rules. */
const overrides = /^x-(?:original-|http-)?method(?:-override)?$|^x-(?:original|rewrite|override)-ur[il]$/

/** CGI programs read it as the proxy for their own requests (CVE-2016-5385). */
const proxy = 'proxy'

/**
 * Whether a header of a client is withheld from backends: client addresses, overrides of method and path, and
 * names with an underscore, which CGI and WSGI read as the name with a hyphen (RFC 3875 section 4.1.18).
 */
export function isWithheldHeader(name: string): boolean {
  return (
    name.includes('_') ||
    name.startsWith('x-forwarded-') ||
    addresses.has(name) ||
    overrides.test(name) ||
    name === proxy
  )
}
