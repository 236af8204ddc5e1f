import type { Reply } from '../../net/http-client/send.ts'
import type { Exchange, RequestLimits } from '../../pipeline/exchange.ts'
import { setLimitHeaders } from './headers.ts'

/** Specification, rate limit rule 4: usage is counted once the answer has ended, however it ended. */
export function chargeTokens(exchange: Exchange) {
  const { limits: tally, facts } = exchange
  if (tally === undefined || facts.usage === undefined) return
  // Reported by an upstream, hence not trusted to be a count.
  const amount = Math.ceil(facts.usage.totalTokens)
  if (!(amount > 0)) return
  for (const claim of tally.reservations) claim.charge(amount)
  tally.reservations.length = 0
}

/** Puts on the reply where the request stands, once, whichever policy of limits comes first. */
export function showStanding(exchange: Exchange, reply: Reply): Reply {
  const { limits: tally } = exchange
  if (tally === undefined || tally.headersSent) return reply
  tally.headersSent = true
  if (tally.headers !== undefined) Object.assign(reply.headers, tally.headers)
  setLimitHeaders(reply.headers, tally)
  return reply
}

/** The tally of a request, begun by the first limit that it meets. */
export function tallyOf(exchange: Exchange): RequestLimits {
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
export function giveBackClaims(tally: RequestLimits): void {
  for (const claim of tally.reservations) claim.release()
  tally.reservations.length = 0
}
