import type { Headers } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { LimitStatus, RequestLimits } from '../../pipeline/limits/limits.ts'

/** Body text of every rate limit refusal. */
export const limitExceeded = 'rate limit exceeded'

/** Creates the reply to a request over a limit: plain text for every client API (specification, "Errors"). */
export function rateLimitReply(refused: LimitStatus): Reply {
  return {
    status: 429,
    headers: { 'content-type': 'text/plain', 'retry-after': String(refused.resetSeconds) },
    body: Buffer.from(limitExceeded),
  }
}

/** Sets `x-ratelimit-*` from the limit closest to exhaustion and replaces those of the upstream. */
export function setLimitHeaders(headers: Headers, limits: RequestLimits) {
  const status = limits.refused ?? closestOf(limits.requests, limits.tokens)
  if (status !== undefined && !hasServiceHeaders(limits)) writeLimitStatus(headers, status)
}

/** Whether the limit headers of a service take precedence: they do, unless a local limit refuses. */
function hasServiceHeaders({ headers, refused }: RequestLimits): boolean {
  if (headers === undefined || refused !== undefined) return false
  return Object.keys(headers).some(isLimitHeader)
}

/** Headers with the limit status of a request. */
export const limitHeaders = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'] as const

/**
 * Whether a header is about a limit: `x-ratelimit-*`, `ratelimit`, `ratelimit-*` (IETF draft "RateLimit
 * header fields").
 */
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

/** Returns the status with the smaller remaining share, because requests and tokens are different units. */
function closestOf(
  requests: LimitStatus | undefined,
  tokens: LimitStatus | undefined,
): LimitStatus | undefined {
  if (requests === undefined || tokens === undefined) return requests ?? tokens
  return tokens.remaining / tokens.limit < requests.remaining / requests.limit ? tokens : requests
}
