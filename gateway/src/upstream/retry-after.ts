import { firstHeader, type Headers } from '../net/http/headers.ts'

/** RFC 9110 section 10.2.3: seconds or a date. Undefined if absent, invalid or in the past. */
export function retryAfterMs(headers: Headers, now: number): number | undefined {
  const value = firstHeader(headers, 'retry-after')
  if (value === undefined) return undefined
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now
  return Number.isFinite(ms) && ms > 0 ? ms : undefined
}
