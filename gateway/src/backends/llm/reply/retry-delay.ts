import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'

const type = 'type.googleapis.com/google.rpc.RetryInfo'

/** Longest announced delay: a day. */
const maxSeconds = 86_400

/** Seconds of `retryDelay` in an error of Google, as `retry-after`; undefined without one. */
export function delayIn({ error }: JsonObject): string | undefined {
  const details = isJsonObject(error) ? error['details'] : undefined
  if (!Array.isArray(details)) return undefined
  for (const detail of details) {
    if (!isJsonObject(detail) || detail['@type'] !== type) continue
    const { retryDelay } = detail
    const [, seconds] =
      typeof retryDelay === 'string' ? (/^(\d{1,6}(?:\.\d+)?)s$/.exec(retryDelay) ?? []) : []
    if (seconds !== undefined) return String(Math.min(Math.ceil(Number(seconds)), maxSeconds))
  }
  return undefined
}

/** An error of Google with the delay of `retry-after`, which clients read from its details. */
export function withDelay(body: JsonObject, retryAfter: string | undefined): JsonObject {
  const { error } = body
  if (retryAfter === undefined || !/^\d{1,6}$/.test(retryAfter) || !isJsonObject(error)) return body
  const { details } = error
  const info = { '@type': type, retryDelay: `${retryAfter}s` }
  return { ...body, error: { ...error, details: [...(Array.isArray(details) ? details : []), info] } }
}
