import type { Listener } from '../../../api/state.ts'

/** A place where clients find the MCP endpoint. */
export type McpPlace = {
  readonly gateway: string
  readonly path: string
  /** Address for clients on the machine of the gateway. */
  readonly url: string
}

/** Addresses of the MCP endpoint: own port, and gateways that it is attached to. */
export function endpointsOf(listeners: readonly Listener[]): readonly McpPlace[] {
  const places = listeners
    .filter(({ serves }) => serves.includes('mcp'))
    .map(({ gateway, url }) => ({ gateway, path: '/mcp', url: `${url}/mcp` }))
  // Listeners of one gateway share its port.
  return [...new Map(places.map((place) => [place.url, place])).values()]
}
