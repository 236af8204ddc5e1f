import { firstHeader, type Headers } from '../../net/http/headers.ts'
import type { RequestFacts } from '../../pipeline/exchange.ts'

/**
 * Whether a request is the navigation of a browser to a page, the only one that a login can interrupt.
 * Browsers state it (Fetch Metadata); of other clients only those count that ask for HTML.
 */
export function isNavigation({ method, headers }: Pick<RequestFacts, 'method' | 'headers'>): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  if (firstHeader(headers, 'upgrade') !== undefined) return false
  const mode = firstHeader(headers, 'sec-fetch-mode')
  if (mode !== undefined) return mode === 'navigate' && acceptsHtml(headers)
  return firstHeader(headers, 'x-requested-with') === undefined && acceptsHtml(headers)
}

export function acceptsHtml(headers: Headers): boolean {
  const accept = firstHeader(headers, 'accept') ?? ''
  return /(?:^|,)\s*(?:text\/html|application\/xhtml\+xml)\s*(?:[;,]|$)/i.test(accept)
}
