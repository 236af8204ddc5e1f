import type { Exchange, Forwarding } from './exchange.ts'

/** What the request is to be forwarded with, for policies that change it. */
export function forwardingOf(exchange: Exchange): Forwarding {
  exchange.forwarding ??= { path: undefined, host: undefined, headerEdits: [] }
  return exchange.forwarding
}
