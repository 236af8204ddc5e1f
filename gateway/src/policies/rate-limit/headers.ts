import type { Headers } from '../../net/headers.ts'
import type { Reply } from '../../net/send.ts'
import type { LimitStanding, LimitTally } from '../../pipeline/exchange.ts'

/** The answer to a request over a limit: plain text whatever the client API, as the specification's "Errors" says. */
export function rateLimitReply(refused: LimitStanding): Reply {
  return {
    status: 429,
    headers: { 'content-type': 'text/plain', 'retry-after': String(refused.resetSeconds) },
    body: Buffer.from('rate limit exceeded'),
  }
}

/** Sets `x-ratelimit-*` from the limit closest to refusing. An upstream's own are about another limit and give way. */
export function setLimitHeaders(headers: Headers, tally: LimitTally) {
  const standing = tally.refused ?? closestOf(tally.requests, tally.tokens)
  if (standing === undefined) return
  headers['x-ratelimit-limit'] = String(standing.limit)
  headers['x-ratelimit-remaining'] = String(standing.remaining)
  headers['x-ratelimit-reset'] = String(standing.resetSeconds)
}

/** Requests and tokens do not compare by number, so the smaller share that is left decides. */
function closestOf(
  requests: LimitStanding | undefined,
  tokens: LimitStanding | undefined,
): LimitStanding | undefined {
  if (requests === undefined || tokens === undefined) return requests ?? tokens
  return tokens.remaining / tokens.limit < requests.remaining / requests.limit ? tokens : requests
}
