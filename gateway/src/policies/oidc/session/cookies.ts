import { firstHeader, type Headers } from '../../../net/http/headers.ts'

/** Cookies of a login policy in one browser. */
export type LoginCookies = {
  /** Text of the session; undefined without a complete one. */
  session(at: Omit<CookieRequest, 'maxAgeSeconds'>): string | undefined
  /** Text of a login in progress. */
  login(id: string, at: Omit<CookieRequest, 'maxAgeSeconds'>): string | undefined
  /** Header values that store a session and remove the rest of a longer one. */
  setSession(text: string, at: CookieRequest): string[]
  removeSession(at: CookieRequest): string[]
  /** Header values that store a login in progress and remove the oldest of many. */
  setLogin(id: string, text: string, at: CookieRequest): string[]
  removeLogin(id: string, at: CookieRequest): string
}

export type CookieRequest = { headers: Headers; isSecure: boolean; maxAgeSeconds: number }

/** Longest text of a session. Browsers limit a cookie to 4,096 bytes, and the gateway heads to 32 KiB. */
export const maxSessionLength = 10_500
const partLength = 3_500
const maxParts = maxSessionLength / partLength
/** Logins in progress per browser. Each tab without a session starts one. */
const maxLogins = 8
/** Of all logins in progress. With the longest session, a request head stays below its limit. */
const maxLoginsLength = 12_000

const marker = 'tollgate-oidc-'
const hostMarker = `__Host-${marker}`
/** Attributes of every cookie. `Lax`: the provider redirects to the gateway, which `Strict` would exclude. */
const attributes = 'Path=/; HttpOnly; SameSite=Lax'

/**
 * Creates the cookies of the policy with an id. With HTTPS they have the `__Host-` prefix: no other host of
 * the domain can set them (RFC 6265bis section 4.1.3).
 */
export function createLoginCookies(policy: string): LoginCookies {
  const sessionName = (isSecure: boolean) => `${isSecure ? hostMarker : marker}s-${policy}`
  const loginPrefix = (isSecure: boolean) => `${isSecure ? hostMarker : marker}t-${policy}-`

  function set(name: string, value: string, { isSecure, maxAgeSeconds }: CookieRequest): string {
    return `${name}=${value}; Max-Age=${maxAgeSeconds}; ${attributes}${isSecure ? '; Secure' : ''}`
  }

  function remove(name: string, at: CookieRequest): string {
    return set(name, '', { ...at, maxAgeSeconds: 0 })
  }

  function sessionParts(base: string, pairs: ReadonlyMap<string, string>): string | undefined {
    const [, count, first] = /^([1-9])\.(.*)$/.exec(pairs.get(base) ?? '') ?? []
    if (count === undefined || Number(count) > maxParts) return undefined
    const parts = [first]
    for (let index = 1; index < Number(count); index += 1) parts.push(pairs.get(`${base}-${index}`))
    return parts.every((part) => part !== undefined) ? parts.join('') : undefined
  }

  /** Removes the parts of the request's session from a number on. */
  function removeParts(from: number, at: CookieRequest): string[] {
    const base = sessionName(at.isSecure)
    const pairs = cookiesOf(at.headers)
    const names = Array.from({ length: maxParts }, (_, index) => (index === 0 ? base : `${base}-${index}`))
    return names.slice(from).flatMap((name) => (pairs.has(name) ? [remove(name, at)] : []))
  }

  return {
    session: ({ headers, isSecure }) => sessionParts(sessionName(isSecure), cookiesOf(headers)),
    login: (id, { headers, isSecure }) => cookiesOf(headers).get(loginPrefix(isSecure) + id),
    setSession(text, at) {
      const base = sessionName(at.isSecure)
      const count = Math.ceil(text.length / partLength)
      const values = Array.from({ length: count }, (_, index) => {
        const part = text.slice(index * partLength, (index + 1) * partLength)
        return index === 0 ? set(base, `${count}.${part}`, at) : set(`${base}-${index}`, part, at)
      })
      return [...values, ...removeParts(count, at)]
    },
    removeSession: (at) => removeParts(0, at),
    setLogin(id, text, at) {
      const prefix = loginPrefix(at.isSecure)
      // Ids begin with their time.
      const pending = [...cookiesOf(at.headers)]
        .filter(([name]) => name.startsWith(prefix))
        .sort()
        .reverse()
      let length = text.length
      const surplus = pending.flatMap(([name, value], index) => {
        length += name.length + value.length
        return index >= maxLogins - 1 || length > maxLoginsLength ? [name] : []
      })
      return [set(prefix + id, text, at), ...surplus.map((name) => remove(name, at))]
    },
    removeLogin: (id, at) => remove(loginPrefix(at.isSecure) + id, at),
  }
}

/** Removes the cookies of all login policies from a request: upstreams must not receive them. */
export function removeLoginCookies(headers: Headers): void {
  const text = firstHeader(headers, 'cookie')
  if (text?.includes(marker) !== true) return
  const kept = pairsOf(text).filter(([name]) => !name.startsWith(marker) && !name.startsWith(hostMarker))
  if (kept.length === 0) delete headers['cookie']
  else headers['cookie'] = kept.map(([, , pair]) => pair).join('; ')
}

function cookiesOf(headers: Headers): ReadonlyMap<string, string> {
  const cookies = new Map<string, string>()
  const repeated = new Set<string>()
  const text = firstHeader(headers, 'cookie')
  if (text?.includes(marker) !== true) return cookies
  for (const [name, value] of pairsOf(text)) {
    // Of two cookies with the name, one is injected.
    if (cookies.has(name)) repeated.add(name)
    cookies.set(name, value)
  }
  for (const name of repeated) cookies.delete(name)
  return cookies
}

function pairsOf(text: string): [name: string, value: string, pair: string][] {
  return text.split(';').flatMap((part) => {
    const pair = part.trim()
    const equals = pair.indexOf('=')
    return equals > 0 ? [[pair.slice(0, equals), pair.slice(equals + 1), pair]] : []
  })
}
