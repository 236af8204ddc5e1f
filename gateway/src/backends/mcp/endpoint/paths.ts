/** Well-known authorization documents (RFC 9728, RFC 8414, OpenID Connect Discovery). */
const documents = ['oauth-protected-resource', 'oauth-authorization-server', 'openid-configuration']

/**
 * Path prefixes of the authorization documents of the endpoint at `path`, which follows the well-known name.
 * Registration and similar endpoints are below them.
 */
export function documentPaths(path: string): string[] {
  const suffix = path === '/' ? '' : path
  return documents.map((name) => `/.well-known/${name}${suffix}`)
}

/** Path prefixes of MCP at a shared gateway. A separate port serves every path. */
export const mcpPaths: readonly string[] = ['/mcp', '/sse', ...documentPaths('/')]
