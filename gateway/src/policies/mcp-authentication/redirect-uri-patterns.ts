/**
 * Whether a text is a valid pattern: an absolute URI, optionally with `*` as its port or at the end of its
 * path.
 */
export function isRedirectUriPattern(pattern: string): boolean {
  return readPattern(pattern) !== undefined
}

/**
 * Compiles patterns of allowed redirect URIs: exact URIs, `http://localhost:*` + path for any port (native
 * clients choose one, RFC 8252 section 7.3), and `https://host/path*` for a prefix.
 */
export function compileRedirectUriPatterns(patterns: readonly string[]): (uri: string) => boolean {
  const tests = patterns.flatMap((pattern) => readPattern(pattern) ?? [])
  return (uri) => {
    const normal = normalised(uri)
    return normal !== undefined && tests.some((test) => test(normal))
  }
}

function readPattern(pattern: string): ((uri: string) => boolean) | undefined {
  const anyEnd = pattern.endsWith('*') && !pattern.endsWith(':*')
  const stem = anyEnd ? pattern.slice(0, -1) : pattern
  const anyPort = /^([a-z]+:\/\/(?:\[[0-9a-f:.]+\]|[^/:*[\]]+)):\*(\/[^*]*)?$/i.exec(stem)
  // Port 1 represents any port, because the parser requires a number.
  const normal = normalised(anyPort === null ? stem : `${anyPort[1]}:1${anyPort[2] ?? '/'}`)
  if (normal === undefined || normal.includes('*')) return undefined
  // A wildcard within the host would allow other hosts.
  if (anyEnd && !/^[a-z][a-z0-9+.-]*:\/\/[^/]+\//i.test(stem)) return undefined
  const matches = (uri: string) => (anyEnd ? uri.startsWith(normal) : uri === normal)
  return anyPort === null ? matches : (uri) => matches(withFixedPort(uri))
}

/** Normalized URI; undefined if invalid, or with credentials, a fragment or backslashes. */
function normalised(uri: string): string | undefined {
  if (/[\\#\s]/.test(uri)) return undefined
  const url = URL.parse(uri)
  if (url === null || url.username !== '' || url.password !== '') return undefined
  return url.href
}

function withFixedPort(uri: string): string {
  return uri.replace(/^([a-z]+:\/\/(?:\[[^\]]+\]|[^/:]+))(?::\d+)?(?=\/)/, '$1:1')
}
