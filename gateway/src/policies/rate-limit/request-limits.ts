import type { Reply } from '../../net/http-client/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { RequestLimits } from '../../pipeline/limits/limits.ts'
import { setLimitHeaders } from './headers.ts'

/** Charges token usage after the response ends, including failed ones (specification, rate limit rule 4). */
export function chargeTokens(exchange: Exchange) {
  const { limits, facts } = exchange
  if (limits === undefined || facts.usage === undefined) return
  // Reported by an upstream, hence possibly not a valid count.
  const amount = Math.ceil(facts.usage.totalTokens)
  if (!(amount > 0)) return
  for (const reservation of limits.reservations) reservation.charge(amount)
  limits.reservations.length = 0
}

/** Sets the limit headers of the reply once, in the first limit policy that handles it. */
export function reportLimits(exchange: Exchange, reply: Reply): Reply {
  const { limits } = exchange
  if (limits === undefined || limits.headersSent) return reply
  limits.headersSent = true
  if (limits.headers !== undefined) Object.assign(reply.headers, limits.headers)
  setLimitHeaders(reply.headers, limits)
  return reply
}

/** Returns the limit state of a request; the first limit creates it. */
export function requestLimitsOf(exchange: Exchange): RequestLimits {
  exchange.limits ??= {
    requests: undefined,
    tokens: undefined,
    refused: undefined,
    headersSent: false,
    reservations: [],
  }
  return exchange.limits
}

/** Whether a request may cost tokens. Model lists and other reads do not; connections of realtime do. */
export function spendsTokens(exchange: Exchange): boolean {
  if (exchange.upgrade !== undefined) return true
  const { method } = exchange.facts.request
  return method !== 'GET' && method !== 'HEAD'
}

/** Releases all reservations of a request that another limit refuses. */
export function releaseReservations(limits: RequestLimits): void {
  for (const reservation of limits.reservations) reservation.release()
  limits.reservations.length = 0
}
