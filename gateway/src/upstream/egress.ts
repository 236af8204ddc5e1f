import type { EgressPolicy } from '../net/egress/egress.ts'
import type { Send } from '../net/http-client/send.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'

/** Applies the egress policy of `node`, a configuration object that names addresses, to `send`. */
export function sendFrom(node: object, { send, egress }: Pick<CompileContext, 'send' | 'egress'>): Send {
  return sendUnder(egress.of(node), send)
}

/** Applies an egress policy to requests whose connection has none. */
export function sendUnder(egress: EgressPolicy, send: Send): Send {
  if (egress.key === '') return send
  const own = { key: egress.key, egress }
  return (request) => send(request.connection === undefined ? { ...request, connection: own } : request)
}
