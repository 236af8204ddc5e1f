import type { JsonValue } from '../../../lib/json/json.ts'

/**
 * Whether a value is the address of a file that the provider reads with its own rights or those of the
 * gateway's account: in a bucket (`gs:`, `s3:`), uploaded to Google, or on the disk of a server (`file:`).
 * Public addresses and contents (`data:`) are none.
 */
export function isPrivateAddress(value: JsonValue | undefined): boolean {
  if (typeof value !== 'string') return false
  const [, scheme] = /^[\s\0]*([a-z][a-z\d+.-]*):/i.exec(value.slice(0, maxScheme)) ?? []
  if (scheme === undefined) return false
  switch (scheme.toLowerCase()) {
    case 'data':
      return false
    case 'http':
    case 'https':
      return !isPublicUrl(value)
    default:
      return true
  }
}

/** Whether a value is an address of the web that any reader may fetch. */
export function isPublicUrl(value: JsonValue | undefined): boolean {
  if (typeof value !== 'string' || value.length > maxUrl || !/^https?:\/\//i.test(value)) return false
  const url = URL.parse(value)
  if (url === null) return false
  const host = url.hostname.replace(/\.+$/, '')
  return !/(?:^|\.)googleapis\.com$/.test(host) || host === 'storage.googleapis.com'
}

const maxScheme = 64
const maxUrl = 16_384
