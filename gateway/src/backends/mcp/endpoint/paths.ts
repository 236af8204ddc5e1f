/** Documents about authorization that clients look for (RFC 9728, RFC 8414, OpenID Connect Discovery). */
const documents = ['oauth-protected-resource', 'oauth-authorization-server', 'openid-configuration']

/**
 * Where clients look for documents about the endpoint at `path`, as path prefixes: registration and the like are behind
 * them. The path of an endpoint stands behind the well-known name.
 */
export function documentPaths(path: string): string[] {
  const suffix = path === '/' ? '' : path
  return documents.map((name) => `/.well-known/${name}${suffix}`)
}

/** Path prefixes that MCP serves at a gateway it shares with others. At a port of its own it serves every path. */
export const mcpPaths: readonly string[] = ['/mcp', '/sse', ...documentPaths('/')]
