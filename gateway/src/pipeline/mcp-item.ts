import type { ExactJsonObject } from '../lib/json/json.ts'

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
