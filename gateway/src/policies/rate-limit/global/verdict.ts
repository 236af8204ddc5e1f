import { isToken } from '../../../lib/http-token.ts'
import { type Headers, isHopByHop } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { LimitStatus } from '../../../pipeline/exchange.ts'
import { isLimitHeader, limitExceeded, limitHeaders, writeLimitStatus } from '../headers.ts'
import type { DescriptorStatus, HeaderField, LimitResponse, LimitUnit } from './wire.ts'

/** What an answer of the service means for a request. */
export type Verdict = {
  /** The reply in place of the backend's; undefined where the request may go on. */
  readonly refusal: Reply | undefined
  /** Undefined where the service tells nothing that can be compared with other limits. */
  readonly status: LimitStatus | undefined
  /** For the reply to a request that goes on, without what `limitStatus` says. */
  readonly replyHeaders: Headers
  /** For what is forwarded. */
  readonly requestHeaders: Headers
}

/** Anything but a clear yes is a no: a service that does not know must not let through. */
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
  // Headers of the service that name no time still come with statuses that may.
  const { resetSeconds } = limitStatus ?? statusFromDescriptors(answer) ?? {}
  if (resetSeconds !== undefined) headers['retry-after'] ??= String(Math.max(1, resetSeconds))
  return { status: 429, headers, body: Buffer.from(answer.body ?? Buffer.from(limitExceeded)) }
}

/** Headers about the same limit are shown with it or not at all: those of two limits contradict each other. */
function withRelated(limitStatus: LimitStatus, sent: Headers): LimitStatus {
  const related = Object.entries(sent).filter(([name]) => isLimitHeader(name) && !ownLimitHeaders.has(name))
  return related.length === 0 ? limitStatus : { ...limitStatus, relatedHeaders: Object.fromEntries(related) }
}

const ownLimitHeaders: ReadonlySet<string> = new Set(limitHeaders)

function hasLimitHeaders(headers: Headers): boolean {
  return limitHeaders.some((name) => headers[name] !== undefined)
}

/** `10, 10;w=60` begins with the limit that counts; the text is shown as it is. */
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

/** The status closest to refusing; of those that refuse, the one that does so longest. */
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

/** How a message is framed is not for the service to say. */
const framingFields: ReadonlySet<string> = new Set([
  'content-length',
  'content-encoding',
  'host',
  'expect',
  'trailer',
])
/** Nor what the contents of another's message are. */
const contentFields: ReadonlySet<string> = new Set([...framingFields, 'content-type', 'content-range'])

/** Most of names and values together, in characters: many clients and servers take 16 KiB with all that is theirs. */
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
