import type { Exchange, Forwarding } from './exchange.ts'

/** The forwarding changes of an exchange, created on first use. */
export function forwardingOf(exchange: Exchange): Forwarding {
  exchange.forwarding ??= { path: undefined, host: undefined, headerEdits: [] }
  return exchange.forwarding
}
