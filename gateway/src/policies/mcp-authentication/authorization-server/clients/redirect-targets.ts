/** Target of a redirect URI. `label` is its text on the consent page. */
export type RedirectTarget = { kind: 'web' | 'loopback' | 'app'; label: string }

const maxLength = 512
const loopbackForm = /^http:\/\/(127\.0\.0\.1|\[::1\]|localhost)(?::\d{1,5})?(?=[/?]|$)/
/** Schemes that browsers interpret, or that open programs other than an app of the user. */
const refusedSchemes =
  /^(?:https?|javascript|data|vbscript|file|filesystem|blob|about|view-source|wss?|ftp|mailto|tel|sms|intent|ms-.*|search.*|chrome.*|moz-.*)$/

/**
 * Reads a redirect URI: HTTPS, HTTP on loopback (RFC 8252 section 7.3), or the scheme of an app (section
 * 7.1). Undefined for everything else: fragments (RFC 6749 section 3.1.2), user names, plain HTTP, and
 * schemes that run code.
 */
export function readRedirectTarget(uri: string): RedirectTarget | undefined {
  // Characters that parsers interpret differently or remove.
  if (uri.length > maxLength || /[^\x21-\x7e]|[#\\<>"^`{|}]/.test(uri)) return undefined
  const url = URL.parse(uri)
  if (url === null || url.username !== '' || url.password !== '') return undefined
  const scheme = url.protocol.slice(0, -1)
  if (loopbackForm.test(uri)) return { kind: 'loopback', label: url.host }
  if (scheme === 'https' && uri.startsWith('https://')) return { kind: 'web', label: url.host }
  return refusedSchemes.test(scheme) || !uri.startsWith(`${scheme}:`)
    ? undefined
    : { kind: 'app', label: `${scheme}:` }
}

/**
 * Whether a redirect URI is registered: identical (RFC 9700 section 4.1), except for the port on loopback,
 * which native clients choose at start (RFC 8252 section 7.3).
 */
export function isRegisteredRedirect(registered: readonly string[], uri: string): boolean {
  if (registered.includes(uri)) return true
  const wanted = withoutPort(uri)
  return wanted !== undefined && registered.some((each) => withoutPort(each) === wanted)
}

function withoutPort(uri: string): string | undefined {
  const match = loopbackForm.exec(uri)
  return match === null ? undefined : `http://${match[1]}${uri.slice(match[0].length)}`
}

/** Adds parameters to the query of a redirect URI. */
export function redirectWith(uri: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const added = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) added.set(name, value)
  return `${uri}${uri.includes('?') ? '&' : '?'}${added}`
}
