import { isToken } from '../../../lib/http-token.ts'
import { type Headers, isHopByHop } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { LimitStatus } from '../../../pipeline/limits/limits.ts'
import { isLimitHeader, limitExceeded, limitHeaders, writeLimitStatus } from '../headers.ts'
import type { DescriptorStatus, HeaderField, LimitResponse, LimitUnit } from './wire.ts'

/** Effect of a service response on a request. */
export type Verdict = {
  /** Reply that refuses the request; undefined if the request is allowed. */
  readonly refusal: Reply | undefined
  /** Undefined if the response has no status that is comparable with other limits. */
  readonly status: LimitStatus | undefined
  /** Headers for the reply to an allowed request, without those that `status` covers. */
  readonly replyHeaders: Headers
  /** Headers for the forwarded request. */
  readonly requestHeaders: Headers
}

/**
 * Maps a response to its verdict. Every code except OK refuses: an unknown result must not allow requests.
 */
export function verdictOf(answer: LimitResponse): Verdict {
  const sent = fieldsOf(answer.responseHeaders, framingFields)
  const chosen = hasLimitHeaders(sent) ? statusFromHeaders(sent) : statusFromDescriptors(answer)
  const limitStatus = chosen && withRelated(chosen, sent)
  if (answer.code !== 'ok') {
    const refusal = refusalOf(answer, sent, limitStatus)
    return { refusal, status: limitStatus, replyHeaders: {}, requestHeaders: {} }
  }
  const replyHeaders = fieldsOf(answer.responseHeaders, contentFields)
  if (limitStatus !== undefined) {
    for (const name of Object.keys(replyHeaders)) if (isLimitHeader(name)) delete replyHeaders[name]
  }
  return {
    refusal: undefined,
    status: limitStatus,
    replyHeaders,
    requestHeaders: fieldsOf(answer.requestHeaders, contentFields),
  }
}

function refusalOf(answer: LimitResponse, sent: Headers, limitStatus: LimitStatus | undefined): Reply {
  const headers: Headers = { 'content-type': 'text/plain', ...sent }
  if (limitStatus !== undefined) writeLimitStatus(headers, limitStatus)
  // If the headers name no reset time, the descriptor statuses may.
  const { resetSeconds } = limitStatus ?? statusFromDescriptors(answer) ?? {}
  if (resetSeconds !== undefined) headers['retry-after'] ??= String(Math.max(1, resetSeconds))
  return { status: 429, headers, body: Buffer.from(answer.body ?? Buffer.from(limitExceeded)) }
}

/** Adds related limit headers to the status, so that the reply never mixes headers of two limits. */
function withRelated(limitStatus: LimitStatus, sent: Headers): LimitStatus {
  const related = Object.entries(sent).filter(([name]) => isLimitHeader(name) && !ownLimitHeaders.has(name))
  return related.length === 0 ? limitStatus : { ...limitStatus, relatedHeaders: Object.fromEntries(related) }
}

const ownLimitHeaders: ReadonlySet<string> = new Set(limitHeaders)

function hasLimitHeaders(headers: Headers): boolean {
  return limitHeaders.some((name) => headers[name] !== undefined)
}

/** Reads the first number of each header (`10, 10;w=60`). The header text is forwarded unchanged. */
function statusFromHeaders(headers: Headers): LimitStatus | undefined {
  const [limitText, remainingText, resetText] = limitHeaders.map((name) => headers[name])
  if (typeof limitText !== 'string' || typeof remainingText !== 'string' || typeof resetText !== 'string') {
    return undefined
  }
  const [limit, remaining, resetSeconds] = [limitText, remainingText, resetText].map((text) =>
    Number(/^\d{1,15}/.exec(text)?.[0]),
  )
  if (limit === undefined || remaining === undefined || resetSeconds === undefined) return undefined
  if (!Number.isFinite(limit + remaining + resetSeconds)) return undefined
  return { limit, remaining, resetSeconds, headerValues: [limitText, remainingText, resetText] }
}

const unitSeconds: Record<LimitUnit, number> = {
  unknown: 1,
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 604_800,
  month: 2_592_000,
  year: 31_536_000,
}

/** Returns the status closest to its limit, or the refusing status with the latest reset. */
function statusFromDescriptors({ code, statuses }: LimitResponse): LimitStatus | undefined {
  let chosen: LimitStatus | undefined
  const refusing = code !== 'ok' && statuses.some((status) => status.code === 'overLimit' && status.limit)
  for (const status of statuses) {
    if (refusing && status.code !== 'overLimit') continue
    const limitStatus = statusFromDescriptor(status)
    if (limitStatus === undefined) continue
    const closer =
      chosen === undefined ||
      (refusing ? limitStatus.resetSeconds > chosen.resetSeconds : limitStatus.remaining < chosen.remaining)
    if (closer) chosen = limitStatus
  }
  return chosen
}

function statusFromDescriptor({ limit, remaining, resetSeconds }: DescriptorStatus): LimitStatus | undefined {
  if (limit === undefined) return undefined
  return {
    limit: limit.requestsPerUnit,
    remaining,
    resetSeconds: Math.max(1, resetSeconds ?? unitSeconds[limit.unit]),
  }
}

/** Framing fields, which the service must not set. */
const framingFields: ReadonlySet<string> = new Set([
  'content-length',
  'content-encoding',
  'host',
  'expect',
  'trailer',
])
/** Fields that describe the content of a message from another sender. */
const contentFields: ReadonlySet<string> = new Set([...framingFields, 'content-type', 'content-range'])

/**
 * Maximum total length of names and values in characters. Many clients and servers accept 16 KiB in total.
 */
const longestFields = 8 * 1024
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/

function fieldsOf(fields: readonly HeaderField[], without: ReadonlySet<string>): Headers {
  const headers: Headers = {}
  let length = 0
  for (const { name, value } of fields) {
    length += name.length + value.length
    if (length > longestFields) break
    const lowerName = name.toLowerCase()
    if (!isToken(lowerName) || !fieldValue.test(value)) continue
    if (isHopByHop(lowerName) || without.has(lowerName) || lowerName === '__proto__') continue
    const known = headers[lowerName]
    if (known === undefined) headers[lowerName] = value.trim()
    else if (lowerName === 'set-cookie') headers[lowerName] = [known, value.trim()].flat()
    else headers[lowerName] = `${known}, ${value.trim()}`
  }
  return headers
}
