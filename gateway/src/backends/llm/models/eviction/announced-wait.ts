import { firstHeader, type Headers } from '../../../../net/http/headers.ts'
import { retryAfterMs } from '../../../../upstream/retry-after.ts'

/**
 * Time until the next attempt that a response announces: `retry-after-ms` of OpenAI and Azure, `retry-after`,
 * or the reset of an exhausted limit of `x-ratelimit-*` and `anthropic-ratelimit-*`. Undefined if absent or
 * invalid.
 */
export function announcedWaitMs(headers: Headers, now: number): number | undefined {
  const exact = Number(firstHeader(headers, 'retry-after-ms') ?? 0)
  if (Number.isFinite(exact) && exact > 0) return exact
  return retryAfterMs(headers, now) ?? longestResetMs(headers, now)
}

const remaining = /^(?:x-ratelimit-remaining-(.+)|anthropic-ratelimit-(.+)-remaining)$/

/** Until all exhausted limits are reset: of requests, tokens, a minute or a day. */
function longestResetMs(headers: Headers, now: number): number | undefined {
  let longest: number | undefined
  for (const name in headers) {
    const found = remaining.exec(name)
    if (found === null || Number(firstHeader(headers, name)) !== 0) continue
    const [, limit, anthropicLimit] = found
    const reset =
      limit === undefined ? `anthropic-ratelimit-${anthropicLimit}-reset` : `x-ratelimit-reset-${limit}`
    const ms = untilMs(firstHeader(headers, reset) ?? '', now)
    if (ms !== undefined && ms > (longest ?? 0)) longest = ms
  }
  return longest
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A number of seconds, a duration such as `6m0s` or `120ms`, or a time of RFC 3339. */
function untilMs(text: string, now: number): number | undefined {
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) * 1000
  if (!/^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/.test(text)) {
    const time = Date.parse(text) - now
    return Number.isFinite(time) && time > 0 ? time : undefined
  }
  let ms = 0
  for (const [, amount, unit = ''] of text.matchAll(/([\d.]+)(ms|[smhd])/g))
    ms += Number(amount) * (unitMs[unit] ?? 0)
  return ms
}
