import type { Headers } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { LimitStatus, RequestLimits } from '../../pipeline/exchange.ts'

/** What every refusal by a limit says. */
export const limitExceeded = 'rate limit exceeded'

/** The answer to a request over a limit: plain text whatever the client API, as the specification's "Errors" says. */
export function rateLimitReply(refused: LimitStatus): Reply {
  return {
    status: 429,
    headers: { 'content-type': 'text/plain', 'retry-after': String(refused.resetSeconds) },
    body: Buffer.from(limitExceeded),
  }
}

/** Sets `x-ratelimit-*` from the limit closest to refusing. An upstream's own are about another limit and give way. */
export function setLimitHeaders(headers: Headers, limits: RequestLimits) {
  const status = limits.refused ?? closestOf(limits.requests, limits.tokens)
  if (status !== undefined && !hasServiceHeaders(limits)) writeLimitStatus(headers, status)
}

/** A service whose own headers cannot be compared with ours is taken at its word, unless it is ours that refuses. */
function hasServiceHeaders({ headers, refused }: RequestLimits): boolean {
  if (headers === undefined || refused !== undefined) return false
  return Object.keys(headers).some(isLimitHeader)
}

/** The three headers that say where a request stands. */
export const limitHeaders = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'] as const

/** Whether a header is about a limit: `x-ratelimit-*`, `ratelimit`, `ratelimit-*` (IETF draft "RateLimit header fields"). */
export function isLimitHeader(name: string): boolean {
  return name === 'ratelimit' || name.startsWith('ratelimit-') || name.startsWith('x-ratelimit-')
}

export function writeLimitStatus(headers: Headers, status: LimitStatus) {
  const { limit, remaining, resetSeconds, headerValues } = status
  headers['x-ratelimit-limit'] = headerValues?.[0] ?? String(limit)
  headers['x-ratelimit-remaining'] = headerValues?.[1] ?? String(remaining)
  headers['x-ratelimit-reset'] = headerValues?.[2] ?? String(resetSeconds)
  if (status.relatedHeaders !== undefined) Object.assign(headers, status.relatedHeaders)
}

/** Requests and tokens do not compare by number, so the smaller share that is left decides. */
function closestOf(
  requests: LimitStatus | undefined,
  tokens: LimitStatus | undefined,
): LimitStatus | undefined {
  if (requests === undefined || tokens === undefined) return requests ?? tokens
  return tokens.remaining / tokens.limit < requests.remaining / requests.limit ? tokens : requests
}
