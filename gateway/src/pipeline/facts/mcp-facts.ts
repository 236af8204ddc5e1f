import type { ExactJsonObject } from '../../lib/json/json.ts'

/** The last MCP request of an exchange to a target, as expressions read it: `mcp`. */
export type McpFacts = {
  readonly method: string
  readonly tool?: {
    readonly name: string
    readonly target: string
    readonly arguments: ExactJsonObject | undefined
  }
  readonly prompt?: McpNamed
  readonly resource?: McpNamed
}

type McpNamed = { readonly name: string; readonly target: string }
