import { firstHeader, type Headers } from '../../../net/http/headers.ts'

/** Directives of a request for caches (RFC 9111 section 5.2.1). */
export type CacheControl = {
  /** Neither the request nor its response is stored. */
  readonly noStore: boolean
  /** Maximum age of a stored response in seconds; 0 requires a new one. */
  readonly maxAgeSeconds: number
}

const unrestricted: CacheControl = { noStore: false, maxAgeSeconds: Number.POSITIVE_INFINITY }

/** Reads `cache-control` of a request. An invalid age is 0. */
export function readCacheControl(headers: Headers): CacheControl {
  const text = firstHeader(headers, 'cache-control')
  if (text === undefined) return unrestricted
  let { noStore, maxAgeSeconds } = unrestricted
  for (const directive of text.toLowerCase().split(',')) {
    const [name = '', value = ''] = directive.split('=', 2).map((part) => part.trim())
    if (name === 'no-store') noStore = true
    else if (name === 'no-cache') maxAgeSeconds = 0
    else if (name === 'max-age')
      maxAgeSeconds = Math.min(maxAgeSeconds, /^\d{1,9}$/.test(value) ? Number(value) : 0)
  }
  return { noStore, maxAgeSeconds }
}
