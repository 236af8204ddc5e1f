import type { Reply } from '../../net/http-client/send.ts'
import type { Exchange, RequestLimits } from '../../pipeline/exchange.ts'
import { setLimitHeaders } from './headers.ts'

/** Specification, rate limit rule 4: usage is counted once the answer has ended, however it ended. */
export function chargeTokens(exchange: Exchange) {
  const { limits, facts } = exchange
  if (limits === undefined || facts.usage === undefined) return
  // Reported by an upstream, hence not trusted to be a count.
  const amount = Math.ceil(facts.usage.totalTokens)
  if (!(amount > 0)) return
  for (const reservation of limits.reservations) reservation.charge(amount)
  limits.reservations.length = 0
}

/** Puts on the reply where the request stands, once, whichever policy of limits comes first. */
export function reportLimits(exchange: Exchange, reply: Reply): Reply {
  const { limits } = exchange
  if (limits === undefined || limits.headersSent) return reply
  limits.headersSent = true
  if (limits.headers !== undefined) Object.assign(reply.headers, limits.headers)
  setLimitHeaders(reply.headers, limits)
  return reply
}

/** The limits of a request, begun by the first limit that it meets. */
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

/** Token limits hold back what may cost tokens; lists of models and other reads do not. */
export function spendsTokens(exchange: Exchange): boolean {
  const { method } = exchange.facts.request
  return method !== 'GET' && method !== 'HEAD'
}

/** Nothing stays counted of a request that another limit refuses. */
export function releaseReservations(limits: RequestLimits): void {
  for (const reservation of limits.reservations) reservation.release()
  limits.reservations.length = 0
}
