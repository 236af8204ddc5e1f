import { createHeaderFilter, type Headers } from '../../net/http/headers.ts'

/**
 * Headers that browsers act on: they would change state, permissions or policies of the console's origin.
 */
const dropped: ReadonlySet<string> = new Set([
  'accept-ch',
  'activate-storage-access',
  'alt-svc',
  'cache-control',
  'clear-site-data',
  'critical-ch',
  'deprecation-trial',
  'expect-ct',
  'expires',
  'feature-policy',
  'link',
  'nel',
  'no-vary-search',
  'origin-agent-cluster',
  'origin-trial',
  'permissions-policy',
  'pragma',
  'referrer-policy',
  'refresh',
  'report-to',
  'reporting-endpoints',
  'service-worker-allowed',
  'service-worker-navigation-preload',
  'set-cookie',
  'set-cookie2',
  'set-login',
  'sourcemap',
  'speculation-rules',
  'strict-transport-security',
  'supports-loading-mode',
  'use-as-dictionary',
  'x-content-type-options',
  'x-dns-prefetch-control',
  'x-frame-options',
  'x-permitted-cross-domain-policies',
  'x-sourcemap',
  'x-xss-protection',
])
const droppedPrefixes = [
  'access-control-',
  'content-security-policy',
  'cross-origin-',
  'x-tollgate-forwarded',
]

/** Renamed with the prefix `x-forward-`: browsers would follow the redirect, or open a login dialog. */
const renamed = ['location', 'www-authenticate', 'content-disposition'] as const

const filter = createHeaderFilter(
  (name) => dropped.has(name) || droppedPrefixes.some((prefix) => name.startsWith(prefix)),
)

/** Headers of a forwarded response, which must not become active content of the console's origin. */
export function replyHeaders(received: Headers): Headers {
  const headers = filter(received)
  for (const name of renamed) {
    const value = headers[name]
    if (value === undefined) continue
    delete headers[name]
    headers[`x-forward-${name}`] = value
  }
  return {
    ...headers,
    'cache-control': 'no-store',
    'content-security-policy': "sandbox; default-src 'none'",
    'cross-origin-resource-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
    // Distinguishes responses of the listener from those of the admin API.
    'x-tollgate-forwarded': '1',
  }
}
