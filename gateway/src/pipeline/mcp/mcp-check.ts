import type { JsonValue } from '../../lib/json/json.ts'
import type { HeaderEdit } from '../../net/http/header-edits.ts'
import type { Exchange } from '../exchange.ts'
import type { McpItemKind } from './mcp-item.ts'

/** A request to one MCP target, with the target's own names. */
export type McpRequest = {
  readonly method: string
  /** Name of the target. */
  readonly target: string
  /** The tool, prompt or resource that the request uses; undefined for other methods. */
  readonly item: { readonly kind: McpItemKind; readonly name: string } | undefined
  /** JSON text of `params`; undefined without parameters. */
  readonly params: string | undefined
  /** JSON text of the message. */
  readonly text: string
}

/** Decision of a check. */
export type McpVerdict =
  | { readonly kind: 'pass'; readonly headers?: readonly HeaderEdit[] }
  /** `text`: JSON of the new `params`, `result` or `error`. `headers`: edits of the request to the target. */
  | { readonly kind: 'replace'; readonly text: string; readonly headers?: readonly HeaderEdit[] }
  /** Refusal as JSON-RPC error. `status` is for replies outside sessions. */
  | {
      readonly kind: 'refuse'
      readonly status: number
      readonly code: number
      readonly message: string
      readonly data?: JsonValue | undefined
    }

type Awaitable<T> = T | Promise<T>

/**
 * Check of requests to MCP targets and of their results, after the rules on single items. Compiled from
 * policies and run by `backends/mcp` for each message. Must not throw: errors are decisions of the check.
 */
export type McpCheck = {
  readonly name: string
  /** Whether the check decides on contents: requests are copied behind it. */
  readonly isGuard?: boolean
  /** Decides on a request; undefined if it does not concern the check. */
  onRequest?(exchange: Exchange, request: McpRequest): Awaitable<McpVerdict | undefined>
  /** Whether results of a method are checked. */
  checksResult?(method: string): boolean
  /** Decides on the JSON text of a result. */
  onResult?(exchange: Exchange, request: McpRequest, result: string): Awaitable<McpVerdict | undefined>
  /** Decides on the JSON text of a JSON-RPC error, for methods with checked results. */
  onError?(exchange: Exchange, request: McpRequest, error: string): Awaitable<McpVerdict | undefined>
}
