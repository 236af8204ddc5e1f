import { firstHeader, type Headers } from '../../../../net/http/headers.ts'
import { retryAfterMs } from '../../../../upstream/retry-after.ts'

/**
 * Time until the next attempt that a response announces: `retry-after-ms` of OpenAI and Azure, or
 * `retry-after`. Undefined if absent or invalid.
 */
export function announcedWaitMs(headers: Headers, now: number): number | undefined {
  const exact = Number(firstHeader(headers, 'retry-after-ms') ?? 0)
  return Number.isFinite(exact) && exact > 0 ? exact : retryAfterMs(headers, now)
}
