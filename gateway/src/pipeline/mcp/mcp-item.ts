import type { ExactJsonObject } from '../../lib/json/json.ts'

export type McpItemKind = 'tool' | 'prompt' | 'resource'

/** A tool, prompt or resource of an MCP server, as authorization rules read it. */
export type McpItem = {
  /** Method of the request that lists or uses the item. */
  readonly method: string
  readonly kind: McpItemKind
  /** Name at the target, without the target's prefix; the URI of a resource. */
  readonly name: string
  /** Name of the target. */
  readonly target: string
  /** Arguments of a tool call, with exact integers. */
  readonly arguments?: ExactJsonObject | undefined
}

/** Userinfo of URIs (RFC 3986 section 3.2.1), also of one with a prefix. */
const userinfo = /(:\/\/)[^/?#]*@/g

/** Name of an item for logs: a URI without userinfo, query and fragment, which may contain credentials. */
export function loggableItemName(name: string): string {
  const end = name.search(/[?#]/)
  return (end === -1 ? name : name.slice(0, end)).replace(userinfo, '$1')
}
