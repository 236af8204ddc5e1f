import { isJsonObject, type JsonObject } from '../../lib/json/json.ts'

/** Address of an agent at the gateway: `origin` as in a URL, and the prefix that a route replaces. */
export type AgentAddress = {
  readonly origin: string
  /** Prefix of paths at the gateway, and of those at the agent. */
  readonly prefix: string
  readonly agentPrefix: string
}

/**
 * Returns the prefixes in which two paths of a request differ, at the boundary of a segment: `/weather` and
 * `` for `/weather/a2a` that is forwarded as `/a2a`.
 */
export function differingPrefixes(
  received: string,
  forwarded: string,
): { prefix: string; agentPrefix: string } {
  const [ours, theirs] = [received.split('/'), forwarded.split('/')]
  while (ours.length > 1 && theirs.length > 1 && ours.at(-1) === theirs.at(-1)) {
    ours.pop()
    theirs.pop()
  }
  return { prefix: withoutSlash(ours.join('/')), agentPrefix: withoutSlash(theirs.join('/')) }
}

function withoutSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path
}

/**
 * Rewrites the addresses of an agent card: `url`, `additionalInterfaces` (0.3) and `supportedInterfaces`
 * (1.0). Its signatures are removed, because they are of the original. Returns false without an address.
 */
export function rewriteCard(card: JsonObject, address: AgentAddress): boolean {
  let found = rewriteUrl(card, address)
  for (const name of ['additionalInterfaces', 'supportedInterfaces']) {
    const interfaces = card[name]
    if (!Array.isArray(interfaces)) continue
    for (const one of interfaces) if (isJsonObject(one)) found = rewriteUrl(one, address) || found
  }
  if (found) delete card['signatures']
  return found
}

function rewriteUrl(holder: JsonObject, { origin, prefix, agentPrefix }: AgentAddress): boolean {
  const { url } = holder
  if (typeof url !== 'string') return false
  const path = pathOf(url)
  const isBelow =
    path === agentPrefix || path.startsWith(`${agentPrefix}/`) || path.startsWith(`${agentPrefix}?`)
  holder['url'] = origin + prefix + (isBelow ? path.slice(agentPrefix.length) : path)
  return true
}

/** Path and query of a URL; empty for an address without them (`agent.internal:50051`). */
function pathOf(url: string): string {
  const [, path = ''] = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*([^#]*)/i.exec(url) ?? []
  return path
}
